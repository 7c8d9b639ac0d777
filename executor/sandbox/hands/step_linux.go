package hands

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	grace      = 300 * time.Millisecond // between the request to end and the end
	firstWatch = 20 * time.Millisecond
	everyWatch = 40 * time.Millisecond
)

// ended is what a step's thread saw of its program.
type ended struct {
	status syscall.WaitStatus
	usage  syscall.Rusage
	err    error
}

// conduct runs one step from its request to its answer.
func (t *tree) conduct(conn net.Conn, files []*os.File) {
	defer conn.Close()
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	var s Step
	in := json.NewDecoder(conn)
	if in.Decode(&s) != nil || len(files) == 0 {
		return
	}
	w := &wishes{cancel: make(chan struct{}), stop: make(chan bool), over: make(chan struct{})}
	go w.read(io.MultiReader(in.Buffered(), conn))
	done := t.run(s, files, conn.(*net.UnixConn), w)
	close(w.over)
	json.NewEncoder(conn).Encode(done)
	t.spare()
}

// wishes are what the executor wants of a running step.
type wishes struct {
	cancel chan struct{} // closed
	stop   chan bool     // the clock of its timeout: stands, or goes on
	over   chan struct{} // closed when nobody heeds them any more
}

func (w *wishes) read(r io.Reader) {
	defer close(w.cancel)
	in := bufio.NewReader(r)
	for {
		b, err := in.ReadByte()
		if err != nil {
			return
		}
		if b != StopClock && b != StartClock {
			continue
		}
		select {
		case w.stop <- b == StopClock:
		case <-w.over:
		}
	}
}

// stopwatch is a timeout that can stand still.
type stopwatch struct {
	timer *time.Timer
	over  <-chan time.Time // nil: never
	left  time.Duration
	since time.Time
}

func (c *stopwatch) start() {
	if c.left > 0 && c.timer == nil {
		c.since, c.timer = time.Now(), time.NewTimer(c.left)
		c.over = c.timer.C
	}
}

func (c *stopwatch) stop() {
	if c.timer != nil {
		c.timer.Stop()
		c.left = max(c.left-time.Since(c.since), 1)
		c.timer, c.over = nil, nil
	}
}

// worker is a thread for one step.
type worker struct {
	family family
	err    error // it could not be prepared
	jobs   chan job
}

type job struct {
	step     Step
	files    []*os.File
	conn     *net.UnixConn
	gate     *gate      // nil: its programs are not watched
	started  chan<- int // the program; closed
	finished chan<- ended
}

func (t *tree) hire() *worker {
	ready := make(chan *worker)
	go t.thread(ready)
	return <-ready
}

// spare keeps one worker ready.
func (t *tree) spare() {
	if len(t.spares) > 0 {
		return
	}
	w := t.hire()
	select {
	case t.spares <- w:
	default:
		close(w.jobs)
	}
}

func (t *tree) run(s Step, files []*os.File, conn *net.UnixConn, wish *wishes) Done {
	begin := time.Now()
	var w *worker
	select {
	case w = <-t.spares:
	default:
		w = t.hire()
	}
	if w.err != nil {
		return Done{Error: w.err.Error()}
	}
	started, finished := make(chan int, 1), make(chan ended, 1)
	var g *gate
	if s.Gate && len(files) > 1 {
		g = newGate(asker(files[1], s.Suspects), files[0])
		files = append(files[:1:1], files[2:]...)
	}
	w.jobs <- job{s, files, conn, g, started, finished}
	var d Done
	pid, ok := <-started
	if !ok {
		return Done{Error: (<-finished).err.Error()}
	}
	fam := w.family
	fam.main = pid
	timeout := stopwatch{left: s.Timeout}
	timeout.start()
	defer timeout.stop()
	limits := newWatch(fam, s)
	watch := time.NewTimer(firstWatch)
	defer watch.Stop()
	var end ended
	over := false
	for !over {
		select {
		case end = <-finished:
			over = true
			continue
		case stop := <-wish.stop:
			if stop {
				timeout.stop()
			} else {
				timeout.start()
			}
			continue
		case <-timeout.over:
			d.TimedOut, d.Limit = true, "time"
		case <-wish.cancel:
			d.Cancelled = true
		case <-watch.C:
			watch.Reset(everyWatch)
			if d.Limit = limits.struck(); d.Limit == "" {
				continue
			}
		}
		if d.TimedOut || d.Cancelled {
			fam.signal(unix.SIGTERM)
			select {
			case end = <-finished:
				over = true
			case <-time.After(grace):
			}
		}
		d.Killed = fam.end()
		if !over {
			end, over = <-finished, true
		}
	}
	if end.err != nil {
		return Done{Error: end.err.Error()}
	}
	d.Killed += fam.end()
	if g != nil {
		<-g.done
		d.Execs, d.ExecsTotal = g.list, g.total
	}
	d.Wall = time.Since(begin)
	d.settle(end)
	if d.Limit == "" && d.Code != 0 {
		d.Limit = limits.ended()
	}
	return d
}

func (d *Done) settle(end ended) {
	d.CPU = time.Duration(end.usage.Utime.Nano() + end.usage.Stime.Nano())
	d.PeakMemory = uint64(end.usage.Maxrss) << 10
	d.Code = end.status.ExitStatus()
	if end.status.Signaled() {
		d.Signal = unix.SignalName(end.status.Signal())
		d.Code = 128 + int(end.status.Signal())
	}
	if d.Limit == "" {
		switch d.Code {
		case 128 + int(unix.SIGXCPU):
			d.Limit = "cpu"
		case 128 + int(unix.SIGXFSZ):
			d.Limit = "file_size"
		}
	}
}

