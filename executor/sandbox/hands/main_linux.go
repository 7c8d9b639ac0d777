package hands

import (
	"encoding/json"
	"net"
	"os"
	"os/signal"
	"runtime"

	"golang.org/x/sys/unix"
)

const control = 3

// Orphans go to the main thread of PID 1, so the main goroutine must stay on
// it; and no step's thread may be the main one, whose rights are the process's.
func init() {
	if len(os.Args) > 1 && (os.Args[1] == Arg || os.Args[1] == LoneArg) {
		runtime.LockOSThread()
	}
}

// Main is the life of the hands; it does not return.
func Main() {
	// What the executor was started with by others is not for commands either.
	if err := unix.CloseRange(control, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		os.Exit(1)
	}
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	unix.Umask(0o022)
	orphans := make(chan os.Signal, 1)
	signal.Notify(orphans, unix.SIGCHLD)
	go serve()
	for range orphans {
		for {
			// Only this thread's children: a step's thread waits for its own.
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WALL|unix.WNOTHREAD, nil)
			if pid <= 0 && err != unix.EINTR {
				break
			}
		}
	}
}

// serve answers the parent until it is gone.
func serve() {
	var tree *tree
	for {
		files := receive()
		if files == nil {
			os.Exit(0)
		}
		conn, err := net.FileConn(files[0])
		files[0].Close()
		if err != nil {
			continue
		}
		if tree == nil {
			var s Setup
			if json.NewDecoder(conn).Decode(&s) != nil {
				os.Exit(1)
			}
			t, ready := build(s)
			json.NewEncoder(conn).Encode(ready)
			conn.Close()
			if t == nil {
				os.Exit(1)
			}
			tree = t
			go tree.spare()
			continue
		}
		go tree.conduct(conn, files[1:])
	}
}

// receive takes one packet's files; nil when the parent is gone.
func receive() []*os.File {
	buf, oob := make([]byte, 16), make([]byte, unix.CmsgSpace(5*4))
	for {
		n, oobn, _, _, err := unix.Recvmsg(control, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return nil
		}
		msgs, _ := unix.ParseSocketControlMessage(oob[:oobn])
		var files []*os.File
		for _, m := range msgs {
			fds, _ := unix.ParseUnixRights(&m)
			for _, fd := range fds {
				files = append(files, os.NewFile(uintptr(fd), "passed"))
			}
		}
		if len(files) > 0 {
			return files
		}
	}
}
