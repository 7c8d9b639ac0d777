package executor

import (
	"os"
	"path/filepath"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/workspace"
)

// Materialise makes a copy of a session's folder as it was when the steps in
// done were all that had changed it; whole is false where the layers cannot tell
// how that was, and the copy is as before the first step. folder stands for the
// session's own, as on another machine. The session must not be at work.
func Materialise(state, id, folder, dest string, done []string) (whole bool, err error) {
	dir := filepath.Join(state, "sessions", id)
	if _, err := os.Stat(dir); err != nil {
		return false, contract.Errorf(v1.Error_not_found, "the executor has no session %s", id)
	}
	lease, err := takeLease(dir)
	if err != nil {
		return false, err
	}
	defer lease.Close()
	w, err := workspace.Open(folder, filepath.Join(dir, "workspace"))
	if err != nil {
		return false, err
	}
	defer w.Close()
	return w.CopyTo(dest, done)
}
