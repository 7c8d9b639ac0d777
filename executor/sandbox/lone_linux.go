package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/sandbox/hands"
)

// lone is the rung below namespaces, for containers and systems that refuse
// them: each command under a supervisor of its own, held by Landlock and
// seccomp alone, and traced, so that none of its processes gets away. It works in the tree itself, and has no network, not even a
// loopback.
type lone struct {
	config Config
	free   bool // the rung is none
	read   []string
	write  []string
	tmp    string
}

// startLone tries the rung out.
func startLone(ctx context.Context, c Config) (*Sandbox, error) {
	l := &lone{config: c, tmp: filepath.Join(c.State, "tmp")}
	for _, d := range []string{l.tmp, l.cache("go-build"), l.cache("xdg")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, contract.Errorf(v1.Error_unavailable, "the sandbox's folder: %v", err)
		}
	}
	l.lists()
	s := &Sandbox{config: c, lone: l, started: true}
	caps, err := l.probe(ctx)
	if err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "Landlock and seccomp alone do not hold here either: %v", err)
	}
	s.caps, s.meets = caps, true
	return s, nil
}

func (l *lone) cache(name string) string { return filepath.Join(l.config.State, "cache", name) }

// lists is what may be read and written: what the namespaces would show.
func (l *lone) lists() {
	p := plan(l.config)
	closed := append(slices.Clone(p.Masks), p.Hide...)
	l.read = open("/", closed)
	for _, b := range p.Binds {
		l.read = append(l.read, open(b.Path, p.Hide)...)
	}
	l.write = []string{l.tmp, l.config.State + "/cache"}
	l.read = append(l.read, l.write...)
	for _, dev := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"} {
		if _, err := os.Stat(dev); err == nil {
			l.write = append(l.write, dev)
		}
	}
}

// open is dir, or where something below it is closed, all that is beside that.
// A folder that is taken apart cannot be listed itself, and what is made new in
// it cannot be read.
func open(dir string, closed []string) (list []string) {
	if slices.Contains(closed, dir) {
		return nil
	}
	if !slices.ContainsFunc(closed, func(c string) bool { return within(c, dir) }) {
		return []string{dir}
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 { // a link is followed where it leads
			list = append(list, open(filepath.Join(dir, e.Name()), closed)...)
		}
	}
	return list
}

// environment sends temporary files and caches to where they may be written.
func (l *lone) environment(env []string) []string {
	set := map[string]string{"TMPDIR": l.tmp, "GOCACHE": l.cache("go-build"), "XDG_CACHE_HOME": l.cache("xdg"), "npm_config_cache": l.cache("npm"), "PIP_CACHE_DIR": l.cache("pip")}
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return set[name] != ""
	})
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return env
}

func (l *lone) run(ctx context.Context, c Command) (*Exit, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "a socket to the supervisor: %v", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "step"), os.NewFile(uintptr(fds[1]), "step")
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		theirs.Close()
		return nil, err
	}
	defer conn.Close()
	judge := c.Gate
	if judge == nil {
		judge = func(hands.Program) (*v1.Decision, bool) { return nil, false }
	}
	keeper, gate, err := newGatekeeper(judge)
	if err != nil {
		theirs.Close()
		return nil, contract.Errorf(v1.Error_unavailable, "a socket to the supervisor: %v", err)
	}
	defer keeper.close()
	cmd := &exec.Cmd{Path: l.config.Self, Args: []string{"harness", hands.LoneArg}, Env: []string{}, Dir: "/", Stdout: c.Output, ExtraFiles: []*os.File{theirs, gate}}
	if c.Stdin != nil {
		cmd.Stdin = c.Stdin
	}
	if c.Errors != nil {
		cmd.Stderr = c.Errors
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	theirs.Close()
	gate.Close()
	if err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "the supervisor: %v", err)
	}
	defer cmd.Wait()
	step := hands.Lone{Step: l.step(c), Free: l.free, Read: l.read, Write: l.write}
	if len(c.Hide) > 0 {
		step.Read = append(slices.Clone(l.read), open(l.config.Workspace, c.Hide)...)
	} else {
		step.Read = append(slices.Clone(l.read), l.config.Workspace)
	}
	if c.Upper != "" {
		step.Write = append(slices.Clone(l.write), l.config.Workspace)
	}
	if err := json.NewEncoder(conn).Encode(step); err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "the supervisor: %v", err)
	}
	defer context.AfterFunc(ctx, func() { conn.(*net.UnixConn).CloseWrite() })()
	var d hands.Done
	if err := json.NewDecoder(conn).Decode(&d); err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "the supervisor ended: %v", err)
	}
	return exitOf(d, keeper)
}

func (l *lone) step(c Command) hands.Step {
	s := stepOf(c)
	if !l.free {
		s.Env = l.environment(s.Env)
	}
	s.Errors = c.Errors != nil
	s.Lower, s.Upper, s.Work, s.Hide, s.Gate = nil, "", "", nil, true
	return s
}

// startFree is no sandbox: commands may do what the user may. They are started
// under a supervisor that records them, refuses what a rule denies as far as
// they do not work around it, and keeps the limits.
func startFree(c Config) *Sandbox {
	const off = "--sandbox none"
	s := &Sandbox{config: c, lone: &lone{config: c, free: true}, started: true, meets: true, caps: Unavailable(errors.New(off))}
	for _, k := range s.caps {
		switch k.Name {
		case "exec_gate":
			k.Detail = "programs are recorded, and denied ones refused, but one that means to can get around it"
		case "memory_limit", "process_limit":
			k.Enforced, k.Detail = true, ""
		}
	}
	return s
}

// probe runs what must fail, and says what held.
func (l *lone) probe(ctx context.Context) ([]*v1.Capability, error) {
	secret := filepath.Join(l.config.State, "trial")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o600); err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	script := fmt.Sprintf("exec 2>/dev/null; cat %s; echo w > %s; cat %s; exit 7", quote(secret), quote(secret), quote(secret))
	exit, err := l.run(ctx, Command{Argv: []string{"/bin/sh", "-c", script}, Dir: l.config.Workspace, Env: []string{"PATH=/usr/bin:/bin"}, Output: w, Timeout: 10 * time.Second})
	w.Close()
	if err != nil {
		return nil, err
	}
	out, _ := io.ReadAll(r)
	if now, err := os.ReadFile(secret); exit.Code != 7 || len(out) > 0 || err != nil || string(now) != "secret\n" {
		return nil, fmt.Errorf("a trial got through: exit code %d, %q", exit.Code, out)
	}
	none := func(name, detail string) *v1.Capability { return &v1.Capability{Name: name, Detail: detail} }
	held := func(name, detail string) *v1.Capability {
		return &v1.Capability{Name: name, Enforced: true, Detail: detail}
	}
	const missing = "namespaces are not to be had here"
	return []*v1.Capability{
		none("user_namespace", missing), none("mount_namespace", missing), none("pid_namespace", missing), none("network_namespace", missing+"; seccomp refuses all sockets, those of the loopback too"),
		none("ipc_namespace", missing), none("uts_namespace", missing), none("overlay", "commands work in the tree, between copies of it, one at a time"),
		held("landlock", "reads and writes"), held("seccomp", ""), held("no_new_privs", ""), held("exec_gate", "by ptrace"), held("network_denied", "by seccomp"),
		held("memory_limit", "looked at as it runs"), held("process_limit", "at each new process"), held("cpu_limit", "looked at as it runs"), held("file_size_limit", "of each file"),
	}, nil
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
