// Package action is what a step can do to files: read, write, edit, patch,
// list, search. Each action reads through the workspace's root, which no link
// leads out of, and gives back text and edits; it changes nothing itself.
package action

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/workspace"
)

// Env is what an action may look at.
type Env struct {
	Root *workspace.Tree
	Dir  string // the root's absolute path
	// Seen is the digest of a file as the planner last saw it, "" where it has not.
	Seen     func(path string) string
	Artifact func(digest string) (*os.File, error)
	Hidden   map[string]bool // absolute paths that lists and searches leave out
}

// Outcome is what an action found and wants changed.
type Outcome struct {
	Text                     string
	TotalBytes, OmittedBytes uint64
	File                     *v1.FileInfo
	Image                    *v1.Image
	Edits                    []workspace.Edit
	Notes                    []string
}

// maxFile bounds a file that is held in memory to be changed.
const maxFile = 64 << 20

// Digest names content.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// local is a path relative to the root: as the step gives it, relative or below
// the root's own path, "" the root.
func (e Env) local(p string) (string, error) {
	name := filepath.ToSlash(p)
	if path.IsAbs(name) {
		rel, err := filepath.Rel(e.Dir, p)
		if err != nil || !filepath.IsLocal(rel) {
			return "", outside(p)
		}
		name = filepath.ToSlash(rel)
	}
	name = path.Clean(name)
	if !filepath.IsLocal(name) {
		return "", outside(p)
	}
	return name, nil
}

func outside(p string) error {
	return contract.Errorf(v1.Error_outside_workspace, "%s lies outside the workspace", p).WithField("args.path")
}

// resolve follows the links of a path that is there, inside the root only.
func (e Env) resolve(p string) (string, fs.FileInfo, error) {
	name, err := e.local(p)
	if err != nil {
		return "", nil, err
	}
	real, err := e.Root.RealPath(name)
	if err != nil {
		return name, nil, e.missing(p, name, err)
	}
	rel, err := filepath.Rel(e.Dir, real)
	if err != nil || !filepath.IsLocal(rel) {
		return "", nil, contract.Errorf(v1.Error_outside_workspace, "%s is a link to %s, outside the workspace", p, real).WithField("args.path")
	}
	name = filepath.ToSlash(rel)
	info, err := e.Root.Stat(name)
	if err != nil {
		return name, nil, e.missing(p, name, err)
	}
	return name, info, nil
}

func (e Env) missing(p, name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if info, lerr := e.Root.Lstat(name); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
			return contract.Errorf(v1.Error_not_found, "%s is a link to something that is not there", p).WithField("args.path")
		}
		return contract.Errorf(v1.Error_not_found, "%s is not there%s", p, e.alike(name)).WithField("args.path")
	}
	return contract.Errorf(v1.Error_invalid, "%s cannot be opened: %v", p, errors.Unwrap(err)).WithField("args.path")
}

// alike names a file of the same folder with nearly the same name.
func (e Env) alike(name string) string {
	entries, err := fs.ReadDir(e.Root.FS(), path.Dir(name))
	if err != nil {
		return ""
	}
	want := strings.ToLower(path.Base(name))
	for _, f := range entries {
		have := strings.ToLower(f.Name())
		if have == want || strings.TrimSuffix(have, path.Ext(have)) == strings.TrimSuffix(want, path.Ext(want)) {
			return "; there is " + path.Join(path.Dir(name), f.Name())
		}
	}
	return ""
}

// load reads a regular file whole.
func (e Env) load(p string) (string, []byte, fs.FileInfo, error) {
	name, info, err := e.resolve(p)
	if err != nil {
		return "", nil, nil, err
	}
	switch {
	case info.IsDir():
		return "", nil, nil, contract.Errorf(v1.Error_unsupported, "%s is a folder", p).WithField("args.path").WithHint("list_files shows what is in it")
	case !info.Mode().IsRegular():
		return "", nil, nil, contract.Errorf(v1.Error_unsupported, "%s is no regular file", p).WithField("args.path")
	case info.Size() > maxFile:
		return "", nil, nil, contract.Errorf(v1.Error_too_large, "%s has %d bytes, the limit for a change is %d", p, info.Size(), maxFile).WithField("args.path")
	}
	data, err := e.Root.ReadFile(name)
	if err != nil {
		return "", nil, nil, e.missing(p, name, err)
	}
	return name, data, info, nil
}
