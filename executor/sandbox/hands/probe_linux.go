package hands

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// probe confines a thread as a step's is and tries what must fail.
func (t *tree) probe(s Setup) []Capability {
	list := []Capability{
		{Name: "user_namespace", Enforced: true}, {Name: "mount_namespace", Enforced: true},
		{Name: "pid_namespace", Enforced: os.Getpid() == 1}, {Name: "network_namespace", Enforced: true},
		{Name: "ipc_namespace", Enforced: true}, {Name: "uts_namespace", Enforced: true},
	}
	results := make(chan []Capability)
	go func() {
		runtime.LockOSThread()
		results <- t.tryOverlay(s)
	}()
	list = append(list, <-results...)
	go func() {
		runtime.LockOSThread()
		results <- t.tryConfined()
	}()
	list = append(list, <-results...)
	return append(list, tryNetwork(),
		Capability{Name: "memory_limit", Enforced: true, Detail: fmt.Sprintf("of all processes of a step, looked at every %v", everyWatch)},
		Capability{Name: "process_limit", Enforced: true, Detail: fmt.Sprintf("of all processes of a step, looked at every %v", everyWatch)},
		Capability{Name: "cpu_limit", Enforced: true, Detail: fmt.Sprintf("of all processes of a step, looked at every %v", 8*everyWatch)},
		Capability{Name: "disk_limit", Enforced: true, Detail: fmt.Sprintf("of all that a step writes, looked at every %v", everyWatch)},
		Capability{Name: "file_size_limit", Enforced: true, Detail: "of each file"})
}

func (t *tree) tryOverlay(s Setup) []Capability {
	c := Capability{Name: "overlay", Enforced: true}
	upper, work := filepath.Join(s.State, "probe", "upper"), filepath.Join(s.State, "probe", "work")
	err := os.MkdirAll(outside+upper, 0o700)
	if err == nil {
		err = os.MkdirAll(outside+work, 0o700)
	}
	if err == nil {
		_, err = prepare()
	}
	if err == nil {
		err = t.enter(Step{Upper: upper, Work: work})
	}
	if err != nil {
		c.Enforced, c.Detail = false, err.Error()+"; the state folder must be on a file system that can hold an overlay's upper layer, such as ext4, xfs, btrfs or tmpfs"
	}
	return []Capability{c}
}

func (t *tree) tryConfined() []Capability {
	ll := Capability{Name: "landlock", Optional: true, Detail: "not in this kernel; mounts alone keep files"}
	sec, nnp := Capability{Name: "seccomp"}, Capability{Name: "no_new_privs"}
	_, err := prepare()
	if err == nil {
		err = t.enter(Step{Upper: "", Work: ""})
	}
	if err == nil {
		err = t.confine(false)
	}
	if err != nil {
		sec.Detail, nnp.Detail = err.Error(), err.Error()
		return []Capability{ll, sec, nnp}
	}
	sec.Enforced = unix.Unshare(unix.CLONE_FS) == unix.EPERM
	v, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	nnp.Enforced = err == nil && v == 1
	if t.landlock > 0 {
		// /proc is read-only, and a read-only mount answers EROFS; Landlock answers first.
		fd, err := unix.Open("/proc/self/comm", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
		}
		ll.Enforced = err != nil
		ll.Detail = fmt.Sprintf("version %d", t.landlock)
	}
	return []Capability{ll, sec, nnp, tryGate()}
}

// tryGate refuses a program, on a thread that is confined.
func tryGate() Capability {
	const without = "; the programs that a command starts are not judged"
	c := Capability{Name: "exec_gate", Optional: true}
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		c.Detail = err.Error() + without
		return c
	}
	defer null.Close()
	asked := false
	g := newGate(func(*Program) byte { asked = true; return Refuse }, nil)
	pid, err := (&Step{Argv: []string{"/bin/sh", "-c", "exit 7"}}).start([]*os.File{null}, g)
	if err != nil {
		c.Detail = err.Error() + without
		return c
	}
	g.watch(pid, func(status syscall.WaitStatus, _ syscall.Rusage) { c.Enforced = asked && status.ExitStatus() == 126 })
	if !c.Enforced {
		c.Detail = "a refused program ran" + without
	}
	return c
}
