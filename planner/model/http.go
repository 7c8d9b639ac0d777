package model

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// FromHTTP is a provider's answer with an error status as an Error.
func FromHTTP(status int, header http.Header, message string) *Error {
	e := &Error{Status: status, Message: short(message), RetryAfter: retryAfter(header)}
	low := strings.ToLower(message)
	switch {
	case status == 401 || status == 403:
		e.Kind = Auth
	case status == 413 && !refusesImage(status, low) || status >= 400 && status < 429 && tooLong(low):
		e.Kind = Context
	case status >= 400 && status != 429 && refusesImage(status, low):
		e.Kind = Picture
	case status == 429 && strings.Contains(low, "insufficient_quota"):
		e.Kind = Invalid // an empty account does not fill by waiting
	case status == 429:
		e.Kind = RateLimit
	case status == 408 || status == 409:
		e.Kind = Network
	case status >= 500:
		e.Kind = Overload
	default:
		e.Kind = Invalid
	}
	return e
}

// FromStream is an error that came as an event of a stream that had begun well.
// code is the type or code that the provider gives it.
func FromStream(code, message string) *Error {
	status := 500
	switch code {
	case "rate_limit_error", "rate_limit_exceeded", "429":
		status = 429
	case "authentication_error", "permission_error", "401", "403":
		status = 401
	case "invalid_request_error", "invalid_prompt", "context_length_exceeded", "400":
		status = 400
	}
	if message == "" {
		message = "an error in the middle of the reply"
	}
	if code != "" {
		message += " (" + code + ")"
	}
	e := FromHTTP(status, nil, message)
	e.Status = 0
	return e
}

// refusesImage knows the words for an image that a provider or a model does not take.
func refusesImage(status int, low string) bool {
	if !strings.Contains(low, "image") && !strings.Contains(low, " vision") && !strings.Contains(low, "multimodal") {
		return false
	}
	return status < 500 || strings.Contains(low, "not support") || strings.Contains(low, "mmproj")
}

// tooLong knows the words that providers and local servers have for it.
func tooLong(low string) bool {
	for _, s := range []string{"prompt is too long", "input is too long", "context_length", "context length", "maximum context", "context window", "context size", "context limit"} {
		if strings.Contains(low, s) {
			return true
		}
	}
	return false
}

// short keeps a proxy's whole web page out of a message.
func short(s string) string {
	if s = strings.TrimSpace(s); len(s) > 2000 {
		return strings.ToValidUTF8(s[:2000], "") + "…"
	}
	return s
}

// retryAfter reads Retry-After: seconds, or a date (RFC 9110, section 10.2.3).
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 {
		return time.Duration(min(s, 1e9) * float64(time.Second))
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(t))
	}
	return 0
}

// Failure is what a call of an SDK failed with, api being the error as the
// provider gave it, nil where it gave none. It holds no key.
func Failure(ctx context.Context, err error, api *Error, key string) error {
	var idle *Error
	switch {
	case errors.As(context.Cause(ctx), &idle):
		return idle
	case ctx.Err() != nil:
		return ctx.Err()
	case api == nil:
		api = &Error{Kind: Network, Message: short(err.Error())}
	}
	if key != "" {
		api.Message = strings.ReplaceAll(api.Message, key, "[key]")
	}
	return api
}

// Unfinished is a stream that closed before its end event.
func Unfinished() *Error {
	return &Error{Kind: Network, Message: "the stream ended before the reply did"}
}

// IdleTimeout is how long a stream may be silent.
const IdleTimeout = 5 * time.Minute

// Idle gives a context that ends when alive has not been called for IdleTimeout.
func Idle(ctx context.Context) (_ context.Context, alive func(), stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	t := time.AfterFunc(IdleTimeout, func() {
		cancel(&Error{Kind: Network, Message: "the provider has sent nothing for " + IdleTimeout.String()})
	})
	return ctx, func() { t.Reset(IdleTimeout) }, func() { t.Stop(); cancel(nil) }
}

// Heard is a middleware of both SDKs that calls alive for all that comes in:
// a ping or a comment is a sign of life too, and no event of a reply.
func Heard(alive func()) func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	return func(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		res, err := next(req)
		if err == nil && res.Body != nil {
			alive()
			res.Body = heard{res.Body, alive}
		}
		return res, err
	}
}

type heard struct {
	io.ReadCloser
	alive func()
}

func (h heard) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if n > 0 {
		h.alive()
	}
	return n, err
}

// Client is c, or one that takes a key to no other host than the one it is for.
func Client(c *http.Client) *http.Client {
	if c != nil {
		return c
	}
	return &http.Client{CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if req.URL.Host != via[0].URL.Host || len(via) > 5 {
			return errors.New("the provider redirects to " + req.URL.Host + "; give that as the base URL if it is meant")
		}
		return nil
	}}
}
