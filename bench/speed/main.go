//go:build linux

// Command speed measures the whole program on this machine, as ratios in one run:
//
//	go run ./bench/speed
//
// It prints medians; nothing is asserted.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/transport/socket"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

func run() error {
	tmp, err := os.MkdirTemp("", "harness-speed-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	program := filepath.Join(tmp, "harness")
	build := exec.Command("go", "build", "-o", program, "./cmd/harness")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	ws := filepath.Join(tmp, "ws")
	for _, d := range []string{ws, filepath.Join(tmp, "home")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	os.Setenv("XDG_STATE_HOME", filepath.Join(tmp, "home"))
	if err := answer(tmp, program, ws); err != nil {
		return err
	}
	if err := flood(tmp, program, ws); err != nil {
		return err
	}
	if err := steps(program, ws); err != nil {
		return err
	}
	if err := searching(program); err != nil {
		return err
	}
	return crowd(tmp, program)
}

// answer is a whole run of a one-line answer against git --version.
func answer(tmp, program, ws string) error {
	rec := filepath.Join(tmp, "say.jsonl")
	if err := os.WriteFile(rec, []byte(`{"text":"Hello."}`+"\n"), 0o644); err != nil {
		return err
	}
	git := cpu(20, "git", "--version")
	args := []string{"run", "-q", "-C", ws, "-m", "recorded:" + rec, "say hello"}
	ours := cpu(20, program, args...)
	fmt.Printf("one-line answer, CPU: %.1f ms; git --version: %.1f ms; ratio %.1f (goal 12)\n", ms(ours), ms(git), float64(ours)/float64(git))
	peaks, err := watch(program, args...)
	fmt.Printf("one-line answer, peak memory: %v (goal, both processes, 60 MB)\n", peaks)
	return err
}

// cpu is the median CPU time of a command and its children.
func cpu(n int, name string, args ...string) time.Duration {
	var all []time.Duration
	for range n {
		cmd := exec.Command(name, args...)
		cmd.Run()
		if s := cmd.ProcessState; s != nil {
			all = append(all, s.UserTime()+s.SystemTime())
		}
	}
	return median(all)
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// child is an executor process and its planner's end.
type child struct {
	contract.Executor
	cmd     *exec.Cmd
	session string
	n       int
}

func start(program, ws string) (*child, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	theirs, mine := os.NewFile(uintptr(fds[1]), "theirs"), os.NewFile(uintptr(fds[0]), "mine")
	conn, err := net.FileConn(mine)
	if err != nil {
		return nil, err
	}
	mine.Close()
	cmd := exec.Command(program, "executor", "--fd=3", "--cd="+ws, "--allow=Bash(*)")
	cmd.ExtraFiles, cmd.Stderr = []*os.File{theirs}, os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	theirs.Close()
	c := &child{cmd: cmd, session: "speed-" + filepath.Base(ws), Executor: socket.NewClient(func(context.Context) (net.Conn, error) { return conn, nil })}
	_, err = c.Open(context.Background(), &v1.OpenRequest{SessionId: c.session})
	return c, err
}

func (c *child) stop() {
	c.cmd.Process.Kill()
	c.cmd.Wait()
}

func (c *child) step(action string, args map[string]any) (*v1.StepResult, error) {
	a, err := structpb.NewStruct(args)
	if err != nil {
		return nil, err
	}
	c.n++
	r, err := c.Submit(context.Background(), &v1.Step{StepId: fmt.Sprintf("s%d", c.n), SessionId: c.session, Action: action, Args: a})
	if err == nil && r.Status != v1.Status_ok {
		err = contract.FromProto(r.Error)
	}
	return r, err
}

// timed is the median wall time of a step.
func (c *child) timed(n int, action string, args map[string]any) (time.Duration, error) {
	var all []time.Duration
	for range n {
		begin := time.Now()
		if _, err := c.step(action, args); err != nil {
			return 0, err
		}
		all = append(all, time.Since(begin))
	}
	return median(all), nil
}

func steps(program, ws string) error {
	if err := os.WriteFile(filepath.Join(ws, "f"), []byte("text\n"), 0o644); err != nil {
		return err
	}
	c, err := start(program, ws)
	if err != nil {
		return err
	}
	defer c.stop()
	warm := map[string]any{"path": "f"}
	if _, err := c.timed(10, contract.ReadFile, warm); err != nil {
		return err
	}
	early, err := c.timed(20, contract.ReadFile, warm) // steps 11 to 30
	if err != nil {
		return err
	}
	var plain []time.Duration
	for range 100 {
		begin := time.Now()
		exec.Command("/bin/true").Run()
		plain = append(plain, time.Since(begin))
	}
	sandboxed, err := c.timed(100, contract.RunCommand, map[string]any{"cmd": "/bin/true"})
	if err != nil {
		return err
	}
	p := median(plain)
	fmt.Printf("step of /bin/true, whole pipeline: %.2f ms; plain fork and exec: %.2f ms; ratio %.2f (goal 1.5)\n", ms(sandboxed), ms(p), float64(sandboxed)/float64(p))
	from, before := c.n, used(c.cmd.Process.Pid)
	for c.n < 2000 {
		if _, err := c.step(contract.ReadFile, map[string]any{"path": "f"}); err != nil {
			return err
		}
	}
	fmt.Printf("read_file step: executor's CPU %.0f µs (goal, both sides, 200)\n", float64(used(c.cmd.Process.Pid)-before)/float64(time.Microsecond)/float64(2000-from))
	late, err := c.timed(20, contract.ReadFile, map[string]any{"path": "f"})
	if err != nil {
		return err
	}
	fmt.Printf("step 2000 against step 20: %.3f ms, %.3f ms; ratio %.2f (goal 1.2)\n", ms(late), ms(early), float64(late)/float64(early))
	return nil
}

// used is the CPU time of a running process.
func used(pid int) time.Duration {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	var total time.Duration
	for _, t := range tasks {
		if data, err := os.ReadFile(t); err == nil {
			var ns int64
			fmt.Sscan(string(data), &ns)
			total += time.Duration(ns)
		}
	}
	return total
}
