package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Retries of one request, and the longest single wait.
const (
	maxRetries = 6
	maxWait    = 2 * time.Minute
)

// Complete is m.Complete with errors that may pass retried: after what the
// provider asks for, else after a growing time. wait is called before each
// wait. The wait ends with ctx. What a failed try has streamed is no part of
// the reply.
func Complete(ctx context.Context, m Model, req *Request, emit func(Delta), wait func(err *Error, d time.Duration, attempt int)) (*Reply, error) {
	for attempt := 1; ; attempt++ {
		reply, err := m.Complete(ctx, req, emit)
		var e *Error
		if err == nil || ctx.Err() != nil || !errors.As(err, &e) || !e.Retryable() {
			return reply, err
		}
		if e.RetryAfter > maxWait {
			return nil, e.with("it asks to wait %v, longer than the %v that are waited here; go on later", e.RetryAfter.Round(time.Second), maxWait)
		}
		if attempt > maxRetries {
			return nil, e.with("given up after %d tries", attempt)
		}
		d := e.RetryAfter
		if d == 0 {
			d = min(time.Second<<(attempt-1), maxWait)
			d = d/2 + rand.N(d/2)
		}
		wait(e, d, attempt)
		t := time.NewTimer(d)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		}
	}
}

// with is the error with a word on why it is the last one.
func (e *Error) with(format string, args ...any) *Error {
	last := *e
	last.Message += "; " + fmt.Sprintf(format, args...)
	return &last
}
