package executor

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/audit"
	"harness/executor/policy"
)

// hold makes a step wait for an answer. The approval is bound to the digest of
// exactly what would run, under the policy that asked.
func (s *session) hold(step *v1.Step, v policy.Verdict) *v1.StepResult {
	a := &v1.Approval{ApprovalId: "a_" + rand.Text(), StepId: step.StepId, SessionId: s.id,
		Digest: s.bind(step), Summary: summary(step), Rule: v.Rule, Decision: v.Decision,
		Expires: timestamppb.New(time.Now().Add(s.x.cfg.ApprovalTTL))}
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
	return awaiting(step, a)
}

func (s *session) bind(step *v1.Step) string {
	sum := sha256.Sum256([]byte(contract.StepDigest(step) + "\n" + s.currentPolicy().Version()))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// grantKey is what "for this session" remembers: the same action with the same args.
func grantKey(step *v1.Step) string {
	return contract.StepDigest(&v1.Step{Action: step.Action, Args: step.Args})
}

func (s *session) isGranted(step *v1.Step) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.granted[grantKey(step)]
}

// summary is what would run, in words for a person.
func summary(step *v1.Step) string {
	f := step.GetArgs().GetFields()
	switch step.Action {
	case contract.RunCommand:
		return f["cmd"].GetStringValue()
	case contract.ApplyPatch:
		return f["patch"].GetStringValue()
	}
	return step.Action + " " + f["path"].GetStringValue()
}

// decide takes the first answer to an approval, checks it, and lets the step go on.
func (s *session) decide(d *v1.DecideRequest) (*v1.DecideResponse, error) {
	if d.Answer != v1.DecideRequest_allow && d.Answer != v1.DecideRequest_deny {
		return nil, contract.Errorf(v1.Error_invalid, "must be allow or deny").WithField("answer")
	}
	a, decided, err := s.journal.Approval(d.ApprovalId)
	switch {
	case err != nil:
		return nil, contract.Errorf(v1.Error_unavailable, "the journal: %v", err)
	case a == nil:
		return nil, contract.Errorf(v1.Error_not_found, "there is no approval %q", d.ApprovalId).WithField("approval_id")
	case decided != nil:
		return &v1.DecideResponse{Decided: decided}, nil
	case d.Digest != a.Digest:
		return nil, contract.Errorf(v1.Error_invalid, "the answer is to %s, the question is about %s", d.Digest, a.Digest).WithField("digest")
	}
	if time.Now().After(a.Expires.AsTime()) {
		d = &v1.DecideRequest{SessionId: s.id, ApprovalId: a.ApprovalId, Digest: a.Digest, Answer: v1.DecideRequest_deny,
			Message: "the waiting time was over", Surface: "expiry"}
	}
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
		_, decided, _ := s.journal.Approval(d.ApprovalId)
		return &v1.DecideResponse{Decided: decided}, nil
	}
	if err := s.audit.Add(audit.Answer(a.StepId, d)); err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "%v", err)
	}
	if err := s.event(&v1.Event{StepId: a.StepId, Event: &v1.Event_ApprovalDecided{ApprovalDecided: d}}); err != nil {
		return nil, err
	}
	s.carryOut(l, a, d, args)
	return &v1.DecideResponse{Accepted: d.Surface != "expiry", Decided: d}, nil
}

// carryOut runs or refuses a step that was held.
func (s *session) carryOut(l *live, a *v1.Approval, d *v1.DecideRequest, args proto.Message) {
	if d.Answer == v1.DecideRequest_deny {
		r := newResult(l.step)
		r.Decision = proto.CloneOf(a.Decision)
		e := contract.Errorf(v1.Error_denied, "%s said no", who(d))
		if d.Message != "" {
			e.Message += ": " + d.Message
		}
		fail(r, e)
		s.retire(s.settle(r, nil))
		return
	}
	approved := a.Digest == s.bind(l.step) // else something changed meanwhile, and it is asked again
	s.mu.Lock()
	if d.Scope != v1.DecideRequest_once {
		s.granted[grantKey(l.step)] = true
	}
	s.mu.Unlock()
	if d.Scope == v1.DecideRequest_always && a.Rule != "" {
		s.always(a.Rule)
	}
	l.set(func() { l.approval = nil })
	s.mu.Lock()
	s.start(l, args, approved)
	s.mu.Unlock()
}

// always saves a rule in the user's policy and lets it count from now on.
func (s *session) always(rule string) {
	if file := s.x.cfg.Policy.UserFile; file != "" {
		if err := policy.SaveRule(file, rule); err != nil {
			slog.Error("the rule could not be saved", "rule", rule, "file", file, "err", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, err := s.policy.Grant(rule); err == nil {
		s.policy = p
		s.audit.Later(audit.Record{Kind: audit.Policy, Policy: p.Version(), Note: "granted: " + rule})
	}
}

func who(d *v1.DecideRequest) string {
	switch {
	case d.Approver != "":
		return d.Approver
	case d.Surface != "":
		return "the " + d.Surface
	}
	return "the user"
}
