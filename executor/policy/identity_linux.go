package policy

import (
	"io/fs"
	"os"
	"syscall"
)

// folderState changes whenever what is in a folder does, whatever its owner
// sets its times to.
type folderState struct {
	dev, ino     uint64
	mtime, ctime syscall.Timespec
}

func stateOf(info fs.FileInfo) (folderState, bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return folderState{}, false
	}
	return folderState{uint64(s.Dev), s.Ino, s.Mtim, s.Ctim}, true
}

// inode is a regular file, whatever it is called.
type inode struct {
	dev, ino, links uint64
}

func inodeOf(path string) (inode, bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return inode{}, false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}, false
	}
	return inode{uint64(s.Dev), s.Ino, uint64(s.Nlink)}, true
}

func fileOf(path string) (file, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return file{}, false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return file{}, false
	}
	return file{uint64(s.Dev), s.Ino, s.Size}, true
}
