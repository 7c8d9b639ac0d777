package executor

import (
	"errors"
	"os"
	"path/filepath"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/workspace"
)

// Remove takes a session's folder away: its journal, layers and artifacts. One
// that holds staged changes stays, unless staged says that they may go, too.
func Remove(state, id string, staged bool) error {
	dir := filepath.Join(state, "sessions", id)
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	lease, err := takeLease(dir)
	if err != nil {
		return err
	}
	defer lease.Close()
	if !staged && workspace.Holds(filepath.Join(dir, "workspace")) {
		return contract.Errorf(v1.Error_invalid, "it holds changes that were not applied").WithHint("name it to remove it all the same")
	}
	return workspace.RemoveState(dir)
}
