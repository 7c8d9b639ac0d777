//go:build unix

package eval

import (
	"os"
	"syscall"
)

// lock holds the file for this process until it ends or closes it.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
