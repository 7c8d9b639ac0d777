package planner

import (
	"context"
	"errors"

	v1 "harness/contract/harness/v1"
)

// ask has a held step decided: by the surface, or by whoever is first elsewhere.
// No answer is a no.
func (r *run) ask(ctx context.Context, a *v1.Approval) error {
	if err := r.emit("approval.requested", protoJSON(a)); err != nil {
		return err
	}
	asking, cancel := context.WithCancel(ctx)
	elsewhere := make(chan struct{})
	go func() {
		defer close(elsewhere)
		r.awaitDecision(asking, a)
		cancel()
	}()
	d, err := r.Surface.Ask(asking, a)
	cancel()
	<-elsewhere
	if err != nil {
		d = &v1.DecideRequest{Answer: v1.DecideRequest_deny, Message: "nobody can answer: " + err.Error()}
	}
	d.SessionId, d.ApprovalId, d.Digest = a.SessionId, a.ApprovalId, a.Digest
	got, err := r.Executor.Decide(context.WithoutCancel(ctx), d)
	if err != nil {
		return err
	}
	return r.emit("approval.decided", protoJSON(got.Decided))
}

var errDecided = errors.New("decided")

// awaitDecision returns when an approval has its answer, or ctx ends. It watches
// on its own: the run's watcher may stand still while the surface asks.
func (r *run) awaitDecision(ctx context.Context, a *v1.Approval) {
	err := r.Executor.Watch(ctx, &v1.WatchRequest{SessionId: a.SessionId, FromSeq: max(r.FromSeq, r.seen.Load()), Follow: true}, func(e *v1.Event) error {
		if e.GetApprovalDecided().GetApprovalId() == a.ApprovalId {
			return errDecided
		}
		return nil
	})
	if !errors.Is(err, errDecided) {
		<-ctx.Done() // who asks still waits for an answer here
	}
}
