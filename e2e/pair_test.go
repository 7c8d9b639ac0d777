package e2e

import (
	"context"
	"net"
	"os"
	"syscall"
	"testing"

	"harness/contract"
	"harness/executor"
	"harness/transport/socket"
)

// overPair joins client and server by a Unix socket pair, as parent and child are.
func overPair(t *testing.T, x *executor.Executor) contract.Executor {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	conn := func(fd int) net.Conn {
		f := os.NewFile(uintptr(fd), "pair")
		defer f.Close()
		c, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	server, client := conn(fds[0]), conn(fds[1])
	serve(t, func(ctx context.Context) error { return socket.ServeConn(ctx, server, x) })
	t.Cleanup(func() { client.Close() })
	return socket.NewClient(func(context.Context) (net.Conn, error) { return client, nil })
}
