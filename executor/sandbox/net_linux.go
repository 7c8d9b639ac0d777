package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"harness/executor/sandbox/hands"
)

// listener takes a step's listener from the hands and gives it to take. What
// it returns is what comes next; without a listener that is the step's failure.
func listener(conn *net.UnixConn, take func(net.Listener, func(bool))) (io.Reader, error) {
	first, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := conn.ReadMsgUnix(first, oob)
	if err != nil || n == 0 {
		return nil, fmt.Errorf("no listener came: %w", io.ErrUnexpectedEOF)
	}
	if first[0] != hands.Listening {
		return io.MultiReader(bytes.NewReader(first), conn), nil
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(msgs) != 1 {
		return nil, fmt.Errorf("the listener did not come along: %w", io.ErrUnexpectedEOF)
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fds[0]), "listener")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	take(l, func(runs bool) {
		b := []byte{hands.StopClock}
		if runs {
			b[0] = hands.StartClock
		}
		conn.Write(b) // where it fails, the step has ended
	})
	return conn, nil
}
