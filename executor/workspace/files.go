package workspace

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// writeDurable replaces a file of the state folder, so that it is whole and
// there after a crash.
func writeDurable(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	tmp := name + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(tmp, name)
	}
	if err != nil {
		os.Remove(tmp)
		return err
	}
	return syncDir(filepath.Dir(name))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	d.Sync() // not every system can
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// removeAll also removes what its owner may not enter, as overlayfs's work/work.
func removeAll(path string) error {
	err := os.RemoveAll(path)
	if err == nil {
		return nil
	}
	filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}

// move renames, or between filesystems copies to a hidden name beside the
// destination first. It says whether it copied.
func move(from, to, tmp string) (bool, error) {
	err := os.Rename(from, to)
	if err == nil || !crossDevice(err) {
		return false, err
	}
	tmp = filepath.Join(filepath.Dir(to), tmp)
	if err := removeAll(tmp); err != nil {
		return false, err
	}
	if err := copyTree(from, tmp); err != nil {
		removeAll(tmp)
		return false, err
	}
	boundary("copied")
	if err := os.Rename(tmp, to); err != nil {
		removeAll(tmp)
		return false, err
	}
	return true, removeAll(from)
}

// copyTree copies a path and all below it, with modes, times and links.
func copyTree(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	switch {
	case info.Mode().IsRegular():
		return copyFile(from, to, info)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		if err := os.Symlink(target, to); err != nil {
			return err
		}
	case info.IsDir():
		if err := os.Mkdir(to, 0o700); err != nil {
			return err
		}
		entries, err := os.ReadDir(from)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := copyTree(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
				return err
			}
		}
		if err := os.Chmod(to, info.Mode()); err != nil {
			return err
		}
	default:
		if err := makeSpecial(to, info); err != nil {
			return err
		}
	}
	copyTimes(to, info)
	return nil
}

func copyFile(from, to string, info fs.FileInfo) error {
	in, err := openFile(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if e := out.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Chmod(to, info.Mode())
	}
	if err == nil {
		copyTimes(to, info)
	}
	return err
}

// openFile opens a file of ours for reading, also one that its mode closes to us.
func openFile(path string) (*os.File, error) {
	f, err := os.Open(path)
	if !errors.Is(err, fs.ErrPermission) {
		return f, err
	}
	info, serr := os.Lstat(path)
	if serr != nil || !info.Mode().IsRegular() || os.Chmod(path, info.Mode()|0o400) != nil {
		return nil, err
	}
	f, err = os.Open(path)
	return f, errors.Join(err, os.Chmod(path, info.Mode()))
}

// within does f on path, and where a folder above is closed to us by its mode,
// as a command may leave one, does it again with that folder open meanwhile.
func within(path string, f func() error) error {
	err := f()
	parent := filepath.Dir(path)
	if !errors.Is(err, fs.ErrPermission) || parent == path {
		return err
	}
	return within(parent, func() error {
		info, err := os.Lstat(parent)
		if err != nil {
			return err
		}
		if info.Mode()&0o700 == 0o700 || os.Chmod(parent, info.Mode()|0o700) != nil {
			return f()
		}
		return errors.Join(f(), os.Chmod(parent, info.Mode()))
	})
}

// unlock opens a folder of the tree to us, whatever its mode.
func (w *Workspace) unlock(p string) {
	w.chmodFolder(p, func(m fs.FileMode) fs.FileMode { return m | 0o700 })
}
