package soak

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"harness/contract"
	"harness/transport/socket"
)

// keeper keeps one executor alive, and takes it down.
type keeper struct {
	Options
	mu    sync.Mutex
	cmd   *exec.Cmd
	x     contract.Executor
	said  *bytes.Buffer
	kills int
	rng   *rand.Rand
}

func newKeeper(o Options) *keeper {
	return &keeper{Options: o, rng: rand.New(rand.NewPCG(o.Seed, 1<<40))}
}

func (o Options) socket() string { return filepath.Join(o.Dir, "s") }
func (o Options) state() string  { return filepath.Join(o.Dir, "home/.local/state/harness/executor") }
func (o Options) workspace() string {
	return filepath.Join(o.Dir, "ws")
}

// start starts an executor on the socket that the last one left behind.
func (k *keeper) start() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	cmd := exec.Command(k.Program, "executor", "--listen=unix:"+k.socket(), "--cd="+k.workspace(), "--allow=Bash(*)")
	cmd.Env = k.environ()
	said := new(bytes.Buffer)
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		return err
	}
	k.cmd, k.said = cmd, said
	dial := func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", k.socket())
	}
	for begin := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		conn, err := dial(context.Background())
		if err == nil {
			conn.Close()
			break
		}
		if time.Since(begin) > 20*time.Second {
			return fmt.Errorf("the executor does not come up: %v: %s", err, said)
		}
	}
	k.x = socket.NewClient(dial)
	return nil
}

func (o Options) environ() []string {
	return append([]string{"HOME=" + filepath.Join(o.Dir, "home"), "TMPDIR=" + filepath.Join(o.Dir, "tmp"), "PATH=" + os.Getenv("PATH")}, o.Env...)
}

func (k *keeper) executor() contract.Executor {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.x
}

func (k *keeper) killAtRandom(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(k.rng.Int64N(int64(k.Kill)))):
		}
		k.cmd.Process.Kill()
		k.cmd.Wait()
		k.kills++
		if err := k.start(); err != nil {
			k.Log("%v", err)
			return
		}
	}
}

func (k *keeper) end() error {
	k.cmd.Process.Signal(syscall.SIGTERM)
	if err := k.cmd.Wait(); err != nil {
		return fmt.Errorf("the executor ended with %v: %s", err, k.said)
	}
	return nil
}

// mark is in the arguments of every process that a step leaves behind.
func (o Options) mark() string { return fmt.Sprintf("86399.%d", o.Seed) }

func mounts() string {
	data, _ := os.ReadFile("/proc/self/mountinfo")
	return string(data)
}

// nothingLeft looks for what an executor and its steps must not leave behind.
func (o Options) nothingLeft(before string) error {
	var left []string
	var processes []string
	for begin := time.Now(); time.Since(begin) < 10*time.Second; time.Sleep(20 * time.Millisecond) {
		if processes = o.processes(); len(processes) == 0 {
			break
		}
	}
	left = append(left, processes...)
	if strings.Contains(mounts(), o.Dir) && !strings.Contains(before, o.Dir) {
		left = append(left, "a mount")
	}
	for _, glob := range []string{"tmp/*", "home/.local/state/harness/executor/sessions/*/workspace/active/*", "home/.local/state/harness/executor/doors/*",
		"home/.local/state/harness/executor/sessions/*/workspace/layers/drop-*", "ws/**/.harness-tmp*"} {
		found, _ := filepath.Glob(filepath.Join(o.Dir, glob))
		left = append(left, found...)
	}
	if len(left) > 0 {
		return fmt.Errorf("left behind: %v", left)
	}
	return nil
}

// processes is the command lines that bear the mark or our folder.
func (o Options) processes() (list []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range all {
		data, _ := os.ReadFile(p)
		line := strings.ReplaceAll(string(data), "\x00", " ")
		if strings.Contains(line, o.mark()) || strings.Contains(line, o.Dir) {
			list = append(list, line)
		}
	}
	return list
}
