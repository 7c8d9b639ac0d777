package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Tree is the workspace as the session's steps see it: the user's folder, and
// over it the layers of a staged session. No name leads out of it.
type Tree struct {
	root   *os.Root
	dir    string
	layers []string // upper folders, the newest first; none in a live session
}

// Layers are the folders that an overlay lays over the user's, the newest first.
func (t *Tree) Layers() []string { return t.layers }

// sources are the real paths that name is made of, the newest first: one for a
// file, one or more for a folder, none where nothing is there.
func (t *Tree) sources(name string) []string {
	at := append(slices.Clone(t.layers), t.dir)
	if name == "." || name == "" {
		return at
	}
	for i, part := range strings.Split(name, "/") {
		if i > 0 && len(at) == 1 {
			if info, err := os.Lstat(at[0]); err != nil || !info.IsDir() {
				return nil
			}
		}
		if at = beneath(at, part); len(at) == 0 {
			return nil
		}
	}
	return at
}

// beneath is what part is made of in folders that lie over one another.
func beneath(dirs []string, part string) (found []string) {
	for _, d := range dirs {
		p := filepath.Join(d, part)
		info, err := os.Lstat(p)
		switch {
		case err != nil:
			continue
		case whiteout(info):
			return found
		case !info.IsDir():
			if found == nil {
				found = []string{p}
			}
			return found
		}
		found = append(found, p)
		if opaque(p) {
			return found
		}
	}
	return found
}

// real is where name is to be read, "" where nothing is there.
func (t *Tree) real(name string) string {
	if s := t.sources(name); len(s) > 0 {
		return s[0]
	}
	return ""
}

// OnDisk is where what is at a name lies; where nothing is there, nothing is there either.
func (t *Tree) OnDisk(name string) string {
	if len(t.layers) == 0 {
		return filepath.Join(t.dir, name)
	}
	if real := t.real(name); real != "" {
		return real
	}
	return filepath.Join(t.layers[0], ".harness-nothing", "here")
}

// inRoot says whether a real path is one of the user's folder.
func (t *Tree) inRoot(real string) bool {
	return under(filepath.ToSlash(real), filepath.ToSlash(t.dir))
}

func missing(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

// Lstat says what is at a name, itself where it is a link.
func (t *Tree) Lstat(name string) (fs.FileInfo, error) {
	real := t.dir
	if len(t.layers) > 0 {
		real = t.real(name)
	}
	switch {
	case real == "":
		return nil, missing("lstat", name)
	case t.inRoot(real):
		return t.root.Lstat(name)
	}
	return os.Lstat(real)
}

// Stat says what is at a name, through links.
func (t *Tree) Stat(name string) (fs.FileInfo, error) {
	if len(t.layers) == 0 {
		return t.root.Stat(name)
	}
	rel, err := t.follow("stat", name)
	if err != nil {
		return nil, err
	}
	return t.Lstat(rel)
}

// Open opens a file or folder for reading, through links.
func (t *Tree) Open(name string) (*os.File, error) {
	if len(t.layers) == 0 {
		return t.root.Open(name)
	}
	rel, err := t.follow("open", name)
	if err != nil {
		return nil, err
	}
	if real := t.real(rel); !t.inRoot(real) {
		return os.OpenFile(real, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	}
	return t.root.Open(rel)
}

// ReadFile reads a file, through links.
func (t *Tree) ReadFile(name string) ([]byte, error) {
	if len(t.layers) == 0 {
		return t.root.ReadFile(name)
	}
	return fs.ReadFile(t.FS(), name)
}

// Readlink is where a link leads.
func (t *Tree) Readlink(name string) (string, error) {
	if len(t.layers) == 0 {
		return t.root.Readlink(name)
	}
	real := t.real(name)
	if real == "" {
		return "", missing("readlink", name)
	}
	return os.Readlink(real)
}

// follow is name with its links followed; one that leads out is as missing.
func (t *Tree) follow(op, name string) (string, error) {
	real, err := t.RealPath(name)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(t.dir, real)
	if err != nil || !filepath.IsLocal(rel) {
		return "", &fs.PathError{Op: op, Path: name, Err: errors.New("leads out of the workspace")}
	}
	return filepath.ToSlash(rel), nil
}

// RealPath is the absolute path that a name has with all links followed. It may
// lie outside the workspace. It is below the user's folder also for what only
// a layer has.
func (t *Tree) RealPath(name string) (string, error) {
	if len(t.layers) == 0 {
		return filepath.EvalSymlinks(filepath.Join(t.dir, name))
	}
	rest, done := strings.Split(path.Clean(name), "/"), "."
	for hops := 0; len(rest) > 0; {
		next := path.Join(done, rest[0])
		if next == ".." || strings.HasPrefix(next, "../") {
			return filepath.EvalSymlinks(filepath.Join(t.dir, next, filepath.Join(rest[1:]...)))
		}
		rest = rest[1:]
		real := t.real(next)
		if real == "" {
			return "", missing("lstat", name)
		}
		info, err := os.Lstat(real)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			if len(rest) > 0 && !info.IsDir() {
				return "", missing("lstat", name)
			}
			done = next
			continue
		}
		if hops++; hops > 40 {
			return "", &fs.PathError{Op: "lstat", Path: name, Err: errors.New("too many links")}
		}
		to, err := os.Readlink(real)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(to) {
			rel, err := filepath.Rel(t.dir, to)
			if err != nil || !filepath.IsLocal(rel) {
				return filepath.EvalSymlinks(filepath.Join(append([]string{to}, rest...)...))
			}
			to, done = rel, "."
		}
		rest = append(strings.Split(filepath.ToSlash(to), "/"), rest...)
	}
	return filepath.Join(t.dir, done), nil
}
