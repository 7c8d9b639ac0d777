package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"

	v1 "harness/contract/harness/v1"
)

const changedSince = "changed by somebody else since the step began"

// scanner compares an upper folder with the tree.
type scanner struct {
	t   *Tx
	p   *plan
	old int
	bad map[string]string // conflicts: what is below them is one too
	dir opener
}

func (t *Tx) scan() (*plan, error) {
	s := &scanner{t: t, p: &plan{Step: t.marker.Step, Phase: landing}}
	if t.tree != nil {
		defer s.dir.close() // the layer is seen as it is
	}
	if err := s.folder("", false, false); err != nil {
		return nil, err
	}
	deleted := make([]string, 0, len(t.staged.Deleted))
	for p := range t.staged.Deleted {
		deleted = append(deleted, p)
	}
	sort.Strings(deleted)
	for _, p := range deleted {
		if !exists(t.upper(p)) && !s.coveredBy(p) {
			if err := s.removed(p); err != nil {
				return nil, err
			}
		}
	}
	return s.p, nil
}

// coveredBy says whether a deletion above, or a replacement, already takes p.
func (s *scanner) coveredBy(p string) bool {
	for d := path.Dir(p); d != "."; d = path.Dir(d) {
		if s.t.staged.Deleted[d] {
			return true
		}
	}
	return false
}

