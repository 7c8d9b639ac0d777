package hands

import (
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// ownNetwork gives the calling thread, and so its step, a network namespace
// with a loopback, and hands the one listener in it to the executor. Steps
// share no namespace, so none reaches the listener of another.
func ownNetwork(conn *net.UnixConn) error {
	fd, err := listen()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, _, err = conn.WriteMsgUnix([]byte{Listening}, unix.UnixRights(fd), nil)
	return err
}

func listen() (int, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return -1, err
	}
	if err := loopback(); err != nil {
		return -1, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err = unix.Bind(fd, &unix.SockaddrInet4{Port: ProxyPort, Addr: [4]byte{127, 0, 0, 1}}); err == nil {
		err = unix.Listen(fd, 128)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func tryNetwork() Capability {
	result := make(chan Capability)
	go func() {
		runtime.LockOSThread()
		c := Capability{Name: "network_proxy", Enforced: true, Optional: true}
		fd, err := listen()
		if err != nil {
			c.Enforced, c.Detail = false, err.Error()+"; no command has a network"
		} else {
			unix.Close(fd)
		}
		result <- c
	}()
	return <-result
}
