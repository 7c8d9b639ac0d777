//go:build unix

package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"harness/contract"
	"harness/transport/socket"
)

// secrets are parts of the names of variables that the executor has no business to know.
var secrets = []string{"_API_KEY", "_TOKEN", "SECRET", "PASSWORD"}

// startExecutor starts the executor as a child process, joined by a socket pair;
// env is added to its environment.
func startExecutor(dir string, f policyFlags, env ...string) (contract.Executor, func() error, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, err
	}
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
	}
	theirs := os.NewFile(uintptr(fds[1]), "executor")
	defer theirs.Close()
	conn, err := connOf(fds[0])
	if err != nil {
		return nil, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(self, append([]string{"executor", "--fd=3", "--cd=" + dir}, f.args()...)...)
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stderr = os.Stderr
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(strings.ToUpper(kv), "=")
		if !slices.ContainsFunc(secrets, func(part string) bool { return strings.Contains(name, part) }) {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	stop := func() error {
		conn.Close()
		err := cmd.Wait()
		var code *exec.ExitError
		if errors.As(err, &code) && code.ExitCode() > 1 {
			return &exit{code.ExitCode(), nil} // it has said why
		}
		return err
	}
	return socket.NewClient(func(context.Context) (net.Conn, error) { return conn, nil }), stop, nil
}
