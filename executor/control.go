package executor

import (
	"fmt"
	"slices"
	"strings"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/artifact"
	"harness/executor/workspace"
)

// target is the running step that another one is about.
func (s *session) target(id string) (*live, error) {
	s.mu.Lock()
	l := s.live[id]
	s.mu.Unlock()
	if l == nil {
		return nil, contract.Errorf(v1.Error_not_found, "no step %q is running", id).WithField("args.target")
	}
	return l, nil
}

// cancelStep ends a running step, or one that waits for an approval.
func (s *session) cancelStep(a *v1.CancelStepArgs, r *v1.StepResult) error {
	l, err := s.target(a.Target)
	if err != nil {
		return err
	}
	l.mu.Lock()
	approval := l.approval
	l.mu.Unlock()
	r.Status = v1.Status_ok
	if approval.GetHost() != "" {
		l.cancel() // and with it the question
		return nil
	}
	if approval != nil {
		_, err := s.conclude(approval, s.own(approval, "cancel_step", "cancelled"))
		return err
	}
	l.cancel()
	return nil
}

func (s *session) writeStdin(a *v1.WriteStdinArgs, r *v1.StepResult) error {
	l, err := s.target(a.Target)
	if err != nil {
		return err
	}
	l.mu.Lock()
	w := l.stdin
	l.mu.Unlock()
	if w == nil {
		return contract.Errorf(v1.Error_unsupported, "the step %s takes no input", a.Target).WithHint("start it with mode async or auto")
	}
	l.set(func() { l.waits = false })
	if _, err := w.WriteString(a.Text); err != nil {
		return contract.Errorf(v1.Error_unavailable, "the step %s no longer reads: %v", a.Target, err)
	}
	if a.Eof {
		l.closeStdin()
	}
	r.Status = v1.Status_ok
	return nil
}

// diff shows what the session changed, the whole kept as an artifact where it is long.
func (s *session) diff(a *v1.DiffArgs, r *v1.StepResult) error {
	text, err := s.ws.Diff(a.Step, a.Paths, func(p string) bool { return !s.readable(p) })
	if err != nil {
		return err
	}
	o := artifact.NewOutput(s.store, maxOutputText)
	o.Write([]byte(text))
	if r.Output, err = o.Result(); err != nil {
		return err
	}
	r.Status = v1.Status_ok
	return nil
}

// discard drops what a staged session holds.
func (s *session) discard(step *v1.Step, a *v1.DiscardArgs, r *v1.StepResult) error {
	cs, err := s.ws.Discard(step.StepId, a.Paths)
	if err != nil {
		return err
	}
	s.mu.Lock()
	clear(s.seen)
	s.mu.Unlock()
	r.Changes, r.Status = cs, v1.Status_ok
	return nil
}

// beyondUndo says what steps did that no undo takes back, from their record.
func (s *session) beyondUndo(steps []string) (notes []string) {
	for _, id := range steps {
		_, _, result, err := s.journal.Step(id)
		if err != nil {
			continue
		}
		var hosts []string
		for _, c := range result.GetConnections() {
			if at := fmt.Sprintf("%s:%d", c.Host, c.Port); c.Refused == nil && !slices.Contains(hosts, at) {
				hosts = append(hosts, at)
			}
		}
		if len(hosts) > 0 {
			notes = append(notes, fmt.Sprintf("not taken back: step %s was connected to %s", id, strings.Join(hosts, ", ")))
		}
	}
	return notes
}

// restore takes steps back or forward again. The planner's knowledge of files
// is void after it.
func (s *session) restore(a *v1.RestoreArgs, r *v1.StepResult) error {
	steps, cs, err := s.ws.Restore(workspace.Restore{ToStep: a.ToStep, Steps: a.Steps, All: a.All, Redo: a.Redo, DryRun: a.DryRun})
	if err != nil {
		return err
	}
	s.mu.Lock()
	clear(s.seen)
	s.mu.Unlock()
	cs.Changes = cs.Changes[:min(len(cs.Changes), maxChanges)]
	r.Changes, r.Status = cs, v1.Status_ok
	if !a.Redo {
		r.Notes = append(r.Notes, s.beyondUndo(steps)...)
	}
	if len(cs.GetConflicts()) > 0 {
		r.Status = v1.Status_conflict
		r.Error = contract.Errorf(v1.Error_stale, "%s: %s", cs.Conflicts[0].Path, cs.Conflicts[0].Reason).Proto()
	}
	text := ""
	for _, id := range steps {
		text += fmt.Sprintln(id)
	}
	r.Output = &v1.Output{Text: text, TotalBytes: uint64(len(text))}
	return nil
}
