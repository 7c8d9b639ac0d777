package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "harness/contract/harness/v1"
)

// swap puts the other version of an entry into the tree: forward the one after,
// else the one before. What was there goes to its place in the layer. It may
// be run again after a cut at any point, in either direction.
type swap struct {
	w       *Workspace
	name    string
	dir     string
	forward bool
}

var errForeign = errors.New("other files are in it")

// run swaps all entries that are not there yet; forward parents come first,
// back they come last.
func (s *swap) run(p *plan, want func(*entry) bool) error {
	order := make([]*entry, 0, len(p.Entries))
	for _, e := range p.Entries {
		if e.Reason == "" && want(e) {
			order = append(order, e)
		}
	}
	if !s.forward {
		slices.Reverse(order)
	}
	for _, e := range p.Entries { // parents first
		if e.After != nil && e.After.Type == v1.Change_directory && e.Reason == "" && want(e) {
			os.Chmod(filepath.Join(s.dir, e.New), 0o700) // files are renamed out of it
			s.w.unlock(e.Path)                           // and out of this
		}
	}
	for _, e := range order {
		if e.isFolderMode() {
			s.w.chmodFolder(e.Path, func(fs.FileMode) fs.FileMode { return goMode(e.Before.Mode | 0o700) })
		}
	}
	for _, e := range order {
		boundary("swap " + e.Path)
		err := s.one(e)
		if errors.Is(err, errForeign) {
			e.At = atOther
			continue
		}
		if err != nil {
			return err
		}
	}
	return s.modes(order)
}

