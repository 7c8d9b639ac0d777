//go:build !linux

package policy

import "io/fs"

// Commands run on Linux only, so nothing has to be remembered between them here.
type folderState struct{}

func stateOf(fs.FileInfo) (folderState, bool) { return folderState{}, false }

type inode struct{ links uint64 }

func inodeOf(string) (inode, bool) { return inode{}, false }

func fileOf(string) (file, bool) { return file{}, false }
