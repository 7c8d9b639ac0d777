package executor

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/workspace"
)

// run is the way of one step, from its intent, which is in the journal, to its
// outcome:
//
//	policy → (approval) → transaction → action → change set → expectations → journal → landing
//
// The outcome is durable before the changes land: after a crash in between,
// recovery lands them; before it, recovery takes them back.
func (s *session) run(ctx context.Context, l *live, args proto.Message, approved bool) *v1.StepResult {
	step, start := l.step, time.Now()
	r := newResult(step)
	verdict := s.judge(step, args)
	r.Decision, l.shown = verdict.Decision, verdict.Shown
	switch r.Decision.Verdict {
	case v1.Decision_allow:
	case v1.Decision_ask:
		if !approved && !s.isGranted(step) {
			return s.hold(step, args, verdict)
		}
	default:
		s.refused(step, r.Decision)
		fail(r, denied(r.Decision))
		return s.settle(r, nil)
	}
	if err := s.begin(step, r.Decision); err != nil {
		fail(r, err)
		return s.settle(r, nil)
	}
	var tx *workspace.Tx
	if changes(step) {
		var err error
		if a, ok := args.(*v1.ApplyArgs); ok {
			tx, err = s.ws.BeginApply(step.StepId, workspace.Apply{Paths: a.Paths, Hunks: a.Hunks, Force: a.Force})
		} else {
			tx, err = s.ws.Begin(step.StepId)
		}
		if err != nil {
			var ce *contract.Error
			if !errors.As(err, &ce) {
				err = contract.Errorf(v1.Error_unavailable, "the step could not begin: %v", err).WithHint("nothing was run")
			}
			fail(r, err)
			return s.settle(r, nil)
		}
	}
	if err := s.act(ctx, l, args, tx, r); err != nil {
		fail(r, err)
	}
	s.checkChanges(tx, r)
	s.checkExpect(step, tx, r)
	if r.Usage == nil {
		r.Usage = &v1.Usage{}
	}
	r.Usage.WallMs = float64(time.Since(start).Microseconds()) / 1000
	return s.settle(r, tx)
}

// changes says whether a step may change the workspace, and so is a transaction.
func changes(step *v1.Step) bool {
	switch step.Action {
	case contract.WriteFile, contract.EditFile, contract.ApplyPatch, contract.Apply:
		return true
	case contract.RunCommand:
		return step.GetSafety().GetWrites() != v1.Safety_none
	}
	return false
}

func denied(d *v1.Decision) *contract.Error {
	e := contract.Errorf(v1.Error_denied, "not allowed: %s", d.Reason)
	if d.Part != "" {
		e.Message += ": " + d.Part
	}
	if d.Rule != "" {
		e = e.WithHint("rule %s, from %s", d.Rule, d.Source)
	}
	return e
}

// act calls the step's action.
func (s *session) act(ctx context.Context, l *live, args proto.Message, tx *workspace.Tx, r *v1.StepResult) error {
	switch a := args.(type) {
	case *v1.RunCommandArgs:
		return s.runCommand(ctx, l, a, tx, r)
	case *v1.WriteStdinArgs:
		return s.writeStdin(a, r)
	case *v1.CancelStepArgs:
		return s.cancelStep(a, r)
	case *v1.ReadOutputArgs:
		return s.readPrinted(ctx, a, r)
	case *v1.DiffArgs:
		return s.diff(a, r)
	case *v1.RestoreArgs:
		return s.restore(a, r)
	case *v1.DiscardArgs:
		return s.discard(l.step, a, r)
	case *v1.ListMcpToolsArgs:
		return s.listTools(ctx, r)
	case *v1.CallMcpToolArgs:
		return s.callTool(ctx, a, r)
	case *v1.ApplyArgs:
		r.Status = v1.Status_ok
		return nil
	}
	return s.fileAction(ctx, l, args, tx, r)
}

// maxChanges is how many changes a result lists; its total counts all.
const maxChanges = 1000

