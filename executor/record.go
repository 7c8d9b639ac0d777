package executor

import (
	"errors"
	"path/filepath"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/audit"
)

func openAudit(state, dir, session string, waived ...string) (*audit.Log, error) {
	key, err := audit.OpenKey(state)
	if err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "%v", err)
	}
	log, err := audit.Open(dir, session, key, waived...)
	if err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "%v", err).
			WithHint("harness audit verify --session %s says what is wrong; to go on without it, move %s away", session, filepath.Join(dir, audit.File))
	}
	return log, nil
}

// begin puts on record that a step runs now, before it does.
func (s *session) begin(step *v1.Step, d *v1.Decision) error {
	if err := s.audit.Add(audit.Step(audit.Started, step, contract.StepDigest(step), d)); err != nil {
		return contract.Errorf(v1.Error_unavailable, "%v", err).WithHint("nothing was run")
	}
	return s.event(&v1.Event{StepId: step.StepId, Event: &v1.Event_Started{Started: &v1.StepStarted{Action: step.Action, Decision: d}}})
}

// refused puts on record what was asked for and does not run.
func (s *session) refused(step *v1.Step, d *v1.Decision) {
	s.audit.Later(audit.Step(audit.Refused, step, contract.StepDigest(step), d))
}

// invalid puts on record what could not be judged.
func (s *session) invalid(step *v1.Step, err error) error {
	return s.audit.Add(audit.Step(audit.Refused, step, "", &v1.Decision{Verdict: v1.Decision_deny, Rule: "contract", Source: "built-in", Reason: err.Error()}))
}

// outcome puts a step's end on record: in the audit log, whose head the result
// carries from then on, and in the journal.
func (s *session) outcome(r *v1.StepResult, journal func() error) (err error) {
	if r.AuditHead, err = s.audit.Seal(audit.Result(r)...); err != nil {
		return err
	}
	if err = journal(); err == nil {
		return nil
	}
	_, aerr := s.audit.Seal(audit.Record{Kind: audit.Finished, Step: r.StepId, Action: r.Action, Status: v1.Status_error.String(),
		Error: "the journal did not take the outcome, nothing was changed: " + err.Error()})
	return errors.Join(err, aerr)
}
