package executor

import (
	"fmt"
	"log/slog"
	"maps"

	"google.golang.org/protobuf/proto"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/audit"
	"harness/executor/mcp"
	"harness/executor/policy"
)

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
	case contract.CallMCPTool:
		args, _ := f["arguments"].MarshalJSON()
		return fmt.Sprintf("%s %.2000s", mcp.Name(f["server"].GetStringValue(), f["tool"].GetStringValue()), args)
	}
	return step.Action + " " + f["path"].GetStringValue()
}

// carryOut runs or refuses a step that was held.
//
// The answer is marked as taken up before it has an effect: after a crash, one
// that is not is still to be carried out, and a step whose answer is taken up and
// that has no result may have run, and is interrupted.
func (s *session) carryOut(l *live, a *v1.Approval, d *v1.DecideRequest, args proto.Message) error {
	l.set(func() { l.approval = nil }) // whoever hears of the answer finds the step held no more
	err := s.audit.Add(audit.Answer(a.StepId, d))
	if err == nil {
		err = s.event(&v1.Event{StepId: a.StepId, Event: &v1.Event_ApprovalDecided{ApprovalDecided: d}})
	}
	if err == nil {
		err = s.journal.TakeUp(a.ApprovalId)
	}
	if a.Host != "" {
		if err != nil {
			d = s.own(a, "executor", "the answer could not be recorded")
		}
		l.answers <- d
		return nil
	}
	if err != nil {
		l.set(func() { l.approval = a })
		return contract.Errorf(v1.Error_unavailable, "the answer is kept, and holds when the session is opened again: %v", err)
	}
	if d.Answer == v1.DecideRequest_deny {
		r := newResult(l.step)
		r.Decision = proto.CloneOf(a.Decision)
		e := contract.Errorf(v1.Error_denied, "%s said no", who(d))
		if d.Message != "" {
			e.Message += ": " + d.Message
		}
		fail(r, e)
		s.retire(s.settle(r, nil))
		return nil
	}
	approved := a.Digest == s.bind(l.step, args) // else something changed meanwhile, and it is asked again
	if approved && d.Scope == v1.DecideRequest_always && a.Rule != "" {
		s.always(a.Rule)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if approved && d.Scope != v1.DecideRequest_once {
		s.granted[grantKey(l.step)] = true
	}
	s.start(l, args, approved)
	return nil
}

// waits is the approval that a step without a result is held for: one without an
// answer, or with an answer that was not taken up.
func (s *session) waits(step *v1.Step) (*v1.Approval, error) {
	a, decided, err := s.journal.ApprovalOf(step.StepId)
	if err != nil || a == nil {
		return nil, err
	}
	if a.Host != "" { // it ran, and a connection of it waited
		return nil, nil
	}
	if decided == nil {
		return a, nil
	}
	taken, err := s.journal.TakenUp(a.ApprovalId)
	if taken {
		return nil, err
	}
	return a, err
}

// resume takes up what was left when the session was last closed or killed:
// questions without an answer wait on, answers that came meanwhile are carried out.
func (s *session) resume() error {
	for id, l := range maps.Clone(s.live) {
		if takesInput(l.step) {
			if err := l.openStdin(); err != nil {
				return contract.Errorf(v1.Error_unavailable, "a pipe: %v", err)
			}
		}
		a, decided, err := s.journal.ApprovalOf(id)
		if err != nil {
			return contract.Errorf(v1.Error_unavailable, "the journal: %v", err)
		}
		if decided == nil {
			s.x.cfg.OnHeld()
			s.wg.Go(func() { s.expire(l, a) })
			continue
		}
		args, err := contract.Validate(l.step)
		if err == nil {
			err = s.carryOut(l, a, decided, args)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