// checkChanges puts the exact change set into the result. Changes that the
// policy denies do not land, none of them.
func (s *session) checkChanges(tx *workspace.Tx, r *v1.StepResult) {
	if tx == nil {
		return
	}
	cs, err := tx.Changes()
	if err != nil {
		fail(r, contract.Errorf(v1.Error_internal, "the step's changes: %v", err).WithHint("nothing was changed"))
		return
	}
	if len(cs.Changes) == 0 && len(cs.Conflicts) == 0 {
		return
	}
	r.Changes = cs
	if d := s.judgeChanges(cs, tx, r); d != nil {
		r.Decision = d
		fail(r, denied(d).WithHint("rule %s, from %s; nothing of this step was put in place", d.Rule, d.Source))
		return
	}
	cs.Changes = cs.Changes[:min(len(cs.Changes), maxChanges)] // all of them have been judged
	if len(cs.Conflicts) > 0 {
		if r.Status == v1.Status_ok {
			r.Status = v1.Status_conflict
		}
		r.Error = contract.Errorf(v1.Error_stale, "%s: %s", cs.Conflicts[0].Path, cs.Conflicts[0].Reason).Proto()
	}
}

// settle makes the outcome durable, lands or drops the changes, and tells everyone.
func (s *session) settle(r *v1.StepResult, tx *workspace.Tx) *v1.StepResult {
	r.Enforced = s.enforced
	land := tx != nil && r.Changes != nil && r.Status != v1.Status_error && r.Status != v1.Status_denied
	if !land {
		if r.Status == v1.Status_denied || r.Status == v1.Status_error {
			r.Changes = nil
		}
		if tx != nil {
			if err := tx.Discard(); err != nil {
				r.Notes = append(r.Notes, "the step's scratch folder is left: "+err.Error())
			}
		}
	}
	if !land {
		return s.finish(r, s.recordEnd)
	}
	if err := s.outcome(r, func() error { return s.journal.Outcome(r) }); err != nil {
		tx.Discard()
		return s.finish(unrecorded(r, err), s.journal.Append)
	}
	if err := tx.Land(); err != nil {
		r.Changes = nil
		fail(r, contract.Errorf(v1.Error_unavailable, "the changes could not be put in place: %v", err).WithHint("nothing was changed"))
		return s.finish(r, s.recordEnd)
	}
	return s.finish(r, s.journal.Append)
}

// finish records the end of a step and gives out its result: whoever hears of
// the end finds the step ended.
func (s *session) finish(r *v1.StepResult, record func(*v1.Event) error) *v1.StepResult {
	e := &v1.Event{SessionId: s.id, StepId: r.StepId, Time: timestamppb.Now(), Event: &v1.Event_Finished{Finished: r}}
	if err := record(e); err != nil && r.Changes == nil {
		r = unrecorded(r, err)
	} else if err != nil {
		r.Notes = append(r.Notes, "the journal: "+err.Error())
	}
	s.retire(r)
	s.announce()
	return r
}

// recordEnd records a result together with the event of it.
func (s *session) recordEnd(e *v1.Event) error {
	return s.outcome(e.GetFinished(), func() error { return s.journal.Finish(e) })
}

// unrecorded is the answer where the journal takes nothing any more.
func unrecorded(r *v1.StepResult, err error) *v1.StepResult {
	return refuse(&v1.Step{StepId: r.StepId, SessionId: r.SessionId, Action: r.Action},
		contract.Errorf(v1.Error_unavailable, "the outcome could not be recorded: %v", err).
			WithHint("nothing was changed; make room on the disk and open the session again"))
}

// retire takes a step off the running ones and wakes those who wait for it.
func (s *session) retire(r *v1.StepResult) {
	s.mu.Lock()
	l := s.live[r.StepId]
	delete(s.live, r.StepId)
	s.mu.Unlock()
	if l != nil {
		l.set(func() { l.result, l.approval = r, nil })
	}
}
