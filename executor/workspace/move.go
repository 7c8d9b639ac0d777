package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Each of these can be called again after a crash in the middle of it.

var errNotDir error = syscall.ENOTDIR

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// moveOnce moves a path of any kind; nothing at from means that it was moved.
func moveOnce(from, to string) error {
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	err = os.Rename(from, to)
	if errors.Is(err, syscall.EXDEV) {
		err = moveAcross(from, to, info)
	}
	return err
}

// replace puts the file or link at from in to's place, at once for every reader.
func replace(from, to string) error { return moveOnce(from, to) }

// moveAcross moves between file systems: copied under a name of its own beside
// to, then renamed.
func moveAcross(from, to string, info fs.FileInfo) error {
	tmp := filepath.Join(filepath.Dir(to), tempName)
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := copyTree(from, tmp, info); err != nil {
		os.RemoveAll(tmp)
		return err
	}
	if err := os.Rename(tmp, to); err != nil {
		os.RemoveAll(tmp)
		return err
	}
	return os.RemoveAll(from)
}

// tempName is what a copy is called until it is whole. Files move one at a time.
const tempName = ".harness-landing"

// linkOnce keeps the version at from also under to: a second name of the same
// file, or a copy on another file system.
func linkOnce(from, to string) error {
	if exists(to) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return copyOnce(from, to)
}

// copyOnce keeps a copy of from as to, whole or not at all.
func copyOnce(from, to string) error {
	if exists(to) {
		return nil
	}
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	tmp := to + ".new"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := copyTree(from, tmp, info); err != nil {
		return err
	}
	return os.Rename(tmp, to)
}

// copyTree copies a path of any kind with modes and times. to must not exist.
func copyTree(from, to string, info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case info.IsDir():
		if err := os.Mkdir(to, 0o700); err != nil {
			return err
		}
		entries, err := os.ReadDir(from)
		if err != nil {
			return err
		}
		for _, e := range entries {
			i, err := e.Info()
			if err != nil {
				return err
			}
			if err := copyTree(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()), i); err != nil {
				return err
			}
		}
		return os.Chmod(to, info.Mode().Perm()|info.Mode()&(fs.ModeSetgid|fs.ModeSticky))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither file, folder nor link: it is not kept", from)
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Chmod(info.Mode().Perm()), keepOwner(out, info), out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// writeInto gives the file at to the content, mode and time of the one at from,
// which stays: every other name of to follows.
func writeInto(to, from string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Chmod(info.Mode().Perm()), out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

func makeDir(at string, mode fs.FileMode) error {
	if err := os.Mkdir(at, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Chmod(at, mode&(fs.ModePerm|fs.ModeSetgid|fs.ModeSticky))
}

// below says whether name lies in dir, both relative with slashes.
func below(dir, name string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}
