package executor

import (
	"path/filepath"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/workspace"
)

// beginAs makes a new session what its request says: staged, or a fork. To one
// that is resumed it was done before.
func (s *session) beginAs(req *v1.OpenRequest) error {
	if req.Staged {
		if err := s.ws.Stage(); err != nil {
			return err
		}
	}
	if req.ForkOf == "" || s.ws.Begun() {
		return nil
	}
	if err := contract.CheckID("fork_of", req.ForkOf); err != nil {
		return err
	}
	dir := filepath.Join(s.x.cfg.State, "sessions", req.ForkOf)
	lease, err := takeLease(dir)
	if err != nil {
		return contract.Errorf(v1.Error_unavailable, "the session %s: %v", req.ForkOf, err).WithField("fork_of").WithHint("fork it when it is not at work")
	}
	defer lease.Close()
	from, err := workspace.Open(s.x.cfg.Workspace, filepath.Join(dir, "workspace"))
	if err != nil {
		return err
	}
	defer from.Close()
	return s.ws.Fork(from, req.ForkWithout)
}
