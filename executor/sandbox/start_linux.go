package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/sandbox/hands"
)

const startTimeout = 20 * time.Second

// Sandbox is a session's hands.
type Sandbox struct {
	lone     *lone // nil: on the rung of namespaces
	config   Config
	starting sync.Mutex
	started  bool
	startErr error
	control  *os.File
	sending  sync.Mutex
	caps     []*v1.Capability
	meets    bool
	stop     func()
	done     chan struct{} // closed when the hands ended
	stderr   *bytes.Buffer // to be read after done
}

// HandsMain is the life of the hands, if this process is to be any.
func HandsMain() {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case hands.Arg:
		hands.Main()
	case hands.LoneArg:
		hands.LoneMain()
	}
}

// Start finds out what the machine enforces, or says what it refuses. Where
// that is known since the last boot, the hands come up with the first command.
func Start(ctx context.Context, c Config) (*Sandbox, error) {
	var err error
	if c.Workspace, err = filepath.EvalSymlinks(c.Workspace); err != nil {
		return nil, contract.Errorf(v1.Error_not_found, "the workspace: %v", err)
	}
	if c.Workspace == "/" {
		return nil, contract.Errorf(v1.Error_invalid, "the whole file system cannot be a workspace")
	}
	if err := os.MkdirAll(c.State, 0o700); err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "the sandbox's folder: %v", err)
	}
	if c.State, err = filepath.EvalSymlinks(c.State); err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "the sandbox's folder: %v", err)
	}
	if c.Self == "" {
		c.Self = "/proc/self/exe"
	}
	s := &Sandbox{config: c, done: make(chan struct{}), stderr: new(bytes.Buffer)}
	switch c.Rung {
	case "landlock":
		return startLone(ctx, c)
	case "none":
		return startFree(c), nil
	case "", "auto", "namespaces":
	default:
		return nil, contract.Errorf(v1.Error_invalid, "there is no sandbox %q; there are auto, namespaces, landlock and none", c.Rung)
	}
	if s.recall() {
		return s, nil
	}
	err = s.begin(ctx)
	if err == nil {
		s.remember()
		return s, nil
	}
	if c.Rung == "namespaces" {
		return nil, err
	}
	below, lerr := startLone(ctx, c)
	if lerr != nil {
		return nil, errors.Join(err, lerr)
	}
	return below, nil
}

// begin brings up the hands, once.
func (s *Sandbox) begin(ctx context.Context) error {
	s.starting.Lock()
	defer s.starting.Unlock()
	if s.started || s.startErr != nil {
		return s.startErr
	}
	s.startErr = s.bringUp(ctx)
	s.started = s.startErr == nil
	if s.startErr != nil {
		s.forget()
	}
	return s.startErr
}

func (s *Sandbox) bringUp(ctx context.Context) error {
	if err := s.launch(s.config.Self, idMaps()); err != nil {
		return refused(err)
	}
	known := s.caps
	err := s.setUp(ctx, plan(s.config))
	if err == nil && known != nil && !slices.EqualFunc(known, s.caps, sameCapability) {
		err = contract.Errorf(v1.Error_unavailable, "the machine does not enforce any more what it did before").
			WithHint("open the session again; harness doctor says what changed")
	}
	if err != nil {
		s.end()
	}
	return err
}

type idMap struct{ uid, gid []syscall.SysProcIDMap }

// idMaps are what to try: root keeps all ids that it has, or just its own;
// a normal user only ever has its own.
func idMaps() []idMap {
	uid, gid := os.Getuid(), os.Getgid()
	own := idMap{[]syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}, []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}}
	if uid != 0 {
		return []idMap{own}
	}
	return []idMap{{ranges("/proc/self/uid_map"), ranges("/proc/self/gid_map")}, own}
}

func ranges(file string) (list []syscall.SysProcIDMap) {
	b, _ := os.ReadFile(file)
	for line := range strings.Lines(string(b)) {
		var first, outside, size int
		if n, _ := fmt.Sscan(line, &first, &outside, &size); n == 3 {
			list = append(list, syscall.SysProcIDMap{ContainerID: first, HostID: first, Size: size})
		}
	}
	return list
}

// handsCaps are the rights over its own namespaces that the hands keep when
// they are not root.
var handsCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_SETPCAP, unix.CAP_KILL, unix.CAP_SYS_PTRACE, unix.CAP_NET_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER}

