package model

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestKinds(t *testing.T) {
	for _, c := range []struct {
		status  int
		message string
		want    Kind
	}{
		{401, "invalid x-api-key", Auth},
		{403, "forbidden", Auth},
		{400, "messages: bad", Invalid},
		{404, "no such model", Invalid},
		{400, "prompt is too long: 300000 tokens > 200000 maximum", Context},
		{400, "This model's maximum context length is 8192 tokens", Context},
		{400, "the request exceeds the available context size", Context},
		{400, "input length and `max_tokens` exceed context limit", Context},
		{400, "tool_calls.0.id: string too long", Invalid},
		{413, "request_too_large", Context},
		{429, "slow down", RateLimit},
		{429, "You exceeded your current quota (insufficient_quota)", Invalid},
		{408, "timeout", Network},
		{500, "internal", Overload},
		{504, "the upstream took too long to answer", Overload},
		{529, "overloaded", Overload},
	} {
		if e := FromHTTP(c.status, nil, c.message); e.Kind != c.want || e.Status != c.status {
			t.Errorf("%d %q: %v, want %v", c.status, c.message, e.Kind, c.want)
		}
	}
	for code, want := range map[string]Kind{"overloaded_error": Overload, "api_error": Overload, "server_error": Overload, "": Overload,
		"rate_limit_error": RateLimit, "rate_limit_exceeded": RateLimit, "authentication_error": Auth,
		"invalid_request_error": Invalid, "context_length_exceeded": Context} {
		if e := FromStream(code, "m"); e.Kind != want || e.Status != 0 || e.Message == "" {
			t.Errorf("in a stream, %q: %+v, want %v", code, e, want)
		}
	}
}

// The header has two forms (RFC 9110), and servers write more.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // now is a whole second
		ahead := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
		for v, want := range map[string]time.Duration{
			"": 0, "3": 3 * time.Second, "0.5": 500 * time.Millisecond, "0": 0, "-5": 0, "soon": 0, "NaN": 0,
			"1e300": 1e18, "Inf": 1e18, "86400": 24 * time.Hour,
			ahead(3 * time.Second): 3 * time.Second, ahead(-time.Hour): 0,
		} {
			if got := retryAfter(http.Header{"Retry-After": {v}}); got != want {
				t.Errorf("%q: %v, want %v", v, got, want)
			}
		}
	})
}

func TestFailure(t *testing.T) {
	err := Failure(t.Context(), errors.New("https://h/?key=sk-secret: refused"), nil, "sk-secret")
	var e *Error
	if !errors.As(err, &e) || e.Kind != Network || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	if e := FromHTTP(502, nil, strings.Repeat("<html>", 1000)); len(e.Message) > 2100 {
		t.Errorf("a page of %d bytes", len(e.Message))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Failure(ctx, errors.New("x"), FromHTTP(401, nil, ""), ""); err != context.Canceled {
		t.Errorf("interrupted: %v", err)
	}
}

// A silent line ends; one that says anything does not.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, alive, stop := Idle(t.Context())
		defer stop()
		time.Sleep(4 * time.Minute)
		alive()
		<-ctx.Done()
		if d := time.Since(start); d != 9*time.Minute {
			t.Errorf("ended after %v", d)
		}
		var e *Error
		if err := Failure(ctx, ctx.Err(), nil, ""); !errors.As(err, &e) || e.Kind != Network {
			t.Errorf("%v", err)
		}
	})
}

func TestRedirectTakesNoKeyElsewhere(t *testing.T) {
	from, _ := http.NewRequest("POST", "https://api.example/v1", nil)
	for to, ok := range map[string]bool{"https://api.example/v2": true, "https://other.example/v1": false} {
		req, _ := http.NewRequest("POST", to, nil)
		if err := Client(nil).CheckRedirect(req, []*http.Request{from}); (err == nil) != ok {
			t.Errorf("%s: %v", to, err)
		}
	}
}
