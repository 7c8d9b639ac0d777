package executor

import (
	"context"
	"os"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/artifact"
)

// live is a step that has no result yet: it runs, or it is held.
type live struct {
	step   *v1.Step
	cancel context.CancelFunc
	shown  []string // files that only a yes to this step opens

	mu       sync.Mutex
	approval *v1.Approval           // held for this
	result   *v1.StepResult         // the end
	stdin    *os.File               // of an async command: the end that write_stdin writes to
	input    *os.File               // and the one that the command reads
	last     []byte                 // the end of what it printed
	waits    bool                   // for input
	output   *artifact.Output       // of a command: what it printed so far
	answers  chan *v1.DecideRequest // to questions about its connections, one at a time
	changed  chan struct{}          // closed and renewed when approval or result change
}

func newLive(step *v1.Step) *live {
	return &live{step: step, changed: make(chan struct{}), answers: make(chan *v1.DecideRequest, 1)}
}

func held(step *v1.Step, a *v1.Approval) *live {
	l := newLive(step)
	l.approval = a
	return l
}

func (l *live) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	close(l.changed)
	l.changed = make(chan struct{})
}

// defaultWait is how long a Submit with mode auto waits.
const defaultWait = 10 * time.Second

// settled waits until the step ended or is held; with mode auto also until it
// needs input, or the time that the planner has for it is over.
func (l *live) settled(ctx context.Context) (*v1.StepResult, error) {
	var over <-chan time.Time
	if l.step.Mode == v1.Step_auto {
		wait := time.Duration(l.step.WaitMs) * time.Millisecond
		if wait == 0 {
			wait = defaultWait
		}
		t := time.NewTimer(wait)
		defer t.Stop()
		over = t.C
	}
	for {
		l.mu.Lock()
		result, approval, changed := l.result, l.approval, l.changed
		needsInput := l.waits && over != nil
		l.mu.Unlock()
		switch {
		case result != nil:
			return result, nil
		case approval != nil:
			return awaiting(l.step, approval), nil
		case needsInput:
			return l.now(), nil
		}
		select {
		case <-changed:
		case <-over:
			return l.now(), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *session) submit(ctx context.Context, step *v1.Step, args proto.Message) (*v1.StepResult, error) {
	digest := contract.StepDigest(step)
	s.mu.Lock()
	was, _, result, err := s.journal.Step(step.StepId)
	if err != nil {
		s.mu.Unlock()
		return nil, contract.Errorf(v1.Error_unavailable, "the journal: %v", err)
	}
	if was != "" && was != digest {
		s.mu.Unlock()
		return nil, contract.Errorf(v1.Error_id_reused, "the step %s was another one before", step.StepId).
			WithField("step_id").WithHint("give every step an id of its own")
	}
	l := s.live[step.StepId]
	switch {
	case l != nil:
	case result != nil:
		s.mu.Unlock()
		return result, nil
	case s.ctx.Err() != nil:
		s.mu.Unlock()
		return nil, contract.Errorf(v1.Error_unavailable, "the session is closing")
	case step.Action == contract.RunCommand && s.commands() >= maxCommands:
		s.mu.Unlock()
		return refuse(step, contract.Errorf(v1.Error_unavailable, "%d commands run in this session, and no more may at once", maxCommands).
			WithHint("wait for one to end, or cancel one; then send the step again")), nil
	default:
		if err := s.journal.Intent(step, digest); err != nil {
			s.mu.Unlock()
			return nil, contract.Errorf(v1.Error_unavailable, "the journal: %v", err).WithHint("nothing was run")
		}
		l = newLive(step)
		if takesInput(step) {
			if err := l.openStdin(); err != nil {
				s.mu.Unlock()
				return nil, contract.Errorf(v1.Error_unavailable, "a pipe: %v", err)
			}
		}
		s.live[step.StepId] = l
		s.start(l, args, false)
	}
	s.mu.Unlock()
	if step.Mode == v1.Step_async {
		return l.now(), nil
	}
	return l.settled(ctx)
}

// maxCommands is how many commands of a session may run or be held at once.
const maxCommands = 64

// commands is how many commands have no result yet; the caller holds s.mu.
func (s *session) commands() (n int) {
	for _, l := range s.live {
		if l.step.Action == contract.RunCommand {
			n++
		}
	}
	return n
}

// now is the step's state at this instant, without waiting.
func (l *live) now() *v1.StepResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.result != nil:
		return l.result
	case l.approval != nil:
		return awaiting(l.step, l.approval)
	}
	r := newResult(l.step)
	r.Status = v1.Status_running
	if l.waits {
		r.Status, r.Output = v1.Status_needs_input, &v1.Output{Text: l.prompt()}
	}
	return r
}

// start runs a step on a goroutine of the session: it goes on when the caller
// goes away, and ends with the session. The caller holds s.mu.
func (s *session) start(l *live, args proto.Message, approved bool) {
	ctx, cancel := context.WithCancel(s.ctx)
	l.cancel = cancel
	s.wg.Go(func() {
		defer cancel()
		result := s.run(ctx, l, args, approved)
		if result.Status == v1.Status_awaiting_approval {
			l.set(func() { l.approval = result.Approval })
			s.expire(l, result.Approval)
			return
		}
		s.retire(result)
	})
}

func newResult(step *v1.Step) *v1.StepResult {
	return &v1.StepResult{StepId: step.StepId, SessionId: step.SessionId, Action: step.Action}
}

// refuse is the result of a step that could not be done.
func refuse(step *v1.Step, err error) *v1.StepResult {
	r := newResult(step)
	fail(r, err)
	return r
}

// fail puts an error into a result, with the status that fits its kind.
func fail(r *v1.StepResult, err error) {
	e := contract.AsError(err)
	r.Error, r.Status = e.Proto(), v1.Status_error
	switch e.Kind {
	case v1.Error_denied, v1.Error_expired:
		r.Status = v1.Status_denied
	case v1.Error_stale:
		r.Status = v1.Status_conflict
	case v1.Error_cancelled:
		r.Status = v1.Status_cancelled
	}
}

func awaiting(step *v1.Step, a *v1.Approval) *v1.StepResult {
	r := newResult(step)
	r.Status, r.Approval, r.Decision = v1.Status_awaiting_approval, a, a.Decision
	return r
}
