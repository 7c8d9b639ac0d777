package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

const noFollow = unix.O_NOFOLLOW

// open opens a folder of the workspace as it is at this instant, without any
// link on the way.
func (w *Workspace) open(dir string) (fd int, err error) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	for {
		if fd, err = unix.Openat2(int(w.fd.Fd()), dir, how); err != unix.EINTR && err != unix.EAGAIN {
			return fd, err
		}
	}
}

// hold is a path through the descriptor of the folder that it is in: whatever
// somebody makes of the folders above meanwhile, it leads to where it led. It is
// errForeign where a link is among them.
func (w *Workspace) hold(p string) (held string, release func(), err error) {
	fd, err := w.open(path.Dir(p))
	switch {
	case errors.Is(err, unix.ENOENT):
		return "", nil, fs.ErrNotExist
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // before Linux 5.6, or a filter that does not know it
		return w.at(p), func() {}, w.safe(p)
	case err != nil:
		return "", nil, errForeign
	}
	return "/proc/self/fd/" + strconv.Itoa(fd) + "/" + path.Base(p), func() { unix.Close(fd) }, nil
}

// chmodFolder changes the mode of a folder, if it is one still; mode is told the present one.
func (w *Workspace) chmodFolder(p string, mode func(fs.FileMode) fs.FileMode) error {
	fd, err := w.open(p)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return w.chmodByName(p, mode)
	}
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	name := "/proc/self/fd/" + strconv.Itoa(fd)
	info, err := os.Stat(name)
	if err != nil || info.Mode() == info.Mode()&fs.ModeType|mode(info.Mode())&^fs.ModeType {
		return err
	}
	return os.Chmod(name, mode(info.Mode()))
}
