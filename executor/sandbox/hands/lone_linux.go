package hands

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// LoneArg is the argument that makes a program the supervisor of one step,
// where there are no namespaces: its descriptor 3 is a stream on which a Lone
// comes and a Done goes back, on 4 it asks about programs, its output is the step's.
const LoneArg = "__lone"

// Lone is one command that Landlock and seccomp alone hold.
type Lone struct {
	Step
	Free        bool     // nothing holds it: it is watched and limited only
	Read, Write []string // files, and folders with all below them; to write is not to read
}

// LoneMain is the life of such a supervisor; it does not return.
func LoneMain() {
	if err := unix.CloseRange(control, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		os.Exit(1)
	}
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	unix.Umask(0o022)
	f := os.NewFile(control, "control")
	conn, err := net.FileConn(f)
	if err != nil {
		os.Exit(1)
	}
	f.Close()
	var l Lone
	if json.NewDecoder(conn).Decode(&l) != nil {
		os.Exit(1)
	}
	cancelled := make(chan struct{})
	go func() {
		io.Copy(io.Discard, conn)
		close(cancelled)
	}()
	json.NewEncoder(conn).Encode(l.run(cancelled))
	os.Exit(0)
}

func (l *Lone) run(cancelled <-chan struct{}) (d Done) {
	begin := time.Now()
	started, finished := make(chan int, 1), make(chan ended, 1)
	g := newGate(asker(os.NewFile(control+1, "gate"), l.Suspects), os.Stdout)
	g.limit = l.Processes
	go func() {
		runtime.LockOSThread()
		defer close(started)
		pid, err := l.begin(g)
		if err != nil {
			finished <- ended{err: err}
			return
		}
		started <- pid
		g.watch(pid, func(status syscall.WaitStatus, usage syscall.Rusage) { finished <- ended{status: status, usage: usage} })
	}()
	pid, ok := <-started
	if !ok {
		return Done{Error: (<-finished).err.Error()}
	}
	limits := newWatch(descendants{pid}, l.Step)
	limits.disk = disk{} // what is written is not apart
	var deadline <-chan time.Time
	if l.Timeout > 0 {
		deadline = time.After(l.Timeout)
	}
	watch := time.NewTicker(everyWatch)
	defer watch.Stop()
	var end ended
	for over := false; !over; {
		select {
		case end = <-finished:
			over = true
		case <-deadline:
			deadline, d.TimedOut, d.Limit = nil, true, "time"
			d.Killed = kill(limits.kin)
		case <-cancelled:
			cancelled, d.Cancelled = nil, true
			d.Killed = kill(limits.kin)
		case <-watch.C:
			if struck := limits.struck(); struck != "" && d.Limit == "" {
				d.Limit = struck
				d.Killed = kill(limits.kin)
			}
		}
	}
	d.Killed += kill(limits.kin)
	if end.err != nil {
		return Done{Error: end.err.Error()}
	}
	<-g.done
	d.Execs, d.ExecsTotal = g.list, g.total
	d.Wall = time.Since(begin)
	d.settle(end)
	if g.over {
		d.Limit = "processes"
	}
	return d
}

func (l *Lone) begin(g *gate) (int, error) {
	if !l.Free {
		if err := l.confine(); err != nil {
			return 0, err
		}
	}
	if err := unix.Chdir(l.Dir); err != nil {
		return 0, fmt.Errorf("the folder %s: %w", l.Dir, err)
	}
	files := []*os.File{os.Stdout, os.Stdin}
	if l.Errors {
		files = append(files, os.Stderr)
	}
	return l.start(files, g)
}

// confine takes from the calling thread all that a program must not have.
func (l *Lone) confine() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	boundCapabilities() // who has none cannot, and need not
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	version := landlockVersion()
	if version == 0 {
		return fmt.Errorf("landlock: not in this kernel")
	}
	if err := landlockAll(version, l.Read, l.Write); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	prog, err := filter(nil)
	if err != nil {
		return err
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog))); e != 0 {
		return fmt.Errorf("seccomp: %w", e)
	}
	return nil
}

const readRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR

// fileRights are the rights that a rule on a file, and not a folder, can give.
const fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE

// landlockAll lets the calling thread read and write what is listed, and nothing else.
func landlockAll(version int, read, write []string) error {
	r, err := newRuleset(version, readRights)
	if err != nil {
		return err
	}
	defer unix.Close(r.fd)
	for _, p := range read {
		if err := r.allow(p, readRights); err != nil {
			return err
		}
	}
	for _, p := range write {
		if err := r.allow(p, r.handled&^readRights); err != nil {
			return err
		}
	}
	return r.enforce()
}

// descendants are the processes of a lone step: all that come from its
// supervisor, which those whose parent ends are handed to.
type descendants struct{ main int }

func (d descendants) members() []int {
	var list []int
	var below func(pid int)
	below = func(pid int) {
		files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
		for _, f := range files {
			b, _ := os.ReadFile(f)
			for w := range strings.FieldsSeq(string(b)) {
				if child, err := strconv.Atoi(w); err == nil && !slices.Contains(list, child) {
					list = append(list, child)
					below(child)
				}
			}
		}
	}
	below(os.Getpid())
	return slices.DeleteFunc(list, func(pid int) bool { // the dead are the tracer's, who alone waits
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		_, rest, _ := strings.Cut(string(b), ") ")
		return err != nil || strings.HasPrefix(rest, "Z")
	})
}

func (d descendants) first() int { return d.main }
