package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "harness/contract/harness/v1"
)

// version is what a path is, before or after a step; nil is not there.
type version struct {
	Mode   fs.FileMode `json:"mode"`
	Size   int64       `json:"size,omitempty"`
	Digest string      `json:"digest,omitempty"` // of new regular files
}

// op is one path's part of a plan.
type op struct {
	Path   string   `json:"path"`
	Before *version `json:"before,omitempty"`
	After  *version `json:"after,omitempty"`
	// InPlace: the file has other names, which follow a write into it.
	InPlace bool `json:"in_place,omitempty"`
	// Skipped: left as it is by an undo or redo, since somebody changed it.
	Skipped bool `json:"skipped,omitempty"`
}

// planner compares an upper folder with the tree.
type planner struct {
	t           *Tx
	root, upper string
	ops         []op
	planned     map[string]bool // the paths of ops
	conflicts   []*v1.Conflict
	conflicted  map[string]bool
}

// folder plans all below a folder of upper. In a replaced one, what the tree
// has and upper has not is gone.
func (p *planner) folder(dir string, replaced bool) error {
	entries, err := os.ReadDir(filepath.Join(p.upper, dir))
	if err != nil {
		return err
	}
	have := map[string]bool{}
	for _, e := range entries {
		have[e.Name()] = true
		if err := p.entry(path.Join(dir, e.Name()), replaced); err != nil {
			return err
		}
	}
	if !replaced {
		return nil
	}
	lower, err := os.ReadDir(filepath.Join(p.root, dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range lower {
		if !have[e.Name()] {
			if err := p.remove(path.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *planner) entry(name string, replaced bool) error {
	up := filepath.Join(p.upper, name)
	info, err := os.Lstat(up)
	if err != nil {
		return err
	}
	if isWhiteout(info) {
		return p.remove(name)
	}
	low := filepath.Join(p.root, name)
	was, err := os.Lstat(low)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotDir) {
		return err
	}
	if err != nil {
		was = nil
	}
	if !info.IsDir() {
		return p.file(name, info, was)
	}
	if was == nil || !was.IsDir() {
		p.add(op{Path: name, Before: versionOf(was), After: versionOf(info)}, was)
		return p.folder(name, false)
	}
	if info.Mode() != was.Mode() {
		p.add(op{Path: name, Before: versionOf(was), After: versionOf(info)}, nil)
	}
	return p.folder(name, replaced || isOpaque(up))
}

func (p *planner) file(name string, info, was fs.FileInfo) error {
	same, err := sameContent(filepath.Join(p.upper, name), filepath.Join(p.root, name), info, was)
	if err != nil || same {
		return err
	}
	o := op{Path: name, Before: versionOf(was), After: versionOf(info)}
	if info.Mode().IsRegular() {
		if o.After.Digest, err = digestFile(filepath.Join(p.upper, name)); err != nil {
			return err
		}
		o.InPlace = was != nil && was.Mode().IsRegular() && links(was) > 1
	}
	p.add(o, was)
	return nil
}

func (p *planner) remove(name string) error {
	if p.planned[name] {
		return nil // deleted and made again
	}
	was, err := os.Lstat(filepath.Join(p.root, name))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) {
		return nil
	}
	if err != nil {
		return err
	}
	p.add(op{Path: name, Before: versionOf(was)}, was)
	return nil
}

// add takes an op into the plan, or its conflict: was is the present version
// that it would replace, changed by somebody else since the step began.
func (p *planner) add(o op, was fs.FileInfo) {
	if was != nil && p.changedSince(o.Path, was) {
		p.conflicted[o.Path] = true
		p.conflicts = append(p.conflicts, &v1.Conflict{Path: o.Path,
			Reason: "changed by somebody else while the step ran; theirs was left in place", Kept: filepath.Join(p.upper, o.Path)})
		return
	}
	if p.conflicted[path.Dir(o.Path)] {
		p.conflicted[o.Path] = true
		return
	}
	p.planned[o.Path] = true
	p.ops = append(p.ops, o)
}

func (p *planner) changedSince(name string, was fs.FileInfo) bool {
	if !was.IsDir() {
		return changeTime(was).After(p.t.began)
	}
	changed := false
	filepath.WalkDir(filepath.Join(p.root, name), func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil && changeTime(info).After(p.t.began) {
			changed = true
			return fs.SkipAll
		}
		return nil
	})
	return changed
}

// order puts deletions first, then folders before what is in them.
func (p *planner) order() {
	slices.SortStableFunc(p.ops, func(a, b op) int {
		if (a.After == nil) != (b.After == nil) {
			if a.After == nil {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Path, b.Path)
	})
}

func versionOf(info fs.FileInfo) *version {
	if info == nil {
		return nil
	}
	v := &version{Mode: info.Mode()}
	if info.Mode().IsRegular() {
		v.Size = info.Size()
	}
	return v
}

func sameContent(a, b string, ai, bi fs.FileInfo) (bool, error) {
	if bi == nil || ai.Mode() != bi.Mode() {
		return false, nil
	}
	switch {
	case ai.Mode()&fs.ModeSymlink != 0:
		x, err := os.Readlink(a)
		if err != nil {
			return false, err
		}
		y, err := os.Readlink(b)
		return x == y, err
	case !ai.Mode().IsRegular():
		return true, nil
	case ai.Size() != bi.Size():
		return false, nil
	}
	return equalFiles(a, b)
}

func equalFiles(a, b string) (bool, error) {
	x, err := digestFile(a)
	if err != nil {
		return false, err
	}
	y, err := digestFile(b)
	return x == y, err
}

func digestFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// changes is an op as the contract lists it; the files of a deleted folder one by one.
func (o *op) changes(l *layer) []*v1.Change {
	c := &v1.Change{Path: o.Path}
	v := o.After
	if v == nil {
		v = o.Before
	}
	switch {
	case v.Mode.IsDir():
		c.Type = v1.Change_directory
	case v.Mode&fs.ModeSymlink != 0:
		c.Type = v1.Change_symlink
	case !v.Mode.IsRegular():
		c.Type = v1.Change_other
	}
	if o.Before != nil {
		c.ModeBefore, c.SizeBefore = uint32(o.Before.Mode.Perm()), uint64(o.Before.Size)
	}
	if o.After != nil {
		c.ModeAfter, c.SizeAfter, c.DigestAfter = uint32(o.After.Mode.Perm()), uint64(o.After.Size), o.After.Digest
	}
	switch {
	case o.Before == nil:
		c.Kind = v1.Change_created
	case o.After != nil:
		c.Kind = v1.Change_modified
	default:
		c.Kind = v1.Change_deleted
	}
	list := []*v1.Change{c}
	if o.Before == nil || !o.Before.Mode.IsDir() || o.After != nil && o.After.Mode.IsDir() {
		return list
	}
	base := filepath.Join(l.w.root, o.Path)
	if _, err := os.Lstat(l.pre(o.Path)); err == nil {
		base = l.pre(o.Path)
	}
	filepath.WalkDir(base, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		rel, rerr := filepath.Rel(base, p)
		if info, ierr := d.Info(); rerr == nil && ierr == nil && len(list) <= maxListed {
			one := &v1.Change{Kind: v1.Change_deleted, Path: path.Join(o.Path, filepath.ToSlash(rel)), ModeBefore: uint32(info.Mode().Perm()), SizeBefore: uint64(info.Size())}
			if info.Mode()&fs.ModeSymlink != 0 {
				one.Type = v1.Change_symlink
			}
			list = append(list, one)
		}
		return nil
	})
	return list
}

// savePlan makes the plan durable.
func (l *layer) savePlan() error {
	boundary("plan")
	return writeDurably(filepath.Join(l.dir, "plan.json"), l.ops)
}

func (l *layer) loadPlan() error {
	if l.ops != nil {
		return nil
	}
	return readJSON(filepath.Join(l.dir, "plan.json"), &l.ops)
}

func readJSON(name string, v any) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s is damaged: %w", name, err)
	}
	return nil
}

// writeDurably replaces a file whole: synced, then renamed.
func writeDurably(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), "new-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
