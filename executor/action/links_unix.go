//go:build unix

package action

import (
	"io/fs"
	"syscall"
)

func hardLinks(i fs.FileInfo) uint64 {
	if st, ok := i.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}
