package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// Stage makes a new session a staged one: its steps become layers over the
// user's folder, and nothing appears there before Apply.
func (w *Workspace) Stage() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.staged {
		return nil
	}
	if len(w.layers) > 0 {
		return contract.Errorf(v1.Error_invalid, "the session has changed the folder already, it cannot be staged any more").WithField("staged")
	}
	if err := probeStack(w.state); err != nil {
		return err
	}
	w.staged = true
	return os.WriteFile(filepath.Join(w.state, "staged"), nil, 0o600)
}

// Staged says whether nothing appears in the user's folder before Apply.
func (w *Workspace) Staged() bool { return w.staged }

// Tree is the workspace as the next step sees it.
func (w *Workspace) Tree() (*Tree, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tree()
}

func (w *Workspace) tree() (*Tree, error) {
	t := &Tree{root: w.dir, dir: w.root}
	if !w.staged {
		return t, nil
	}
	var err error
	t.layers, err = w.flatten(w.stack())
	return t, err
}

// stack is the layers over the user's folder, the oldest first.
func (w *Workspace) stack() (stack []*layer) {
	for _, l := range w.layers {
		if l.state == staged || l.state == base {
			stack = append(stack, l)
		}
	}
	return stack
}

// flatAt is how many layers are merged into one: an overlay takes a few hundred
// at most, and each costs a lookup.
const flatAt = 32

// flatten is the upper folders of a stack, the newest first, with whole batches
// of old layers merged. The merged folder is a cache: the layers stay.
func (w *Workspace) flatten(stack []*layer) ([]string, error) {
	var dirs []string
	n := 0
	if len(stack) > 2*flatAt {
		n = len(stack) / flatAt * flatAt
	}
	for i := len(stack) - 1; i >= n; i-- {
		dirs = append(dirs, filepath.Join(w.layerDir(stack[i].name), "upper"))
	}
	if n == 0 {
		return dirs, nil
	}
	h := sha256.New()
	for _, l := range stack[:n] {
		fmt.Fprintln(h, l.name)
	}
	flat := filepath.Join(w.state, "flat", hex.EncodeToString(h.Sum(nil))[:32])
	if exists(flat) {
		return append(dirs, flat), nil
	}
	below, err := w.flatten(stack[:n-flatAt])
	if err != nil {
		return nil, err
	}
	m := &merge{}
	for i := n - 1; i >= n-flatAt; i-- {
		m.dirs = append(m.dirs, filepath.Join(w.layerDir(stack[i].name), "upper"))
	}
	m.dirs = append(m.dirs, below...)
	tmp := flat + ".tmp"
	if err := removeAll(tmp); err != nil {
		return nil, err
	}
	if err := m.into(tmp); err != nil {
		return nil, err
	}
	return append(dirs, flat), os.Rename(tmp, flat)
}

// merge makes one layer of several, the newest first.
type merge struct {
	dirs []string
	copy bool              // files are copied, else they are the same under another name
	want func(string) bool // of files and deletions; nil: all
}

func (m *merge) into(dest string) error {
	if err := os.MkdirAll(dest, 0o700); err != nil {
		return err
	}
	for i := len(m.dirs) - 1; i >= 0; i-- {
		if err := m.layer(m.dirs[i], dest, ""); err != nil {
			return err
		}
	}
	if len(m.dirs) > 0 {
		if info, err := os.Stat(m.dirs[0]); err == nil {
			return os.Chmod(dest, info.Mode())
		}
	}
	return nil
}

// layer lays one folder over what the older ones left in dest.
func (m *merge) layer(from, dest, rel string) error {
	var o opener
	defer o.close()
	entries, err := o.readDir(from)
	if err != nil {
		return err
	}
	for _, d := range entries {
		info, err := d.Info()
		if err != nil {
			return err
		}
		src, to, name := filepath.Join(from, d.Name()), filepath.Join(dest, d.Name()), d.Name()
		if rel != "" {
			name = rel + "/" + name
		}
		if info.IsDir() {
			if err := m.folder(src, to, name, info); err != nil {
				return err
			}
			continue
		}
		if m.want != nil && !m.want(name) {
			continue
		}
		if err := removeAll(to); err != nil {
			return err
		}
		switch {
		case whiteout(info):
			err = makeWhiteout(to)
		case m.copy || os.Link(src, to) != nil:
			err = copyTree(src, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *merge) folder(src, to, name string, info fs.FileInfo) error {
	was, err := os.Lstat(to)
	hides := opaque(src) && (m.want == nil || m.want(name))
	if err == nil && (!was.IsDir() || hides) {
		hides = true
		if err := removeAll(to); err != nil {
			return err
		}
	}
	if err := os.Mkdir(to, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	os.Chmod(to, 0o700)
	if hides {
		if err := setOpaque(to); err != nil {
			return err
		}
	}
	if err := m.layer(src, to, name); err != nil {
		return err
	}
	copyTimes(to, info)
	return os.Chmod(to, info.Mode())
}

// opener lists folders that their mode may close to us, and gives them their mode back.
type opener struct {
	paths []string
	modes []fs.FileMode
}

func (o *opener) readDir(path string) ([]os.DirEntry, error) {
	info, err := os.Lstat(path)
	if err == nil && info.IsDir() && info.Mode()&0o500 != 0o500 && os.Chmod(path, info.Mode()|0o700) == nil {
		o.paths, o.modes = append(o.paths, path), append(o.modes, info.Mode())
	}
	return os.ReadDir(path)
}

func (o *opener) close() {
	for i := len(o.paths) - 1; i >= 0; i-- {
		os.Chmod(o.paths[i], o.modes[i])
	}
}
