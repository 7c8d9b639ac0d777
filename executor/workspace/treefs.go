package workspace

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// FS is the tree for walking.
func (t *Tree) FS() fs.FS {
	if len(t.layers) == 0 {
		return t.root.FS()
	}
	return treeFS{t}
}

type treeFS struct{ t *Tree }

func (f treeFS) Open(name string) (fs.File, error)          { return f.t.Open(name) }
func (f treeFS) Stat(name string) (fs.FileInfo, error)      { return f.t.Stat(name) }
func (f treeFS) ReadDir(name string) ([]fs.DirEntry, error) { return f.t.readDir(name) }

// readDir is what a folder's layers show together, sorted.
func (t *Tree) readDir(name string) ([]fs.DirEntry, error) {
	from := t.sources(name)
	if len(from) == 0 {
		return nil, missing("readdir", name)
	}
	seen := map[string]bool{}
	var all []fs.DirEntry
	for i, dir := range from {
		entries, err := os.ReadDir(dir)
		if err != nil && i == len(from)-1 && len(all) == 0 {
			return nil, err
		}
		for _, d := range entries {
			if seen[d.Name()] {
				continue
			}
			seen[d.Name()] = true
			if d.Type()&fs.ModeCharDevice != 0 {
				if info, err := d.Info(); err != nil || whiteout(info) {
					continue
				}
			}
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, nil
}

// walk calls each for all below a folder; a folder that cannot be read is as empty.
func (t *Tree) walk(dir string, each func(name string, info fs.FileInfo) error) error {
	entries, err := t.readDir(dir)
	if err != nil {
		return nil
	}
	for _, d := range entries {
		info, err := d.Info()
		if err != nil {
			return err
		}
		name := path.Join(dir, d.Name())
		if err := each(name, info); err != nil {
			return err
		}
		if d.IsDir() {
			if err := t.walk(name, each); err != nil {
				return err
			}
		}
	}
	return nil
}
