package disarm

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Disarm refuses execve, and writing outside of the writable folders, to the
// whole process. A Missing error names what this kernel cannot enforce.
func Disarm(writable ...string) error {
	var missing Missing
	if err := refuseWrites(writable); err != nil {
		missing = append(missing, "no write: "+err.Error())
	}
	if err := refuseExec(); err != nil {
		missing = append(missing, "no exec: "+err.Error())
	}
	if len(missing) > 0 {
		return missing
	}
	return nil
}

// written are the rights on files that change something.
const written = landlock.AccessFSSet(llsys.AccessFSWriteFile | llsys.AccessFSRemoveDir | llsys.AccessFSRemoveFile | llsys.AccessFSMakeChar |
	llsys.AccessFSMakeDir | llsys.AccessFSMakeReg | llsys.AccessFSMakeSock | llsys.AccessFSMakeFifo | llsys.AccessFSMakeBlock | llsys.AccessFSMakeSym |
	llsys.AccessFSRefer | llsys.AccessFSTruncate)

func refuseWrites(writable []string) error {
	version, err := llsys.LandlockGetABIVersion()
	if err != nil || version < 1 {
		return fmt.Errorf("the kernel has no Landlock (add landlock to its lsm= list)")
	}
	handled := written
	if version < 3 {
		handled &^= llsys.AccessFSTruncate
	}
	if version < 2 {
		handled &^= llsys.AccessFSRefer
	}
	var rules []landlock.Rule
	for _, dir := range writable {
		rules = append(rules, landlock.PathAccess(handled, dir))
	}
	rules = append(rules, landlock.PathAccess(llsys.AccessFSWriteFile, "/dev/null"))
	return landlock.Config{HandledAccessFS: handled}.RestrictPaths(rules...)
}

var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// refuseExec makes execve and execveat fail with EPERM on all threads.
func refuseExec() error {
	arch, ok := auditArch[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("no seccomp filter for %s", runtime.GOARCH)
	}
	const (
		load    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		atLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		ret     = unix.BPF_RET | unix.BPF_K
		refuse  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		x32     = 0x40000000
	)
	filter := []unix.SockFilter{
		{Code: load, K: 4}, {Code: equal, Jf: 4, K: arch},
		{Code: load, K: 0}, {Code: atLeast, Jt: 2, K: x32},
		{Code: equal, Jt: 1, K: unix.SYS_EXECVE}, {Code: equal, Jf: 1, K: unix.SYS_EXECVEAT},
		{Code: ret, K: refuse}, {Code: ret, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	// TSYNC gives this thread's filter, and its no_new_privs, to all others.
	thread, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if e != 0 {
		return fmt.Errorf("seccomp: %w", e)
	}
	if thread != 0 {
		return fmt.Errorf("seccomp: thread %d could not follow", thread)
	}
	return nil
}

// Probe tries both: to exec a program that is not there, and to make files
// in places where this process could.
func Probe() (execRefused, writeRefused bool) {
	path, _ := unix.BytePtrFromString("/nowhere/to/be/found")
	argv := [1]*byte{}
	_, _, e := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&argv[0])))
	execRefused = e == unix.EPERM
	writeRefused = true
	for _, dir := range []string{os.TempDir(), "/var/tmp", "/dev/shm", "."} {
		f, err := os.CreateTemp(dir, ".disarm-*")
		if err == nil {
			writeRefused = false
			f.Close()
			os.Remove(filepath.Join(dir, filepath.Base(f.Name())))
		}
	}
	return execRefused, writeRefused
}
