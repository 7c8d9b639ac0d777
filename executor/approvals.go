package executor

import (
	"crypto/rand"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/approval"
	"harness/executor/audit"
	"harness/executor/policy"
)

// hold makes a step wait for an answer, which is bound to the digest of exactly
// what would run.
func (s *session) hold(step *v1.Step, args proto.Message, v policy.Verdict) *v1.StepResult {
	now := time.Now()
	a := &v1.Approval{ApprovalId: "a_" + rand.Text(), StepId: step.StepId, SessionId: s.id,
		Digest: s.bind(step, args), Summary: summary(step), Rule: v.Rule, Decision: v.Decision,
		Asked: timestamppb.New(now), Expires: timestamppb.New(now.Add(s.x.cfg.ApprovalTTL))}
	if c, ok := args.(*v1.RunCommandArgs); ok {
		a.Cwd = s.resolve(s.abs(c.Cwd))
	}
	err := s.audit.Add(audit.Question(step, a))
	if err == nil {
		err = s.journal.Ask(a)
	}
	if err == nil {
		err = s.event(&v1.Event{StepId: step.StepId, Event: &v1.Event_ApprovalRequested{ApprovalRequested: a}})
	}
	if err != nil {
		r := newResult(step)
		fail(r, contract.Errorf(v1.Error_unavailable, "the question could not be recorded: %v", err))
		return s.settle(r, nil)
	}
	s.x.cfg.OnHeld()
	return awaiting(step, a)
}

// expire waits as long as a step is held, and answers no when the time is over.
func (s *session) expire(l *live, a *v1.Approval) {
	over := time.NewTimer(time.Until(a.Expires.AsTime()))
	defer over.Stop()
	for {
		l.mu.Lock()
		now, changed := l.approval, l.changed
		l.mu.Unlock()
		if now != a {
			return
		}
		select {
		case <-changed:
		case <-s.ctx.Done():
			return
		case <-over.C:
			if _, err := s.conclude(a, s.own(a, "expiry", "the waiting time was over")); err != nil {
				slog.Error("a question could not expire", "approval", a.ApprovalId, "err", err)
			}
			return
		}
	}
}

// own is a no of the executor itself.
func (s *session) own(a *v1.Approval, surface, message string) *v1.DecideRequest {
	return &v1.DecideRequest{SessionId: s.id, ApprovalId: a.ApprovalId, Digest: a.Digest, Answer: v1.DecideRequest_deny,
		Message: message, Surface: surface, Time: timestamppb.Now()}
}

// decide checks somebody's answer to an approval and takes it if it is the first.
func (s *session) decide(d *v1.DecideRequest) (*v1.DecideResponse, error) {
	a, decided, err := s.journal.Approval(d.ApprovalId)
	if err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "the journal: %v", err)
	}
	if d, err = admit(a, d, s.x.cfg); err != nil {
		return nil, err
	}
	if decided != nil {
		return &v1.DecideResponse{Decided: decided}, nil
	}
	if time.Now().After(a.Expires.AsTime()) {
		d = s.own(a, "expiry", "the waiting time was over")
	}
	return s.conclude(a, d)
}

// skew is how far the clock of a machine that signs may be off.
const skew = 5 * time.Minute

// admit checks that an answer is one to this question, and from somebody who may give it.
func admit(a *v1.Approval, d *v1.DecideRequest, c Config) (*v1.DecideRequest, error) {
	switch {
	case d.Answer != v1.DecideRequest_allow && d.Answer != v1.DecideRequest_deny:
		return nil, contract.Errorf(v1.Error_invalid, "must be allow or deny").WithField("answer")
	case a == nil:
		return nil, contract.Errorf(v1.Error_not_found, "there is no approval %q", d.ApprovalId).WithField("approval_id")
	case d.Digest != a.Digest:
		return nil, contract.Errorf(v1.Error_invalid, "the answer is to %s, the question is about %s", d.Digest, a.Digest).WithField("digest")
	}
	d = proto.CloneOf(d)
	if d.Signature == "" {
		if c.SignedAnswers {
			return nil, contract.Errorf(v1.Error_denied, "this executor takes signed answers only").WithField("signature")
		}
		d.Time = timestamppb.Now()
		return d, nil
	}
	approver, err := approval.Check(d, c.Approvers)
	if err != nil {
		return nil, contract.Errorf(v1.Error_denied, "the answer is refused: %v", err).WithField("signature")
	}
	at := d.Time.AsTime()
	if at.Before(a.Asked.AsTime().Add(-skew)) || at.After(time.Now().Add(skew)) {
		return nil, contract.Errorf(v1.Error_denied, "the answer is refused: its time %s is not between question and now", at.Format(time.RFC3339)).WithField("time")
	}
	d.Approver = approver
	return d, nil
}

// conclude records an answer, if it is the first, and lets the step go on.
func (s *session) conclude(a *v1.Approval, d *v1.DecideRequest) (*v1.DecideResponse, error) {
	l, err := s.target(a.StepId)
	if err != nil {
		return nil, err
	}
	args, err := contract.Validate(l.step)
	if err != nil {
		return nil, err
	}
	won, err := s.journal.Decide(d)
	if err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "the journal: %v", err)
	}
	if !won {
		_, decided, err := s.journal.Approval(d.ApprovalId)
		return &v1.DecideResponse{Decided: decided}, err
	}
	if err := s.carryOut(l, a, d, args); err != nil {
		return nil, err
	}
	return &v1.DecideResponse{Accepted: d.Surface != "expiry", Decided: d}, nil
}
