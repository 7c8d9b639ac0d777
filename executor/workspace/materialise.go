package workspace

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// CopyTo makes a copy of the folder as it was before the earliest of some steps
// of the session, of all its steps for none. What others changed since is in it.
func (w *Workspace) CopyTo(dest string, without []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.staged {
		return contract.Errorf(v1.Error_unsupported, "a staged session began with no folder of its own")
	}
	r := Restore{Steps: without, All: len(without) == 0}
	todo, err := w.choose(r)
	if err != nil && contract.AsError(err).Kind != v1.Error_not_found {
		return err
	}
	was, err := w.versionsBefore(todo)
	if err != nil {
		return err
	}
	if err := copyTree(w.root, dest); err != nil {
		return err
	}
	for _, p := range slices.Sorted(maps.Keys(was)) {
		to, v := filepath.Join(dest, filepath.FromSlash(p)), was[p]
		if info, err := os.Lstat(to); v == nil || !v.dir || v.whole || err == nil && !info.IsDir() {
			if err := removeAll(to); err != nil {
				return err
			}
		}
		switch {
		case v == nil:
			continue
		case v.dir && !v.whole:
			if err = os.MkdirAll(to, 0o700); err == nil {
				err = os.Chmod(to, goMode(v.mode))
			}
		default:
			if err = os.MkdirAll(filepath.Dir(to), 0o755); err == nil {
				err = copyTree(v.at, to)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
