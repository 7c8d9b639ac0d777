package workspace

import "path/filepath"

// Holds says whether a session's state has staged changes that were not applied.
func Holds(state string) bool {
	w := &Workspace{state: state}
	if !exists(filepath.Join(state, "staged")) || w.loadIndex() != nil {
		return false
	}
	defer w.index.Close()
	net, err := w.net()
	return err != nil || len(net) > 0
}

// RemoveState removes a session's state, also what a command closed to its owner.
func RemoveState(dir string) error { return removeAll(dir) }