// launch starts the hands from a thread that lives as long as they do, since
// the kernel ends them when that thread ends.
func (s *Sandbox) launch(self string, maps []idMap) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	s.control = os.NewFile(uintptr(fds[0]), "control")
	theirs := os.NewFile(uintptr(fds[1]), "control")
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer close(s.done)
		var cmd *exec.Cmd
		for _, m := range maps {
			cmd = &exec.Cmd{Path: self, Args: []string{"harness", hands.Arg}, Env: []string{}, ExtraFiles: []*os.File{theirs}, Stderr: s.stderr, Dir: "/"}
			cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
				Pdeathsig:  syscall.SIGKILL, UidMappings: m.uid, GidMappings: m.gid, Setsid: true,
			}
			if os.Getuid() != 0 {
				cmd.SysProcAttr.AmbientCaps = handsCaps
			}
			if err = cmd.Start(); err == nil {
				break
			}
		}
		theirs.Close()
		if err == nil {
			s.stop = func() { cmd.Process.Kill() }
		}
		started <- err
		if err == nil {
			cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		s.control.Close()
		return err
	}
	return nil
}

func refused(err error) error {
	e := contract.Errorf(v1.Error_unavailable, "the kernel refuses namespaces: %v", err)
	switch {
	case errors.Is(err, unix.ENOSPC):
		return e.WithHint("raise the sysctl user.max_user_namespaces")
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return e.WithHint("allow user namespaces: sysctl kernel.apparmor_restrict_unprivileged_userns=0 or kernel.unprivileged_userns_clone=1; in Docker run with --security-opt seccomp=unconfined --security-opt systempaths=unconfined")
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		return e.WithHint("this kernel was built without user namespaces")
	}
	return e
}

func (s *Sandbox) setUp(ctx context.Context, p hands.Setup) error {
	conn, err := s.send()
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(startTimeout))
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })()
	if err := json.NewEncoder(conn).Encode(p); err != nil {
		return s.lost(err)
	}
	var r hands.Ready
	if err := json.NewDecoder(conn).Decode(&r); err != nil {
		return s.lost(err)
	}
	if r.Error != "" {
		return contract.Errorf(v1.Error_unavailable, "the sandbox could not be set up: %s", r.Error).WithHint("%s", r.Hint)
	}
	s.caps, s.meets = nil, true
	for _, c := range r.Capabilities {
		s.caps = append(s.caps, &v1.Capability{Name: c.Name, Enforced: c.Enforced, Detail: c.Detail})
		s.meets = s.meets && (c.Enforced || c.Optional)
	}
	return nil
}

// send opens a conversation with the hands, passing files along.
func (s *Sandbox) send(files ...*os.File) (net.Conn, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "a socket to the hands: %v", err)
	}
	ours := os.NewFile(uintptr(fds[0]), "step")
	defer ours.Close()
	rights := []int{fds[1]}
	for _, f := range files {
		raw, err := f.SyscallConn()
		if err != nil {
			unix.Close(fds[1])
			return nil, contract.Errorf(v1.Error_invalid, "a file of the command: %v", err)
		}
		raw.Control(func(fd uintptr) { rights = append(rights, int(fd)) })
	}
	s.sending.Lock()
	err = unix.Sendmsg(int(s.control.Fd()), []byte{1}, unix.UnixRights(rights...), nil, unix.MSG_NOSIGNAL)
	s.sending.Unlock()
	runtime.KeepAlive(files)
	unix.Close(fds[1])
	if err != nil {
		return nil, s.lost(err)
	}
	return net.FileConn(ours)
}

// lost says that the hands are gone, and what they said last.
func (s *Sandbox) lost(err error) error {
	select {
	case <-s.done:
		last := s.stderr.Bytes()
		return contract.Errorf(v1.Error_unavailable, "the sandbox's process ended: %v: %s", err, last[:min(len(last), 2000)]).WithHint("open the session again")
	case <-time.After(200 * time.Millisecond):
		return contract.Errorf(v1.Error_unavailable, "the sandbox's process does not answer: %v", err)
	}
}

// Rung is the step of the ladder that this sandbox stands on.
func (s *Sandbox) Rung() string {
	switch {
	case s.lone != nil && s.lone.free:
		return "none"
	case s.lone != nil:
		return "landlock"
	}
	return "namespaces"
}

// Direct is whether commands work in the tree itself, without an overlay.
func (s *Sandbox) Direct() bool { return s.lone != nil }

// Capabilities are what was found by trying it.
func (s *Sandbox) Capabilities() []*v1.Capability { return s.caps }

// MeetsMinimum is whether commands may run here.
func (s *Sandbox) MeetsMinimum() bool { return s.meets }

// Close ends the hands and all that runs in them.
func (s *Sandbox) Close() error {
	s.starting.Lock()
	defer s.starting.Unlock()
	if !s.started || s.lone != nil {
		s.startErr = contract.Errorf(v1.Error_unavailable, "the sandbox is closed")
		return nil
	}
	return s.end()
}

func (s *Sandbox) end() error {
	s.stop()
	<-s.done
	return s.control.Close()
}