// modes gives folders their final mode, deep ones first.
func (s *swap) modes(order []*entry) error {
	for i := range order {
		e := order[i]
		if s.forward {
			e = order[len(order)-1-i]
		}
		to := e.After
		if !s.forward {
			to = e.Before
		}
		if to != nil && to.Type == v1.Change_directory && e.At != atOther {
			if err := s.w.chmodFolder(e.Path, func(fs.FileMode) fs.FileMode { return goMode(to.Mode) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// isFolderMode: a folder before and after, of which only the mode may change.
func (e *entry) isFolderMode() bool {
	return !e.Whole && e.Before != nil && e.After != nil &&
		e.Before.Type == v1.Change_directory && e.After.Type == v1.Change_directory
}

func (s *swap) one(e *entry) error {
	if e.isFolderMode() {
		return nil
	}
	from, to := e.Before, e.After
	take, put := filepath.Join(s.dir, e.Old), filepath.Join(s.dir, e.New)
	if !s.forward {
		from, to, take, put = to, from, put, take
	}
	path, release, err := s.w.hold(e.Path)
	if errors.Is(err, fs.ErrNotExist) && to == nil {
		return nil
	}
	if err != nil {
		return errForeign
	}
	defer release()
	if e.InPlace {
		return s.inPlace(path, take, put)
	}
	makes := to != nil && to.Type == v1.Change_directory && (s.forward || !e.Whole)
	if to != nil && !makes && !exists(put) {
		return nil // it is there already
	}
	tmp := ".harness-tmp-" + s.name + "-" + filepath.Base(e.Old)
	if from != nil && to != nil && from.Type != v1.Change_directory && !makes && to.Type != v1.Change_directory {
		if !exists(take) {
			if err := s.save(path, take, tmp); err != nil {
				return err
			}
			boundary("saved " + e.Path)
		}
		return s.place(path, put, tmp, e, to)
	}
	if err := s.take(path, take, tmp, e, from); err != nil {
		return err
	}
	boundary("taken " + e.Path)
	switch {
	case makes:
		if err := os.Mkdir(path, goMode(to.Mode&0o700|0o700)); err != nil && !os.IsExist(err) {
			return err
		}
		return nil
	case to != nil:
		// Nothing is to be here, but what a cut copy has already put.
		if to.Type != v1.Change_directory && exists(path) {
			if ours, err := to.holds(path, false); err != nil || !ours {
				return errors.Join(err, errForeign)
			}
		}
		return s.place(path, put, tmp, e, to)
	}
	return nil
}

// take moves what is at path into the layer.
func (s *swap) take(path, take, tmp string, e *entry, from *state) error {
	if from == nil {
		return nil
	}
	if from.Type == v1.Change_directory && !(e.Whole && s.forward) {
		err := os.Remove(path)
		if err == nil || os.IsNotExist(err) {
			return nil
		}
		if info, e := os.Lstat(path); e == nil && !info.IsDir() {
			return nil // the version before is back already
		}
		if left, e := os.ReadDir(path); e == nil && len(left) > 0 {
			return errForeign
		}
		return err
	}
	if exists(take) || !exists(path) {
		return nil
	}
	if from.Type == v1.Change_directory && from.Mode&0o200 == 0 {
		os.Chmod(path, goMode(from.Mode|0o700))
	}
	_, err := move(path, take, tmp)
	return err
}

// save keeps what is at path in the layer while it stays in the tree, so that
// the rename over it leaves no moment without a file.
func (s *swap) save(path, take, tmp string) error {
	if os.Link(path, take) == nil {
		return nil
	}
	tmp = filepath.Join(filepath.Dir(take), tmp)
	if err := removeAll(tmp); err != nil {
		return err
	}
	if err := copyTree(path, tmp); err != nil {
		removeAll(tmp)
		return err
	}
	return os.Rename(tmp, take)
}

func (s *swap) place(path, put, tmp string, e *entry, to *state) error {
	unmark(put)
	copied, err := move(put, path, tmp)
	if err != nil {
		return err
	}
	boundary("placed " + e.Path)
	if copied && to.Type == v1.Change_directory {
		return to.fill(path)
	}
	// A rename between two names of one file leaves both.
	if !copied && exists(put) {
		return os.Remove(put)
	}
	return nil
}

// inPlace writes into the file, which has other names. Both versions stay in
// the layer.
func (s *swap) inPlace(path, take, put string) error {
	tmp := ".harness-tmp-" + s.name
	if !exists(take) {
		if err := s.copyAside(path, take, tmp); err != nil {
			return err
		}
	}
	if !exists(put) {
		return nil
	}
	boundary("in place")
	data, err := os.ReadFile(put)
	if err != nil {
		return err
	}
	info, err := os.Lstat(put)
	if err != nil {
		return err
	}
	now, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if now.Mode()&0o200 == 0 {
		if err := os.Chmod(path, now.Mode()|0o200); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC|noFollow, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Chmod(path, info.Mode())
	}
	return err
}

func (s *swap) copyAside(path, take, tmp string) error {
	tmp = filepath.Join(filepath.Dir(take), tmp)
	if err := removeAll(tmp); err != nil {
		return err
	}
	if err := copyTree(path, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, take)
}

// safe is the same by names, which somebody may change in between.
func (w *Workspace) safe(p string) error {
	at := w.root
	parts := strings.Split(p, "/")
	for _, part := range parts[:len(parts)-1] {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		if os.IsNotExist(err) {
			return fs.ErrNotExist
		}
		if err != nil || !info.IsDir() {
			return errForeign
		}
	}
	return nil
}

func (w *Workspace) chmodByName(p string, mode func(fs.FileMode) fs.FileMode) error {
	info, err := os.Lstat(w.at(p))
	if err != nil || !info.IsDir() {
		return nil
	}
	return os.Chmod(w.at(p), mode(info.Mode()))
}

// clean removes the temporary names that a cut copy may have left.
func (s *swap) clean(p *plan) {
	for _, e := range p.Entries {
		tmp := ".harness-tmp-" + s.name + "-" + filepath.Base(e.Old)
		for _, dir := range []string{filepath.Dir(s.w.at(e.Path)), filepath.Join(s.dir, "old"), filepath.Dir(filepath.Join(s.dir, e.New))} {
			removeAll(filepath.Join(dir, tmp))
		}
	}
}
