package executor

import (
	"os"

	"golang.org/x/sys/unix"
)

// growPipe asks for a larger pipe, so that a loud command is read in fewer
// pieces. A user over the kernel's soft limit keeps the small one.
func growPipe(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		c.Control(func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20) })
	}
}
