package hands

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// gate sees every program of a step before its first instruction. The step's
// own thread, which started the first of them, traces them all: the kernel
// stops each new process and each exec for it, so none gets past.
type gate struct {
	judge func(*Program) byte
	out   *os.File // where a refusal is said; nil: nowhere
	list  []Exec
	total int
	spare int         // refused programs that are kept beyond the first ones
	runs  map[int]int // process → its entry in list
	done  chan struct{}

	limit     int          // of processes at once; 0: somebody else sees to it
	alive     map[int]bool // with limit: processes and threads that there are; true: a process
	processes int
	over      bool // there were more: all end
}

func newGate(judge func(*Program) byte, out *os.File) *gate {
	return &gate{judge: judge, out: out, spare: maxRefused, runs: map[int]int{}, alive: map[int]bool{}, done: make(chan struct{})}
}

// What is kept of a step's programs; all are counted.
const (
	maxExecs   = 200
	maxRefused = 800  // beyond the first 200
	maxArgv    = 4096 // bytes
)

// asker asks the executor about suspects: a Program goes out, a byte comes back. Whatever
// goes wrong is a refusal.
func asker(conn *os.File, suspects *Suspects) func(*Program) byte {
	out := json.NewEncoder(conn)
	var answer [1]byte
	return func(p *Program) byte {
		if !suspects.hold(p) {
			return Run
		}
		if out.Encode(p) != nil {
			return Refuse
		}
		if n, _ := conn.Read(answer[:]); n != 1 {
			return Refuse
		}
		return answer[0]
	}
}

const traced = unix.PTRACE_O_EXITKILL | unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACECLONE

// take turns the stop of a program that asked to be traced into a seizure,
// which alone leaves job control as it is. Between the two it is stopped like
// by SIGSTOP; should another process have woken it, it does not go on.
func (g *gate) take(pid int) error {
	var before, after syscall.PtraceRegs
	var status syscall.WaitStatus
	if err := syscall.PtraceGetRegs(pid, &before); err != nil {
		return err
	}
	if err := ptrace(unix.PTRACE_DETACH, pid, uintptr(unix.SIGSTOP)); err != nil {
		return err
	}
	if _, err := wait(pid, &status, unix.WUNTRACED); err != nil {
		return err
	}
	if err := ptrace(unix.PTRACE_SEIZE, pid, traced); err != nil {
		return err
	}
	if _, err := wait(pid, &status, 0); err != nil {
		return err
	}
	if err := syscall.PtraceGetRegs(pid, &after); err != nil {
		return err
	}
	if before.PC() != after.PC() {
		return fmt.Errorf("it was woken before it was watched")
	}
	g.started(pid)
	unix.Kill(pid, unix.SIGCONT)
	return ptrace(unix.PTRACE_CONT, pid, 0)
}

// watch lasts until the last process of the step is gone. It hands out the end
// of main when that comes.
func (g *gate) watch(main int, ended func(syscall.WaitStatus, syscall.Rusage)) {
	defer close(g.done)
	g.alive[main], g.processes = true, 1
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, unix.WALL|unix.WNOTHREAD, &usage)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return
		case status.Stopped():
			g.stopped(pid, status)
		default:
			g.ended(pid, status, usage)
			if pid == main {
				ended(status, usage)
			}
		}
	}
}

func (g *gate) stopped(pid int, status syscall.WaitStatus) {
	if g.over {
		unix.Kill(pid, unix.SIGKILL)
		return
	}
	signal := status.StopSignal()
	switch event := int(status >> 16); event {
	case 0:
		ptrace(unix.PTRACE_CONT, pid, uintptr(signal))
	case unix.PTRACE_EVENT_EXEC:
		g.started(pid)
		ptrace(unix.PTRACE_CONT, pid, 0)
	case unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_VFORK, unix.PTRACE_EVENT_CLONE:
		if g.born(pid, event != unix.PTRACE_EVENT_CLONE); !g.over {
			ptrace(unix.PTRACE_CONT, pid, 0)
		}
	case unix.PTRACE_EVENT_STOP:
		switch signal {
		case unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
			ptrace(unix.PTRACE_LISTEN, pid, 0) // it stays stopped until SIGCONT
		default:
			ptrace(unix.PTRACE_CONT, pid, 0)
		}
	default:
		ptrace(unix.PTRACE_CONT, pid, 0)
	}
}

