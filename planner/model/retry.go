package model

import (
	"context"
	"errors"
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
// wait. The wait ends with ctx.
func Complete(ctx context.Context, m Model, req *Request, emit func(Delta), wait func(err *Error, d time.Duration, attempt int)) (*Reply, error) {
	for attempt := 1; ; attempt++ {
		reply, err := m.Complete(ctx, req, emit)
		var e *Error
		if err == nil || ctx.Err() != nil || !errors.As(err, &e) || !e.Retryable() || attempt > maxRetries || e.RetryAfter > maxWait {
			return reply, err
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
