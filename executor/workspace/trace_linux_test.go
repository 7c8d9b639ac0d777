//go:build linux

package workspace

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// syscallInfo is the head of struct ptrace_syscall_info, see ptrace(2).
type syscallInfo struct {
	op     uint8
	_      [3]uint8
	arch   uint32
	ip, sp uint64
	nr     uint64
	args   [6]uint64
	_      [3]uint64
}

// runCut runs this binary as a child and kills it as it enters its n-th system
// call that changes a file, which the kernel then never does. It says whether
// the child got that far. Programs that the child starts are not counted.
func runCut(t testing.TB, n int, env string, args ...string) bool {
	t.Helper()
	runtime.LockOSThread() // only the thread that started it is its tracer
	defer runtime.UnlockOSThread()
	c := exec.Command("/proc/self/exe", args...)
	c.Env = append(os.Environ(), env)
	log, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Setpgid: true}
	if err := c.Start(); err != nil {
		t.Skip("nothing can be traced here: ", err)
	}
	pid := c.Process.Pid
	defer unix.Kill(-pid, unix.SIGKILL)
	var ws unix.WaitStatus
	if _, err := unix.Wait4(pid, &ws, unix.WALL, nil); err != nil || !ws.Stopped() {
		t.Fatal("it did not stop: ", err)
	}
	if err := unix.PtraceSetOptions(pid, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL); err != nil {
		t.Fatal(err)
	}
	unix.PtraceSyscall(pid, 0)
	seen, started := 0, map[int]bool{pid: true}
	for {
		tid, err := unix.Wait4(-pid, &ws, unix.WALL, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !ws.Stopped() {
			if tid != pid {
				continue
			}
			if ws.Signaled() && ws.Signal() == unix.SIGKILL && seen >= n {
				return true
			}
			if !ws.Exited() || ws.ExitStatus() != 0 {
				text, _ := os.ReadFile(log.Name())
				t.Fatalf("the child ended with %v: %s", ws, text)
			}
			return false
		}
		sig := ws.StopSignal()
		switch {
		case sig == unix.SIGTRAP|0x80:
			sig = 0
			var info syscallInfo
			if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0); e != 0 {
				break
			}
			if info.op == unix.PTRACE_SYSCALL_INFO_ENTRY && changesFile(tid, &info) {
				if seen++; seen == n {
					unix.Kill(pid, unix.SIGKILL)
				}
			}
		case sig == unix.SIGTRAP:
			sig = 0
		case sig == unix.SIGSTOP && !started[tid]: // a thread's first stop
			started[tid], sig = true, 0
		}
		unix.PtraceSyscall(tid, int(sig))
	}
}

func changesFile(tid int, s *syscallInfo) bool {
	switch s.nr {
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_UNLINKAT, unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_MKDIRAT, unix.SYS_MKNODAT,
		unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT, unix.SYS_FTRUNCATE, unix.SYS_TRUNCATE,
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_COPY_FILE_RANGE,
		unix.SYS_SENDFILE, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SYNCFS:
		return true
	case unix.SYS_OPENAT:
		return s.args[2]&(unix.O_CREAT|unix.O_TRUNC) != 0
	case unix.SYS_WRITE, unix.SYS_PWRITE64:
		to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tid, s.args[0]))
		return err == nil && strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "/dev/")
	}
	return false
}
