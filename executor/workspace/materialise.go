package workspace

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// CopyTo makes a copy of the folder as it was before the session changed it,
// but for what the steps in done changed. Where the layers do not tell how that
// was, since such a step is undone or staged, or came after others, the copy is
// without any, and whole is false: they must run again. What others changed
// since is in it.
func (w *Workspace) CopyTo(dest string, done []string) (whole bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var in []*layer // the newest first
	for _, l := range slices.Backward(w.layers) {
		if l.state == landed {
			in = append(in, l)
		}
	}
	n := slices.IndexFunc(in, func(l *layer) bool { return slices.Contains(done, l.step) })
	if n < 0 {
		n = len(in)
	}
	whole = !w.staged && len(done) == len(in)-n || len(done) == 0
	for _, l := range in[n:] {
		whole = whole && slices.Contains(done, l.step)
	}
	todo := in
	if whole {
		todo = in[:n]
	}
	was, err := w.versionsBefore(todo)
	if err != nil {
		return false, err
	}
	if err := copyTree(w.root, dest); err != nil {
		return false, err
	}
	for _, p := range slices.Sorted(maps.Keys(was)) {
		to, v := filepath.Join(dest, filepath.FromSlash(p)), was[p]
		if info, err := os.Lstat(to); v == nil || !v.dir || v.whole || err == nil && !info.IsDir() {
			if err := removeAll(to); err != nil {
				return false, err
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
			return false, err
		}
	}
	return whole, nil
}
