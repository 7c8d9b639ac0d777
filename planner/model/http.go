package model

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// FromHTTP is a provider's answer with an error status as an Error.
func FromHTTP(status int, header http.Header, message string) *Error {
	e := &Error{Status: status, Message: message, RetryAfter: retryAfter(header)}
	low := strings.ToLower(message)
	switch {
	case status == 401 || status == 403:
		e.Kind = Auth
	case status == 413, strings.Contains(low, "too long"), strings.Contains(low, "context_length"), strings.Contains(low, "context length"),
		strings.Contains(low, "maximum context"), strings.Contains(low, "context window"):
		e.Kind = Context
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

// retryAfter reads Retry-After: seconds, or a date (RFC 9110, section 10.2.3).
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 {
		return time.Duration(s * float64(time.Second))
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(t))
	}
	return 0
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

// Tidy makes messages that every provider takes: none empty, no two of the
// user in a row, every call with a result and no result without its call.
func Tidy(messages []Message) []Message {
	var out []Message
	for i, m := range messages {
		if m.Role == ToolRole {
			if len(out) == 0 || len(out[len(out)-1].Calls) == 0 {
				continue
			}
			m.Results = matching(out[len(out)-1].Calls, m.Results)
		}
		if m.Text == "" && len(m.Calls) == 0 && len(m.Results) == 0 {
			continue
		}
		if n := len(out); n > 0 && m.Role == User && out[n-1].Role == User {
			out[n-1].Text += "\n\n" + m.Text
			continue
		}
		out = append(out, m)
		if len(m.Calls) > 0 && (i+1 == len(messages) || messages[i+1].Role != ToolRole) {
			out = append(out, Message{Role: ToolRole, Results: matching(m.Calls, nil)})
		}
	}
	return out
}

func matching(calls []ToolCall, results []ToolResult) []ToolResult {
	list := make([]ToolResult, len(calls))
	for i, c := range calls {
		list[i] = ToolResult{CallID: c.ID, Name: c.Name, Text: "no result", IsError: true}
		for _, r := range results {
			if r.CallID == c.ID {
				list[i] = r
			}
		}
		if list[i].Text == "" {
			list[i].Text = "(empty)"
		}
	}
	return list
}
