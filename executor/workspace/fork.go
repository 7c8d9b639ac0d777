package workspace

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// Fork begins a new session with the files of another one, of the same folder,
// as they were before the earliest of some steps. Where those steps changed
// anything, or the other session is a staged one, so is this: it sees the folder
// with a layer over it that has those changes taken out, at the cost of what
// they changed. The other session must not be at work meanwhile.
func (w *Workspace) Fork(from *Workspace, without []string) error {
	if from.root != w.root {
		return contract.Errorf(v1.Error_invalid, "the other session belongs to %s", from.root).WithField("fork_of")
	}
	if active, err := os.ReadDir(filepath.Join(from.state, "active")); err != nil || len(active) > 0 || exists(filepath.Join(from.state, "restore.json")) {
		return contract.Errorf(v1.Error_unavailable, "the other session was cut in the middle of a step").WithField("fork_of").
			WithHint("resume it once, which settles that")
	}
	todo, err := from.choose(Restore{Steps: append(without, "")})
	if err != nil {
		return err
	}
	if len(todo) == 0 && !from.staged {
		return nil
	}
	if err := w.Stage(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	b := &plan{Step: "fork", Phase: resting, Staged: true}
	name, err := from.forkBase(w, b, todo)
	if err != nil {
		return err
	}
	return w.record(base, name, b.Step)
}

// forkBase makes the new session's first layer.
func (w *Workspace) forkBase(fork *Workspace, b *plan, todo []*layer) (string, error) {
	var kept []*layer
	for _, l := range w.stack() {
		if !slices.Contains(todo, l) {
			kept = append(kept, l)
		}
	}
	dirs, err := w.flatten(kept)
	if err != nil {
		return "", err
	}
	net, err := w.netOf(kept)
	if err != nil {
		return "", err
	}
	for _, p := range slices.Sorted(maps.Keys(net)) {
		b.Entries = append(b.Entries, &entry{Path: p, Before: net[p].Before, Stamp: net[p].Stamp, At: atNew})
	}
	was, err := w.versionsBefore(todo)
	if err != nil {
		return "", err
	}
	return fork.makeBase(b, &merge{dirs: dirs}, func(upper string) error {
		now := time.Now().UnixNano()
		for _, p := range slices.Sorted(maps.Keys(was)) {
			if net[p] != nil {
				continue // the stack has it
			}
			e, err := putBack(fork, upper, p, was[p])
			if err != nil {
				return err
			}
			if e != nil {
				e.Stamp = now
				b.Entries = append(b.Entries, e)
			}
		}
		return nil
	})
}

// versionsBefore is where the oldest versions are that landed layers, the newest
// first, replaced; nil for what was not there.
func (w *Workspace) versionsBefore(todo []*layer) (map[string]*version, error) {
	was := map[string]*version{}
	for _, l := range todo {
		if l.state != landed {
			continue
		}
		p, err := w.readPlan(l.name)
		if err != nil {
			return nil, err
		}
		for _, e := range p.Entries {
			if e.Shell || e.Reason != "" || e.At != atNew {
				continue
			}
			was[e.Path] = nil
			if e.Before != nil {
				was[e.Path] = &version{mode: e.Before.Mode, dir: e.Before.Type == v1.Change_directory, whole: e.Whole,
					at: filepath.Join(w.layerDir(l.name), e.Old)}
			}
		}
	}
	return was, nil
}

// version is an older version of a path.
type version struct {
	at         string
	mode       uint32
	dir, whole bool
}

// putBack makes a layer show an older version of a path.
func putBack(w *Workspace, upper, p string, v *version) (*entry, error) {
	before, _, err := look(w.at(p))
	if err != nil {
		return nil, err
	}
	to := filepath.Join(upper, filepath.FromSlash(p))
	if v == nil && before == nil {
		return nil, nil
	}
	if err := w.foldersAbove(upper, p); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(filepath.Dir(to)); err != nil || !info.IsDir() {
		return nil, nil // the folder above is gone, too
	}
	e := &entry{Path: p, Before: before, At: atNew}
	if v == nil || !v.dir || v.whole {
		if err := removeAll(to); err != nil {
			return nil, err
		}
	}
	switch {
	case v == nil:
		err = makeWhiteout(to)
	case v.dir:
		e.After = &state{Type: v1.Change_directory, Mode: v.mode}
		if v.whole {
			err = copyTree(v.at, to)
		} else if err = os.Mkdir(to, 0o700); os.IsExist(err) {
			err = nil
		}
		if err == nil && (v.whole || before == nil || before.Type != v1.Change_directory) {
			err = setOpaque(to)
		}
		if err == nil {
			err = os.Chmod(to, goMode(v.mode))
		}
	default:
		e.After = &state{Type: v1.Change_file, Mode: v.mode}
		err = copyTree(v.at, to)
	}
	return e, err
}

// foldersAbove makes the folders above p in a layer, with the mode they have,
// as far as the layer has folders there.
func (w *Workspace) foldersAbove(upper, p string) error {
	dir := filepath.Dir(filepath.FromSlash(p))
	if dir == "." || exists(filepath.Join(upper, dir)) {
		return nil
	}
	if err := w.foldersAbove(upper, filepath.ToSlash(dir)); err != nil {
		return err
	}
	if info, err := os.Lstat(filepath.Join(upper, filepath.Dir(dir))); err != nil || !info.IsDir() {
		return nil // one above is gone, or a file: what is below is not seen
	}
	mode := os.FileMode(0o755)
	if info, err := os.Lstat(w.at(filepath.ToSlash(dir))); err == nil && info.IsDir() {
		mode = info.Mode()
	}
	if err := os.Mkdir(filepath.Join(upper, dir), 0o700); err != nil {
		return err
	}
	return os.Chmod(filepath.Join(upper, dir), mode|0o700)
}
