package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// direct is the way without an overlay: a command works in the tree itself.
// Before it, a mirror of the tree is brought up to date; after it, what it did
// is moved into the transaction and the tree is as before, so that all that
// follows (changes, policy, landing, undo) is the same. It costs a copy of the
// tree once and two walks of it a step, and what somebody else changes during a
// command counts as the command's.
type direct struct {
	dir   string           // the mirror
	free  chan struct{}    // holds one while no command is exposed
	known map[string]state // what the mirror holds, as it was in the tree
}

// Direct makes commands work in the tree itself: for sandboxes that have no overlay.
func (w *Workspace) Direct() error {
	if w.staged {
		return contract.Errorf(v1.Error_unsupported, "a staged session needs a sandbox with an overlay")
	}
	w.direct = &direct{dir: filepath.Join(w.state, "mirror"), free: make(chan struct{}, 1), known: map[string]state{}}
	w.direct.free <- struct{}{}
	return removeAll(w.direct.dir)
}

// Expose prepares the tree for a command that works in it. It waits for the
// one before: until Gather no other can be exposed.
func (t *Tx) Expose(ctx context.Context) error {
	d := t.w.direct
	select {
	case <-d.free:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	err := d.refresh(t.w)
	if err == nil {
		err = writeDurable(d.manifest(), d.known)
	}
	if err == nil {
		t.marker.Exposed = true
		err = t.mark()
	}
	if err != nil {
		d.free <- struct{}{}
	}
	return err
}

// Gather moves what the command did into the transaction.
func (t *Tx) Gather() error {
	d := t.w.direct
	defer func() { d.free <- struct{}{} }()
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	changed, err := d.changed(t.w)
	if err != nil {
		return err
	}
	for _, p := range changed {
		boundary("gather")
		if err := t.gather(p); err != nil {
			return err
		}
	}
	boundary("gathered")
	if err := d.putBack(t.w, changed); err != nil {
		return err
	}
	if err := writeDurable(filepath.Join(t.dir, "staged.json"), t.staged); err != nil {
		return err
	}
	// What is in place again counts as there before the step.
	stamp := filepath.Join(t.dir, "stamp")
	if err := os.WriteFile(stamp, nil, 0o600); err != nil {
		return err
	}
	info, err := os.Stat(stamp)
	if err != nil {
		return err
	}
	boundary("as before")
	_, t.marker.Stamp = identity(info)
	t.marker.Exposed = false
	return t.mark()
}

// gather takes one changed path out of the tree.
func (t *Tx) gather(p string) error {
	now, info, err := look(t.w.at(p))
	if err != nil {
		return err
	}
	was, known := t.w.direct.known[p]
	if known && (now == nil || now.Type != was.Type) {
		t.staged.Deleted[p] = true
	}
	if now == nil || exists(t.upper(p)) { // gone, or moved with the folder above
		return nil
	}
	if err := t.parents(p); err != nil {
		return err
	}
	if now.Type == v1.Change_directory {
		if err := within(t.upper(p), func() error { return os.Mkdir(t.upper(p), 0o700) }); err != nil {
			return err
		}
		return os.Chmod(t.upper(p), info.Mode())
	}
	return within(t.w.at(p), func() error {
		return within(t.upper(p), func() error {
			_, err := move(t.w.at(p), t.upper(p), ".harness-tmp-gather")
			return err
		})
	})
}

// walk calls each for every path of the tree, folders before what is in them.
func (w *Workspace) walk(root string, each func(p string, info fs.FileInfo) error) error {
	return filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		if file == root {
			return err
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil && e != nil && e.IsDir() && errors.Is(err, fs.ErrPermission) {
			return nil // closed to us: itself it is in the list
		}
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		return each(filepath.ToSlash(rel), info)
	})
}

