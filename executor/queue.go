package executor

import (
	"errors"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/types/known/timestamppb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/journal"
)

// Waiting is the open questions of every session below an executor's state
// folder, whether an executor runs there or not.
func Waiting(state string) (list []*v1.Approval, err error) {
	dirs, err := filepath.Glob(filepath.Join(state, "sessions", "*", "journal.db"))
	if err != nil {
		return nil, err
	}
	for _, db := range dirs {
		j, err := journal.Open(filepath.Dir(db), "")
		if err != nil {
			return nil, err
		}
		open, err := j.Waiting()
		if err = errors.Join(err, j.Close()); err != nil {
			return nil, err
		}
		list = append(list, open...)
	}
	return list, nil
}

// Leave records an answer for a session that no executor holds: it is carried
// out when the session is opened again.
func Leave(c Config, d *v1.DecideRequest) (_ *v1.DecideResponse, err error) {
	if err := contract.CheckID("session_id", d.SessionId); err != nil {
		return nil, err
	}
	dir := filepath.Join(c.State, "sessions", d.SessionId)
	if _, err := os.Stat(dir); err != nil {
		return nil, contract.Errorf(v1.Error_not_found, "there is no session %q", d.SessionId).WithField("session_id")
	}
	lease, err := takeLease(dir)
	if err != nil {
		return nil, err
	}
	defer lease.Close()
	j, err := journal.Open(dir, "")
	if err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "%v", err)
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	a, decided, err := j.Approval(d.ApprovalId)
	if err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "the journal: %v", err)
	}
	if d, err = admit(a, d, c); err != nil {
		return nil, err
	}
	if decided != nil {
		return &v1.DecideResponse{Decided: decided}, nil
	}
	if a.Host != "" {
		return nil, contract.Errorf(v1.Error_expired, "the command that waited to connect to %s ended with its executor", a.Host)
	}
	if a.Expires.AsTime().Before(timestamppb.Now().AsTime()) {
		return nil, contract.Errorf(v1.Error_expired, "the waiting time was over at %s", a.Expires.AsTime().Local().Format("2006-01-02 15:04:05"))
	}
	won, err := j.Decide(d)
	if err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "the journal: %v", err)
	}
	return &v1.DecideResponse{Accepted: won, Decided: d}, nil
}
