package journal

import (
	"github.com/ncruces/go-sqlite3"
	"google.golang.org/protobuf/proto"

	v1 "harness/contract/harness/v1"
)

// Ask records a new approval.
func (j *Journal) Ask(a *v1.Approval) error {
	b, err := proto.Marshal(a)
	if err != nil {
		return err
	}
	return j.locked("INSERT INTO approval (approval_id, step_id, body) VALUES (?, ?, ?)", []any{a.ApprovalId, a.StepId, b}, nil)
}

// Approval is an approval and its answer, nil where there is none yet. A nil
// approval: there is no such one.
func (j *Journal) Approval(id string) (a *v1.Approval, decided *v1.DecideRequest, err error) {
	err = j.locked("SELECT body, decided FROM approval WHERE approval_id = ?", []any{id}, func(s *sqlite3.Stmt) error {
		a = new(v1.Approval)
		if err := proto.Unmarshal(s.ColumnRawBlob(0), a); err != nil {
			return err
		}
		if s.ColumnType(1) == sqlite3.NULL {
			return nil
		}
		decided = new(v1.DecideRequest)
		return proto.Unmarshal(s.ColumnRawBlob(1), decided)
	})
	return a, decided, err
}

// Decide records an answer; false where there already was one.
func (j *Journal) Decide(d *v1.DecideRequest) (bool, error) {
	b, err := proto.Marshal(d)
	if err != nil {
		return false, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.query("UPDATE approval SET decided = ? WHERE approval_id = ? AND decided IS NULL", []any{b, d.ApprovalId}, nil); err != nil {
		return false, err
	}
	return j.db.Changes() == 1, nil
}

// ApprovalOf is the newest approval of a step and its answer.
func (j *Journal) ApprovalOf(stepID string) (a *v1.Approval, decided *v1.DecideRequest, err error) {
	var id string
	err = j.locked("SELECT approval_id FROM approval WHERE step_id = ? ORDER BY rowid", []any{stepID}, func(s *sqlite3.Stmt) error {
		id = s.ColumnText(0)
		return nil
	})
	if err != nil || id == "" {
		return nil, nil, err
	}
	return j.Approval(id)
}

// TakeUp marks an answer as about to have its effect.
func (j *Journal) TakeUp(approvalID string) error {
	return j.locked("INSERT INTO taken_up VALUES (?) ON CONFLICT DO NOTHING", []any{approvalID}, nil)
}

// TakenUp says whether an answer may have had its effect.
func (j *Journal) TakenUp(approvalID string) (yes bool, err error) {
	err = j.locked("SELECT 1 FROM taken_up WHERE approval_id = ?", []any{approvalID}, func(*sqlite3.Stmt) error {
		yes = true
		return nil
	})
	return yes, err
}

// Waiting is the approvals without an answer, oldest first.
func (j *Journal) Waiting() (list []*v1.Approval, err error) {
	err = j.locked(`SELECT body FROM approval JOIN step USING (step_id) WHERE decided IS NULL AND result IS NULL ORDER BY approval.rowid`, nil, func(s *sqlite3.Stmt) error {
		a := new(v1.Approval)
		list = append(list, a)
		return proto.Unmarshal(s.ColumnRawBlob(0), a)
	})
	return list, err
}
