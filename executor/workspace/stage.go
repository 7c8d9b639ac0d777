package workspace

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// Stage puts a file action's edits into the transaction, in their order.
func (t *Tx) Stage(edits []Edit) error {
	t.plan = nil
	for _, e := range edits {
		if err := t.stage(e); err != nil {
			return err
		}
	}
	return writeDurable(filepath.Join(t.dir, "staged.json"), t.staged)
}

func (t *Tx) stage(e Edit) error {
	p, err := t.resolve(e.Path, e.Op == Write)
	if err != nil {
		return err
	}
	switch e.Op {
	case Write:
		return t.stageWrite(p, e)
	case Delete:
		if t.view(p) == "" {
			return contract.Errorf(v1.Error_not_found, "%s does not exist", e.Path)
		}
		return t.stageDelete(p)
	case Mkdir:
		if v := t.view(p); v != "" {
			return contract.Errorf(v1.Error_already_exists, "%s exists", e.Path)
		}
		return t.parents(path.Join(p, "x"))
	case Symlink:
		if t.view(p) != "" {
			return contract.Errorf(v1.Error_already_exists, "%s exists", e.Path)
		}
		if err := t.parents(p); err != nil {
			return err
		}
		return os.Symlink(e.To, t.upper(p))
	case Move:
		return t.stageMove(p, e)
	}
	return contract.Errorf(v1.Error_invalid, "no such edit: %d", e.Op)
}

func (t *Tx) stageWrite(p string, e Edit) error {
	mode := e.Mode
	chmod := mode != 0
	if v := t.view(p); v != "" {
		info, err := os.Lstat(v)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return contract.Errorf(v1.Error_unsupported, "%s is not a regular file", e.Path)
		}
		if mode == 0 {
			mode, chmod = info.Mode(), true
		}
	}
	if mode == 0 {
		mode = 0o644
	}
	if err := t.parents(p); err != nil {
		return err
	}
	if exists(t.below(p)) && !t.hidden(p) {
		t.staged.Based[p] = true
	}
	u := t.upper(p)
	if err := os.Remove(u); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.WriteFile(u, e.Data, mode.Perm()); err != nil {
		return err
	}
	if chmod {
		return os.Chmod(u, mode)
	}
	return nil
}

func (t *Tx) stageDelete(p string) error {
	if err := removeAll(t.upper(p)); err != nil {
		return err
	}
	if exists(t.below(p)) {
		t.staged.Deleted[p] = true
	}
	return nil
}

func (t *Tx) stageMove(p string, e Edit) error {
	from := t.view(p)
	if from == "" {
		return contract.Errorf(v1.Error_not_found, "%s does not exist", e.Path)
	}
	to, err := t.resolve(e.To, false)
	if err != nil {
		return err
	}
	if t.view(to) != "" {
		return contract.Errorf(v1.Error_already_exists, "%s exists", e.To)
	}
	if err := t.parents(to); err != nil {
		return err
	}
	if from == t.upper(p) {
		if exists(t.below(p)) && !t.hidden(p) {
			if info, err := os.Lstat(from); err == nil && info.IsDir() {
				return contract.Errorf(v1.Error_unsupported, "%s was changed in the same step", e.Path)
			}
		}
		if err := os.Rename(from, t.upper(to)); err != nil {
			return err
		}
	} else if info, err := os.Lstat(from); err == nil && info.IsDir() && t.tree != nil {
		return contract.Errorf(v1.Error_unsupported, "%s is a folder, which moves only by a command in a staged session", e.Path)
	} else if err := copyTree(from, t.upper(to)); err != nil {
		return err
	}
	return t.stageDelete(p)
}

func (t *Tx) upper(p string) string { return filepath.Join(t.Upper(), filepath.FromSlash(p)) }

// hidden says whether the tree's version of p is deleted by an earlier edit.
func (t *Tx) hidden(p string) bool {
	for ; p != "."; p = path.Dir(p) {
		if t.staged.Deleted[p] {
			return true
		}
	}
	return false
}

// view is where p is to be read after the edits so far, "" where it is absent.
func (t *Tx) view(p string) string {
	if exists(t.upper(p)) {
		return t.upper(p)
	}
	if !t.hidden(p) && exists(t.below(p)) {
		return t.below(p)
	}
	return ""
}

// parents makes the folders above p in the upper folder, those that exist with
// the mode they have.
func (t *Tx) parents(p string) error {
	at := ""
	for _, part := range strings.Split(path.Dir(p), "/") {
		if part == "." {
			continue
		}
		at = path.Join(at, part)
		if info, err := os.Lstat(t.upper(at)); err == nil {
			if !info.IsDir() {
				return contract.Errorf(v1.Error_invalid, "%s is not a folder", at)
			}
			continue
		}
		var mode fs.FileMode
		if !t.hidden(at) {
			if info, err := os.Lstat(t.below(at)); err == nil {
				if !info.IsDir() {
					return contract.Errorf(v1.Error_invalid, "%s is not a folder", at)
				}
				mode = info.Mode()
			}
		}
		if err := within(t.upper(at), func() error { return os.Mkdir(t.upper(at), 0o777) }); err != nil {
			return err
		}
		if mode != 0 {
			if err := os.Chmod(t.upper(at), mode); err != nil {
				return err
			}
		}
	}
	return nil
}

// resolve is p with the links above it followed, and where last is set the one
// that it is, as far as all stay in the workspace.
func (t *Tx) resolve(p string, last bool) (string, error) {
	p = path.Clean(filepath.ToSlash(p))
	if !filepath.IsLocal(filepath.FromSlash(p)) || p == "." {
		return "", outside(p)
	}
	rest, done := strings.Split(p, "/"), ""
	for hops := 0; len(rest) > 0; {
		next := path.Join(done, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(t.below(next))
		if v := t.view(next); v != "" {
			info, err = os.Lstat(v)
		} else if err == nil {
			err = fs.ErrNotExist // hidden
		}
		if err != nil || info.Mode()&fs.ModeSymlink == 0 || len(rest) == 0 && !last {
			done = next
			continue
		}
		if hops++; hops > 40 {
			return "", contract.Errorf(v1.Error_invalid, "%s: too many links", p)
		}
		to, err := os.Readlink(t.view(next))
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(to) {
			if to, err = filepath.Rel(t.w.root, to); err != nil {
				return "", outside(p)
			}
			to = filepath.ToSlash(to)
		} else {
			to = path.Join(path.Dir(next), filepath.ToSlash(to))
		}
		if !filepath.IsLocal(filepath.FromSlash(to)) || to == "." {
			return "", outside(p)
		}
		rest, done = append(strings.Split(path.Clean(to), "/"), rest...), ""
	}
	return done, nil
}
