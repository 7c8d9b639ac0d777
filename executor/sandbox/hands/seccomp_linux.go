package hands

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// refusedCalls widen what a program can reach in the kernel; nothing that
// builds or tests software needs them.
var refusedCalls = []uint32{
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_CHROOT, unix.SYS_PIVOT_ROOT,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_MOUNT_SETATTR,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT,
	unix.SYS_SYSLOG, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_VHANGUP, unix.SYS_LOOKUP_DCOOKIE,
	unix.SYS_PROCESS_VM_WRITEV, // it would change the words of a program between the gate and its start
}

const (
	newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME
	unseen        = unix.CLONE_UNTRACED // such a child would not come to the gate
	x32           = 0x40000000
)

var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// socketFamilies are the only ones a program may open.
var socketFamilies = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// terminalCalls push input into a terminal. The kernel reads their low 32
// bits only, and so does the filter.
var terminalCalls = []uint32{unix.TIOCSTI, unix.TIOCLINUX}

// filter is the program that the kernel runs at each call of a command, which
// may open sockets of the families only.
func filter(families []uint32) ([]unix.SockFilter, error) {
	arch, ok := auditArch[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("no seccomp filter for %s", runtime.GOARCH)
	}
	const (
		nr, archAt, arg0, arg1 = 0, 4, 16, 24 // of struct seccomp_data, little-endian
		load                   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal                  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		atLeast                = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		anyBit                 = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		ret                    = unix.BPF_RET | unix.BPF_K
	)
	fail := func(e unix.Errno) unix.SockFilter {
		return unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(e)}
	}
	allow := unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW}
	p := []unix.SockFilter{
		{Code: load, K: archAt}, {Code: equal, Jt: 1, K: arch}, fail(unix.ENOSYS),
		{Code: load, K: nr}, {Code: atLeast, Jf: 1, K: x32}, fail(unix.ENOSYS),
		{Code: equal, Jf: 1, K: unix.SYS_CLONE3}, fail(unix.ENOSYS), // its flags lie in memory; libraries fall back to clone
	}
	for i, call := range refusedCalls { // each jumps to the one refusal behind the list
		p = append(p, unix.SockFilter{Code: equal, Jt: uint8(len(refusedCalls) - i), K: call})
	}
	p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: 1}, fail(unix.EPERM))
	p = append(p, unix.SockFilter{Code: equal, Jf: 4, K: unix.SYS_CLONE}, unix.SockFilter{Code: load, K: arg0},
		unix.SockFilter{Code: anyBit, Jf: 1, K: newNamespaces | unseen}, fail(unix.EPERM), allow)
	p = append(p, unix.SockFilter{Code: equal, Jf: uint8(2 + len(terminalCalls)*2), K: unix.SYS_IOCTL}, unix.SockFilter{Code: load, K: arg1})
	for _, c := range terminalCalls {
		p = append(p, unix.SockFilter{Code: equal, Jf: 1, K: c}, fail(unix.EPERM))
	}
	p = append(p, allow)
	p = append(p, unix.SockFilter{Code: equal, Jf: uint8(2 + len(families)*2), K: unix.SYS_SOCKET}, unix.SockFilter{Code: load, K: arg0})
	for _, f := range families {
		p = append(p, unix.SockFilter{Code: equal, Jf: 1, K: f}, allow)
	}
	return append(p, fail(unix.EAFNOSUPPORT), allow), nil
}