// changed is the paths that are not as the mirror has them, sorted.
func (d *direct) changed(w *Workspace) (list []string, err error) {
	seen := map[string]bool{}
	err = w.walk(w.root, func(p string, info fs.FileInfo) error {
		seen[p] = true
		if was, ok := d.known[p]; !ok || !was.same(info) {
			list = append(list, p)
		}
		return nil
	})
	for p := range d.known {
		if !seen[p] {
			list = append(list, p)
		}
	}
	sort.Strings(list)
	return list, err
}

// same says whether a path is untouched since its state was taken.
func (s state) same(info fs.FileInfo) bool {
	if typeOf(info.Mode()) != s.Type || unixMode(info.Mode()) != s.Mode {
		return false
	}
	if s.Type == v1.Change_directory { // its times change with what is in it
		return true
	}
	ino, ctime := identity(info)
	return ino == s.Ino && ctime == s.CTime && info.Size() == s.Size && info.ModTime().UnixNano() == s.MTime
}

func (d *direct) at(p string) string { return filepath.Join(d.dir, filepath.FromSlash(p)) }

// refresh brings the mirror up to date with the tree.
func (d *direct) refresh(w *Workspace) error {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	changed, err := d.changed(w)
	if err != nil {
		return err
	}
	for _, p := range changed {
		if err := d.keep(w, p); err != nil {
			return err
		}
	}
	return nil
}

func (d *direct) keep(w *Workspace, p string) error {
	now, _, err := look(w.at(p))
	if err != nil {
		return err
	}
	was, known := d.known[p]
	delete(d.known, p)
	if known && (now == nil || now.Type != was.Type || now.Type != v1.Change_directory) {
		if err := removeAll(d.at(p)); err != nil && !isNotDir(err) { // it may lie below what became a file
			return err
		}
	}
	if now == nil {
		return nil
	}
	if now.Type == v1.Change_directory { // ours to enter; its mode is in the list
		err = os.Mkdir(d.at(p), 0o700)
		if os.IsExist(err) {
			err = nil
		}
	} else {
		err = copyTree(w.at(p), d.at(p))
	}
	if err != nil {
		return err
	}
	d.known[p] = *now
	return nil
}

// putBack makes the tree at the changed paths what the mirror has.
func (d *direct) putBack(w *Workspace, changed []string) error {
	for i := len(changed) - 1; i >= 0; i-- { // what is below goes first
		p := changed[i]
		now, _, err := look(w.at(p))
		if err != nil {
			return err
		}
		if was, ok := d.known[p]; now != nil && (!ok || was.Type != now.Type || now.Type != v1.Change_directory) {
			if err := within(w.at(p), func() error { return removeAll(w.at(p)) }); err != nil {
				return err
			}
		}
	}
	var folders []string
	for _, p := range changed {
		was, ok := d.known[p]
		if !ok {
			continue
		}
		if was.Type == v1.Change_directory {
			err := within(w.at(p), func() error { return os.Mkdir(w.at(p), 0o700) })
			if err != nil && !os.IsExist(err) {
				return err
			}
			folders = append(folders, p)
			continue
		}
		boundary("put back")
		if err := within(w.at(p), func() error { return copyTree(d.at(p), w.at(p)) }); err != nil {
			return err
		}
		now, _, err := look(w.at(p))
		if err != nil || now == nil {
			return errors.Join(err, fs.ErrNotExist)
		}
		d.known[p] = *now
	}
	for i := len(folders) - 1; i >= 0; i-- { // last, since a mode may close them
		if err := os.Chmod(w.at(folders[i]), goMode(d.known[folders[i]].Mode)); err != nil {
			return err
		}
	}
	return nil
}

// manifest is where the mirror's list is kept while a command is exposed.
func (d *direct) manifest() string { return d.dir + ".json" }

// recoverExposed makes the tree what it was before a command that was cut.
func (w *Workspace) recoverExposed() error {
	d := &direct{dir: filepath.Join(w.state, "mirror"), known: map[string]state{}}
	data, err := os.ReadFile(d.manifest())
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &d.known); err != nil {
		return err
	}
	changed, err := d.changed(w)
	if err != nil {
		return err
	}
	return d.putBack(w, changed)
}