// started judges the program that a stopped process now is.
func (g *gate) started(pid int) {
	now := time.Now()
	if i, ok := g.runs[pid]; ok { // it was another program until now
		g.list[i].Wall = now.Sub(g.list[i].Started)
		delete(g.runs, pid)
	}
	g.total++
	p, err := look(pid)
	answer := byte(More)
	if err == nil {
		answer = g.judge(p)
	}
	if answer == More && err == nil {
		if err = p.more(pid); err == nil {
			answer = g.judge(p)
		}
	}
	refused := answer != Run // what cannot be looked at does not run
	if len(g.list) < maxExecs || refused && g.spare > 0 {
		if len(g.list) >= maxExecs {
			g.spare--
		}
		g.runs[pid] = len(g.list)
		g.list = append(g.list, Exec{Program: p.Path, Argv: cut(p.Argv), Cwd: cwd(pid), Started: now, Refused: refused, Unseen: err != nil})
	}
	if refused {
		if g.out != nil {
			fmt.Fprintf(g.out, "harness: refused to run %s\n", p.Path)
		}
		refuse(pid)
	}
}

// threadsEach is how many threads there may be for each process that there may be.
const threadsEach = 8

// born counts a new process or thread. One too many ends them all: none goes on without us.
func (g *gate) born(parent int, process bool) {
	child, err := unix.PtraceGetEventMsg(parent)
	if g.limit == 0 || err != nil {
		return
	}
	if g.alive[int(child)] = process; process {
		g.processes++
	}
	if g.over = g.processes > g.limit || len(g.alive) > g.limit*threadsEach; g.over {
		for pid := range g.alive {
			unix.Kill(pid, unix.SIGKILL)
		}
	}
}

func (g *gate) ended(pid int, status syscall.WaitStatus, usage syscall.Rusage) {
	if g.alive[pid] {
		g.processes--
	}
	delete(g.alive, pid)
	i, ok := g.runs[pid]
	if !ok {
		return // a thread, or a process that started no program
	}
	delete(g.runs, pid)
	e, code := &g.list[i], status.ExitStatus()
	if status.Signaled() {
		code = 128 + int(status.Signal())
	}
	e.Code, e.Wall, e.CPU = &code, time.Since(e.Started), time.Duration(usage.Utime.Nano()+usage.Stime.Nano())
}

// exits is the machine code of exit_group(126), which shells give for a
// program that they may not run.
var exits = map[string][]byte{
	"amd64": {0xb8, 231, 0, 0, 0, 0xbf, 126, 0, 0, 0, 0x0f, 0x05},
	"arm64": {0xc8, 0x0b, 0x80, 0xd2, 0xc0, 0x0f, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4},
}

// refuse makes a program that has not begun end as its first instruction.
func refuse(pid int) {
	var regs syscall.PtraceRegs
	code := exits[runtime.GOARCH]
	err := syscall.PtraceGetRegs(pid, &regs)
	if err == nil {
		_, err = syscall.PtracePokeText(pid, uintptr(regs.PC()), code)
	}
	if err != nil || code == nil {
		unix.Kill(pid, unix.SIGKILL)
	}
}

func ptrace(request, pid int, data uintptr) error {
	if _, _, e := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(request), uintptr(pid), 0, data, 0, 0); e != 0 {
		return e
	}
	return nil
}

// wait is for a stop of one process; that it ended instead is an error.
func wait(pid int, status *syscall.WaitStatus, options int) (int, error) {
	for {
		_, err := syscall.Wait4(pid, status, unix.WALL|options, nil)
		if err == unix.EINTR {
			continue
		}
		if err == nil && !status.Stopped() {
			err = fmt.Errorf("it ended before it began")
		}
		return pid, err
	}
}
