package workspace

import (
	"io/fs"
	"os"
	"path"
)

// Folder is one folder of a Tree, open: in a live session names are looked up
// from its descriptor, which is quick in a deep tree.
type Folder struct {
	tree *Tree
	name string
	root *os.Root // nil in a staged session
}

// Folder opens a folder.
func (t *Tree) Folder(name string) (*Folder, error) {
	f := &Folder{tree: t, name: name}
	if len(t.layers) > 0 {
		info, err := t.Stat(name)
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
		}
		return f, err
	}
	var err error
	f.root, err = t.root.OpenRoot(name)
	return f, err
}

// Folder opens a folder in it.
func (f *Folder) Folder(name string) (*Folder, error) {
	if f.root == nil {
		return f.tree.Folder(path.Join(f.name, name))
	}
	root, err := f.root.OpenRoot(name)
	return &Folder{tree: f.tree, name: path.Join(f.name, name), root: root}, err
}

// Open opens a file in it.
func (f *Folder) Open(name string) (*os.File, error) {
	if f.root == nil {
		return f.tree.Open(path.Join(f.name, name))
	}
	return f.root.Open(name)
}

// Readlink is where a link in it leads.
func (f *Folder) Readlink(name string) (string, error) {
	if f.root == nil {
		return f.tree.Readlink(path.Join(f.name, name))
	}
	return f.root.Readlink(name)
}

// ReadDir lists it, sorted.
func (f *Folder) ReadDir() ([]fs.DirEntry, error) {
	if f.root == nil {
		return f.tree.readDir(f.name)
	}
	return fs.ReadDir(f.root.FS(), ".")
}

// Close lets go of it.
func (f *Folder) Close() error {
	if f.root == nil {
		return nil
	}
	return f.root.Close()
}