// folder compares one folder of the upper layer; alone means that nothing of
// the tree shows through it, hollow that the tree has no such folder.
func (s *scanner) folder(dir string, alone, hollow bool) error {
	entries, err := s.dir.readDir(s.t.upper(dir))
	if err != nil {
		return err
	}
	above := map[string]bool{}
	for _, e := range entries {
		above[e.Name()] = true
		info, err := e.Info()
		if err != nil {
			return err
		}
		if err := s.path(path.Join(dir, e.Name()), info, alone, hollow); err != nil {
			return err
		}
	}
	if !alone || hollow {
		return nil
	}
	var below []fs.DirEntry
	if s.t.tree != nil {
		below, err = s.t.tree.readDir(dir)
	} else {
		below, err = os.ReadDir(s.t.below(dir))
	}
	if err != nil {
		return nil // it is not there, or no folder
	}
	for _, e := range below {
		if !above[e.Name()] {
			if err := s.removed(path.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *scanner) path(p string, info fs.FileInfo, alone, hollow bool) error {
	if whiteout(info) && hollow {
		return nil
	}
	if whiteout(info) {
		return s.removed(p)
	}
	u := s.t.upper(p)
	before, low, err := look(s.t.below(p))
	if err != nil {
		return err
	}
	if hollow {
		before = nil
	}
	after, _, err := look(u)
	if err != nil || after == nil {
		return err
	}
	if info.IsDir() {
		alone = alone || opaque(u) || s.t.staged.Deleted[p]
		hollow = hollow || before == nil || before.Type != v1.Change_directory
		switch {
		case before != nil && before.Type == v1.Change_directory && before.Mode != after.Mode:
			s.add(&entry{Path: p, Before: before, After: after})
		case before != nil && before.Type == v1.Change_directory && before.Mode&0o300 != 0o300:
			s.add(&entry{Path: p, Before: before, After: before, Shell: true})
			n := len(s.p.Entries)
			if err := s.folder(p, alone, false); err != nil {
				return err
			}
			if len(s.p.Entries) == n { // nothing below it
				s.p.Entries = s.p.Entries[:n-1]
			}
			return nil
		case hollow:
			e := &entry{Path: p, Before: before, After: after}
			if before != nil {
				if err := before.fill(s.t.below(p)); err != nil {
					return err
				}
				if s.touched(p, before) {
					e.Reason = changedSince
				}
			}
			s.add(e)
		}
		return s.folder(p, alone, hollow)
	}
	if err := after.fill(u); err != nil {
		return err
	}
	e := &entry{Path: p, Before: before, After: after}
	if before == nil {
		if s.t.tree == nil && (s.t.staged.Based[p] || copiedUp(u) && s.deletedSince(p)) {
			e.Reason = "deleted by somebody else since the step began"
		}
		s.add(e)
		return nil
	}
	if before.Type == v1.Change_directory {
		return s.whole(e)
	}
	if before.Type == after.Type && before.Mode == after.Mode && before.Size == after.Size {
		same := before.Type == v1.Change_symlink
		if same {
			to, err := os.Readlink(s.t.below(p))
			if err != nil {
				return err
			}
			same = to == after.Digest
		} else if before.Type == v1.Change_file {
			if same, err = sameFile(u, s.t.below(p)); err != nil {
				return err
			}
		}
		if same {
			return nil
		}
	}
	if err := before.fill(s.t.below(p)); err != nil {
		return err
	}
	e.InPlace = before.Type == v1.Change_file && after.Type == v1.Change_file && links(low) > 1
	if s.touched(p, before) {
		e.Reason = changedSince
	}
	s.add(e)
	return nil
}

// removed notes that the step deleted p with all below it.
func (s *scanner) removed(p string) error {
	before, _, err := look(s.t.below(p))
	if err != nil || before == nil {
		return err
	}
	e := &entry{Path: p, Before: before}
	if before.Type == v1.Change_directory {
		return s.whole(e)
	}
	if err := before.fill(s.t.below(p)); err != nil {
		return err
	}
	if s.touched(p, before) {
		e.Reason = changedSince
	}
	s.add(e)
	return nil
}

// whole adds an entry whose version before is a folder with all below it.
func (s *scanner) whole(e *entry) error {
	e.Whole = true
	each := func(p string, info fs.FileInfo) error {
		if _, ctime := identity(info); s.t.tree == nil && ctime > s.t.stamp(p) && e.Reason == "" {
			e.Reason = p + " was " + changedSince
		}
		b := &v1.Change{Kind: v1.Change_deleted, Path: p, Type: typeOf(info.Mode()), ModeBefore: unixMode(info.Mode())}
		if !info.IsDir() {
			b.SizeBefore = uint64(info.Size())
		}
		e.Below = append(e.Below, b)
		return nil
	}
	var err error
	if s.t.tree != nil {
		err = s.t.tree.walk(e.Path, each)
	} else {
		e.Before.Digest, err = treeDigest(s.t.w.at(e.Path), func(rel string, info fs.FileInfo) error { return each(path.Join(e.Path, rel), info) })
	}
	if err != nil {
		return err
	}
	s.add(e)
	return nil
}

// touched says whether somebody else changed a path. In a staged session that
// is asked when it is applied.
func (s *scanner) touched(p string, st *state) bool {
	stamp := s.t.stamp(p)
	return s.t.tree == nil && (st.CTime > stamp || st.MTime > stamp)
}

// deletedSince says whether somebody else can have deleted p since the step
// began, which touches the folder it was in. That a file was copied up does not
// say it: one that the command renamed, or gave another name, was too.
func (s *scanner) deletedSince(p string) bool {
	for d := path.Dir(p); ; d = path.Dir(d) {
		if st, _, err := look(s.t.w.at(d)); err == nil && st != nil || d == "." {
			return st != nil && s.touched(d, st)
		}
	}
}

// stamp is when the first step began that changed p.
func (t *Tx) stamp(p string) int64 {
	if t.apply != nil {
		return t.apply.stamp(p)
	}
	return t.marker.Stamp
}

func (s *scanner) add(e *entry) {
	for d := path.Dir(e.Path); d != "." && e.Reason == ""; d = path.Dir(d) {
		e.Reason = s.bad[d]
	}
	if e.Reason != "" {
		if s.bad == nil {
			s.bad = map[string]string{}
		}
		s.bad[e.Path] = e.Reason
	}
	s.old++
	e.Old = filepath.Join("old", fmt.Sprint(s.old))
	e.New = filepath.Join("upper", filepath.FromSlash(e.Path))
	s.p.Entries = append(s.p.Entries, e)
}
