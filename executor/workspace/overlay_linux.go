//go:build linux

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// whiteout says whether info is overlayfs's mark of a deletion: a 0:0 device.
func whiteout(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && st.Rdev == 0
}

// opaque says whether a directory of an upper layer hides the one below.
func opaque(path string) bool { return overlayMark(path, "opaque") == "y" }

// makeWhiteout marks a path of a layer as deleted; any user may, since Linux 5.8.
func makeWhiteout(path string) error { return unix.Mknod(path, unix.S_IFCHR, 0) }

// setOpaque lets a directory of a layer hide the one below.
func setOpaque(path string) error {
	return unix.Lsetxattr(path, "user.overlay.opaque", []byte("y"), 0)
}

// probeStack says whether layers can be made below a folder.
func probeStack(dir string) error {
	tmp, err := os.MkdirTemp(dir, "probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err = makeWhiteout(filepath.Join(tmp, "gone")); err == nil {
		err = setOpaque(tmp)
	}
	if err != nil {
		return contract.Errorf(v1.Error_unsupported, "no staged session here: %v", err).
			WithHint("Linux 5.8, and user attributes on the filesystem of %s, are needed", dir)
	}
	return nil
}

// copiedUp says whether the path existed below when the command touched it.
func copiedUp(path string) bool { return overlayMark(path, "origin") != "" }

func overlayMark(path, name string) string {
	b := make([]byte, 256)
	for _, prefix := range []string{"user.overlay.", "trusted.overlay."} {
		if n, err := unix.Lgetxattr(path, prefix+name, b); err == nil {
			if n == 0 {
				return "set"
			}
			return string(b[:n])
		}
	}
	return ""
}

// unmark takes overlayfs's attributes off a path that goes into the tree.
func unmark(path string) {
	for _, prefix := range []string{"user.overlay.", "trusted.overlay."} {
		for _, name := range []string{"origin", "impure", "opaque", "nlink", "uuid", "metacopy"} {
			unix.Lremovexattr(path, prefix+name)
		}
	}
}

func identity(info fs.FileInfo) (ino uint64, ctime int64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino, st.Ctim.Nano()
	}
	return 0, info.ModTime().UnixNano()
}

func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// copyTimes gives a copy the modification time of what it copies, a link too.
func copyTimes(path string, info fs.FileInfo) {
	t := unix.NsecToTimespec(info.ModTime().UnixNano())
	unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{t, t}, unix.AT_SYMLINK_NOFOLLOW)
}

func makeSpecial(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.ErrUnsupported
	}
	return unix.Mknod(path, st.Mode, int(st.Rdev))
}

func crossDevice(err error) bool { return errors.Is(err, unix.EXDEV) }
func isNotDir(err error) bool    { return errors.Is(err, unix.ENOTDIR) }