// thread is a step's own thread: it is never unlocked, so it dies, and its
// namespaces with it, when the goroutine ends.
func (t *tree) thread(ready chan<- *worker) {
	runtime.LockOSThread()
	w := &worker{jobs: make(chan job, 1)}
	w.family, w.err = prepare()
	ready <- w
	if w.err != nil {
		return
	}
	if j, ok := <-w.jobs; ok {
		t.work(j)
	}
}

// work confines the thread and runs the program to its end.
func (t *tree) work(j job) {
	defer close(j.started)
	pid, err := t.begin(j)
	if err != nil {
		j.finished <- ended{err: err}
		return
	}
	j.started <- pid
	if j.gate != nil {
		j.gate.watch(pid, func(status syscall.WaitStatus, usage syscall.Rusage) {
			j.finished <- ended{status: status, usage: usage}
		})
		return
	}
	var end ended
	for {
		if _, end.err = syscall.Wait4(pid, &end.status, unix.WALL, &end.usage); end.err != unix.EINTR {
			j.finished <- end
			return
		}
	}
}

func (t *tree) begin(j job) (int, error) {
	s := j.step
	if s.Network {
		if err := ownNetwork(j.conn); err != nil {
			return 0, fmt.Errorf("a network of its own: %w", err)
		}
	}
	if err := t.enter(s); err != nil {
		return 0, err
	}
	if err := unix.Chdir(s.Dir); err != nil {
		return 0, fmt.Errorf("the folder %s: %w", s.Dir, err)
	}
	if err := t.confine(s.Upper != ""); err != nil {
		return 0, err
	}
	return s.start(j.files, j.gate)
}

// start execs the program and sets its limits before its first instruction.
func (s *Step) start(files []*os.File, g *gate) (int, error) {
	out := files[0].Fd()
	errors := out
	if s.Errors {
		errors, files = files[len(files)-1].Fd(), files[:len(files)-1]
	}
	stdin := -1
	if len(files) > 1 {
		stdin = int(files[1].Fd())
	} else {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0, err
		}
		defer unix.Close(fd)
		stdin = fd
	}
	for _, fd := range []int{stdin, int(out), int(errors)} { // programs expect files that wait
		if err := unix.SetNonblock(fd, false); err != nil {
			return 0, err
		}
	}
	program := s.program()
	pid, err := syscall.ForkExec(program, s.Argv, &syscall.ProcAttr{Env: s.Env, Files: []uintptr{uintptr(stdin), out, errors},
		Sys: &syscall.SysProcAttr{Setsid: true, Ptrace: true}})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", program, err)
	}
	var stopped syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &stopped, unix.WALL, nil); err != nil {
		return 0, err
	}
	if stopped.Exited() || stopped.Signaled() {
		return 0, fmt.Errorf("%s ended before it began", program)
	}
	if err = s.limit(pid); err != nil {
		err = fmt.Errorf("limits: %w", err)
	} else if g == nil {
		err = syscall.PtraceDetach(pid)
	} else if err = g.take(pid); err != nil {
		err = fmt.Errorf("%s: watching it: %w", program, err)
	}
	if err != nil {
		syscall.Kill(pid, syscall.SIGKILL)
		for !stopped.Exited() && !stopped.Signaled() {
			if _, err := syscall.Wait4(pid, &stopped, unix.WALL, nil); err != nil && err != unix.EINTR {
				break
			}
		}
		return 0, err
	}
	return pid, nil
}

// limit sets the kernel's own limits on a stopped process.
func (s *Step) limit(pid int) error {
	// The family's own count comes first, so that the limit is named; the kernel's
	// also counts the dead that nobody has waited for.
	processes := uint64(2*s.Processes + 256)
	cpu := uint64((s.CPU + time.Second - 1) / time.Second)
	for _, l := range []struct {
		what       int
		soft, hard uint64
		set        bool
	}{
		{unix.RLIMIT_CORE, 0, 0, true},
		{unix.RLIMIT_NOFILE, uint64(s.OpenFiles), uint64(s.OpenFiles), s.OpenFiles > 0},
		{unix.RLIMIT_NPROC, processes, processes, s.Processes > 0},
		{unix.RLIMIT_CPU, cpu, cpu + 1, s.CPU > 0},
		{unix.RLIMIT_FSIZE, s.FileSize, s.FileSize, s.FileSize > 0},
	} {
		if !l.set {
			continue
		}
		var now unix.Rlimit
		if err := unix.Prlimit(pid, l.what, nil, &now); err != nil {
			return err
		}
		if err := unix.Prlimit(pid, l.what, &unix.Rlimit{Cur: min(l.soft, now.Max), Max: min(l.hard, now.Max)}, nil); err != nil {
			return err
		}
	}
	return nil
}

// program is what argv[0] names, by the command's own PATH.
func (s *Step) program() string {
	name := s.Argv[0]
	if strings.Contains(name, "/") {
		return name
	}
	for _, kv := range s.Env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			for _, dir := range filepath.SplitList(path) {
				if p := filepath.Join(dir, name); unix.Access(p, unix.X_OK) == nil {
					return p
				}
			}
		}
	}
	return name
}
