package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// Tx is one step's transaction.
type Tx struct {
	l       *layer
	began   time.Time       // by the file system's own clock
	deleted map[string]bool // by Stage; a command's deletions are whiteouts in upper
	planned bool
}

// Begin starts a transaction. Any number may be open at once.
func (w *Workspace) Begin(stepID string) (*Tx, error) {
	w.mu.Lock()
	n := w.index.next
	w.index.next++
	w.mu.Unlock()
	l := &layer{w: w, n: n, step: stepID, dir: layerDir(w, n, stepID)}
	t := &Tx{l: l, deleted: map[string]bool{}}
	for _, d := range []string{l.dir, t.Upper(), t.Work()} {
		if err := os.Mkdir(d, 0o700); err != nil {
			removeAll(l.dir)
			return nil, err
		}
	}
	// The root of the upper folder is what a command sees as the workspace's own.
	root, err := os.Stat(w.root)
	if err == nil {
		err = os.Chmod(t.Upper(), root.Mode().Perm())
	}
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(t.Work())
	}
	if err != nil {
		removeAll(l.dir)
		return nil, err
	}
	t.began = info.ModTime()
	return t, nil
}

// Upper is where the new versions of the step's files are, as overlayfs has them.
func (t *Tx) Upper() string { return filepath.Join(t.l.dir, "upper") }

// Work is overlayfs's work folder.
func (t *Tx) Work() string { return filepath.Join(t.l.dir, "work") }

// Stage puts the edits of a file action into the transaction, later ones on top of earlier ones.
func (t *Tx) Stage(edits []Edit) error {
	for _, e := range edits {
		if err := t.stage(e); err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
	}
	return nil
}

func (t *Tx) stage(e Edit) error {
	if !fs.ValidPath(e.Path) || e.Path == "." {
		return contract.Errorf(v1.Error_outside_workspace, "%q is no path inside the workspace", e.Path)
	}
	up := filepath.Join(t.Upper(), e.Path)
	switch e.Op {
	case Delete:
		if err := os.RemoveAll(up); err != nil {
			return err
		}
		t.deleted[e.Path] = true
		return nil
	case Move:
		if err := t.stageCopy(e.Path, e.To); err != nil {
			return err
		}
		return t.stage(Edit{Op: Delete, Path: e.Path})
	}
	if err := t.stageParents(path.Dir(e.Path)); err != nil {
		return err
	}
	switch e.Op {
	case Mkdir:
		return os.MkdirAll(up, 0o777)
	case Symlink:
		if err := os.RemoveAll(up); err != nil {
			return err
		}
		return os.Symlink(e.To, up)
	}
	mode := e.Mode
	if mode == 0 {
		if info, err := os.Lstat(filepath.Join(t.l.w.root, e.Path)); err == nil && info.Mode().IsRegular() {
			mode = info.Mode().Perm()
		}
	}
	if err := os.Remove(up); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	create := mode
	if create == 0 {
		create = 0o666 // under the user's mask
	}
	f, err := os.OpenFile(up, os.O_WRONLY|os.O_CREATE|os.O_EXCL, create)
	if err != nil {
		return err
	}
	if mode != 0 {
		err = f.Chmod(mode)
	}
	_, werr := f.Write(e.Data)
	return errors.Join(err, werr, f.Close())
}

// stageParents makes the folders above an edit, with the modes of those that are there.
func (t *Tx) stageParents(dir string) error {
	if dir == "." {
		return nil
	}
	if err := t.stageParents(path.Dir(dir)); err != nil {
		return err
	}
	up := filepath.Join(t.Upper(), dir)
	if err := os.Mkdir(up, 0o777); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	if info, err := os.Lstat(filepath.Join(t.l.w.root, dir)); err == nil && info.IsDir() {
		return os.Chmod(up, info.Mode().Perm())
	}
	return nil
}

func (t *Tx) stageCopy(from, to string) error {
	if !fs.ValidPath(to) || to == "." {
		return contract.Errorf(v1.Error_outside_workspace, "%q is no path inside the workspace", to)
	}
	src := filepath.Join(t.Upper(), from)
	if _, err := os.Lstat(src); err != nil {
		src = filepath.Join(t.l.w.root, from)
	}
	info, err := os.Lstat(src)
	if err != nil {
		return err
	}
	if err := t.stageParents(path.Dir(to)); err != nil {
		return err
	}
	return copyTree(src, filepath.Join(t.Upper(), to), info)
}

// Changes is the exact change set, and makes the plan of its landing: call it
// when the command ended or the edits are staged.
func (t *Tx) Changes() (*v1.ChangeSet, error) {
	p := planner{t: t, root: t.l.w.root, upper: t.Upper(), planned: map[string]bool{}, conflicted: map[string]bool{}}
	if err := p.folder(".", false); err != nil {
		return nil, err
	}
	for d := range t.deleted {
		if err := p.remove(d); err != nil {
			return nil, err
		}
	}
	p.order()
	t.l.ops = p.ops
	t.planned = true
	cs := &v1.ChangeSet{Conflicts: p.conflicts}
	for i := range p.ops {
		cs.Changes = append(cs.Changes, p.ops[i].changes(t.l)...)
	}
	cs.Total = uint32(len(cs.Changes))
	if len(cs.Changes) > maxListed {
		cs.Changes = cs.Changes[:maxListed]
	}
	if len(p.ops) == 0 && len(p.conflicts) == 0 {
		return cs, nil
	}
	return cs, t.l.savePlan()
}

const maxListed = 1000

// Land puts the changes in place. Conflicting ones stay in the layer.
func (t *Tx) Land() error {
	if !t.planned {
		if _, err := t.Changes(); err != nil {
			return err
		}
	}
	if len(t.l.ops) == 0 {
		if _, err := os.Stat(filepath.Join(t.l.dir, "plan.json")); err == nil {
			return nil // only conflicts: their versions are kept in the layer
		}
		return t.Discard()
	}
	t.l.w.mu.Lock()
	defer t.l.w.mu.Unlock()
	if err := t.l.land(); err != nil {
		return err
	}
	removeAll(t.Work())
	return nil
}

// Discard drops the transaction and all that it wrote.
func (t *Tx) Discard() error { return removeAll(t.l.dir) }
