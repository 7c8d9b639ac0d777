package model

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fails is a model that answers with errors first, and with "good" after them.
type fails struct {
	errs  []error
	tries int
}

func (f *fails) Name() string { return "fails" }
func (f *fails) Info() Info   { return Info{} }
func (f *fails) Complete(context.Context, *Request, func(Delta)) (*Reply, error) {
	f.tries++
	if f.tries <= len(f.errs) {
		return nil, f.errs[f.tries-1]
	}
	return &Reply{Message: Message{Text: "good"}}, nil
}

func times(n int, err error) (list []error) {
	for range n {
		list = append(list, err)
	}
	return list
}

func TestComplete(t *testing.T) {
	limited := func(d time.Duration) *Error {
		return &Error{Kind: RateLimit, Status: 429, RetryAfter: d, Message: "slow down"}
	}
	over := &Error{Kind: Overload, Status: 529, Message: "overloaded"}
	for _, c := range []struct {
		name     string
		errs     []error
		tries    int
		min, max time.Duration // waited in all
		fails    string
	}{
		{"none", nil, 1, 0, 0, ""},
		{"as long as asked", times(2, limited(3*time.Second)), 3, 6 * time.Second, 6 * time.Second, ""},
		{"growing, with jitter", times(3, over), 4, 3500 * time.Millisecond, 7 * time.Second, ""},
		{"a cut stream", []error{Unfinished()}, 2, 500 * time.Millisecond, time.Second, ""},
		{"for ever", times(99, over), 7, 31500 * time.Millisecond, 63 * time.Second, "overload: overloaded; given up after 7 tries (HTTP 529)"},
		{"a day", times(99, limited(24*time.Hour)), 1, 0, 0, "24h0m0s"},
		{"just the longest", times(1, limited(2*time.Minute)), 2, 2 * time.Minute, 2 * time.Minute, ""},
		{"refused", times(99, &Error{Kind: Invalid, Status: 400, Message: "an unknown reason"}), 1, 0, 0, "an unknown reason"},
		{"no key", times(99, &Error{Kind: Auth}), 1, 0, 0, "auth"},
		{"too long", times(99, &Error{Kind: Context}), 1, 0, 0, "context"},
		{"not of a provider", times(99, errors.New("a bug")), 1, 0, 0, "a bug"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, start, said := &fails{errs: c.errs}, time.Now(), time.Duration(0)
				r, err := Complete(t.Context(), m, nil, nil, func(_ *Error, d time.Duration, attempt int) {
					if said += d; attempt != m.tries {
						t.Errorf("attempt %d after %d tries", attempt, m.tries)
					}
				})
				waited := time.Since(start)
				if m.tries != c.tries || waited < c.min || waited > c.max || said != waited {
					t.Errorf("%d tries, waited %v, said %v", m.tries, waited, said)
				}
				if c.fails == "" && (err != nil || r.Message.Text != "good") || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
					t.Errorf("%+v, %v", r, err)
				}
			})
		})
	}
}

func TestWaitIsInterruptible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		m := &fails{errs: times(9, &Error{Kind: RateLimit, RetryAfter: time.Minute})}
		_, err := Complete(ctx, m, nil, nil, func(*Error, time.Duration, int) {})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 10*time.Second || m.tries != 1 {
			t.Errorf("%v after %v, %d tries", err, time.Since(start), m.tries)
		}
	})
}
