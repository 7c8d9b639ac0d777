package sandbox

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// loneBox is a box on the rung of Landlock and seccomp alone.
func loneBox(t *testing.T) *box {
	t.Helper()
	b := newBox(t)
	c := b.config
	c.Rung = "landlock"
	s, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	b.Sandbox = s
	return b
}

func TestLandlockAlone(t *testing.T) {
	asUsers(t, func(t *testing.T) {
		b := loneBox(t)
		if b.Rung() != "landlock" || !b.MeetsMinimum() || !b.Direct() {
			t.Fatal(b.Rung(), b.Capabilities())
		}
		if err := os.WriteFile(filepath.Join(b.ws, "hidden"), []byte("s2cret\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		victim := exec.Command("sleep", "300")
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		defer victim.Wait()
		defer victim.Process.Kill()
		pid := strconv.Itoa(victim.Process.Pid)
		py := func(code string) string { return "python3 -c '" + code + "'" }
		for _, c := range []struct{ name, line, want string }{
			{"work", "echo x > a && mkdir d && mv a d/b && cat d/b && rm -r d && f=$(mktemp) && rm $f && echo ok", "x\nok\n"},
			{"write outside", "touch " + b.outside + "/PWNED; echo x > /tmp/PWNED-$$; echo x >> " + b.home + "/.profile; ls " + b.outside + "; echo end", "end\n"},
			{"secrets", "grep -r s2cret " + b.home + "/.ssh " + b.home + "/.cfg " + b.base + "/state; cat " + b.home + "/.ssh/id; cat /proc/" + pid + "/environ; cat /etc/shadow; echo end", "end\n"},
			{"hidden in the workspace", "cat hidden; cp hidden copy; cat ./hidden < hidden; ls copy; echo end", "end\n"},
			{"by a link", "ln -s " + b.home + "/.ssh/id l; cat l; rm l; ln hidden h2; cat h2; echo end", "end\n"},
			{"signals", "kill " + pid + "; kill -9 " + pid + "; kill -9 $PPID; echo end", "end\n"},
			{"ptrace", py("import ctypes;print(ctypes.CDLL(None).ptrace(16," + pid + ",0,0))"), "-1\n"},
			{"network", py(`import socket;socket.socket(socket.AF_INET);print("IN")`), ""},
			{"unix sockets", py(`import socket;socket.socket(socket.AF_UNIX).connect("/var/run/docker.sock");print("IN")`), ""},
			{"socket pairs", py(`import socket;a,b=socket.socketpair();a.send(b"x");print(b.recv(1))`), "b'x'\n"},
			{"keys", py("import ctypes;print(ctypes.CDLL(None).syscall(250,0,-3,1))"), "-1\n"},
			{"namespaces", "unshare -U true || echo no; unshare -Ur true || echo no", "no\nno\n"},
			{"rights", "grep -h -E '^(CapPrm|CapEff|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t' | sort", "CapEff:0000000000000000\nCapPrm:0000000000000000\nNoNewPrivs:1\nSeccomp:2\n"},
		} {
			t.Run(c.name, func(t *testing.T) {
				if _, err := exec.LookPath("python3"); err != nil && strings.HasPrefix(c.line, "python3") {
					t.Skip("no python3")
				}
				_, out := b.sh(t, t.Context(), "exec 2>/dev/null; "+c.line, func(x *Command) {
					if c.name != "work" {
						x.Hide = []string{filepath.Join(b.ws, "hidden")}
					}
				})
				if out != c.want {
					t.Errorf("printed %q, want %q", out, c.want)
				}
			})
		}
		if err := victim.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("the process outside: %v", err)
		}
		if list, _ := os.ReadDir(b.outside); len(list) != 0 {
			t.Errorf("outside: %v", list)
		}
		if _, out := b.sh(t, t.Context(), "echo x > new 2>/dev/null; ls new", func(x *Command) { x.Upper, x.Work = "", "" }); strings.TrimSpace(out) == "new" {
			t.Error("a step that may only read wrote")
		}
	})
}

func TestLandlockAloneEnds(t *testing.T) {
	asUsers(t, func(t *testing.T) {
		b := loneBox(t)
		for _, c := range []struct {
			name, line string
			timeout    time.Duration
			check      func(*Exit) bool
		}{
			{"code", "exit 42", 0, func(e *Exit) bool { return e.Code == 42 }},
			{"signal", "kill -TERM $$", 0, func(e *Exit) bool { return e.Signal == "SIGTERM" }},
			{"time", "trap '' TERM; for i in 1 2 3; do (trap '' TERM; while :; do sleep 1; done) & done; wait", 500 * time.Millisecond, func(e *Exit) bool { return e.TimedOut && e.Killed >= 3 }},
			{"daemon", "setsid sh -c 'setsid sleep 301 & setsid sleep 301' & sleep 0.1; exit 0", 0, func(e *Exit) bool { return e.Code == 0 && e.Killed >= 2 }},
			{"memory", `python3 -c "a=[];exec('while 1: a.append(bytearray(10**7))')"`, 0, func(e *Exit) bool { return e.Limit == "memory" }},
			{"processes", "for i in $(seq 200); do sleep 30 & done; wait", 0, func(e *Exit) bool { return e.Limit == "processes" }},
			{"fork bomb", "f(){ f|f& };f; sleep 5", 0, func(e *Exit) bool { return e.Limit == "processes" }},
			{"cpu", "for i in 1 2 3 4 5 6 7 8; do while :; do :; done & done; wait", 0, func(e *Exit) bool { return e.Limit == "cpu" }},
		} {
			t.Run(c.name, func(t *testing.T) {
				exit, out := b.sh(t, t.Context(), c.line, func(x *Command) {
					if c.timeout > 0 {
						x.Timeout = c.timeout
					}
				})
				if !c.check(exit) {
					t.Errorf("%+v %.300q", exit, out)
				}
			})
		}
		if out, err := exec.Command("pgrep", "-f", "^sleep 301$").Output(); err == nil {
			t.Errorf("left behind: %s", out)
		}
	})
}

// A supervisor whose executor is gone ends its step.
func TestLandlockAloneEndsWithTheExecutor(t *testing.T) {
	b := loneBox(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan *Exit, 1)
	go func() {
		exit, _ := b.Run(ctx, Command{Argv: []string{"/bin/sh", "-c", "echo up; sleep 302 & sleep 302"}, Dir: b.ws, Env: []string{"PATH=/usr/bin:/bin"}, Output: w, Timeout: time.Minute})
		done <- exit
	}()
	io.ReadFull(r, make([]byte, 3))
	cancel()
	if exit := <-done; exit == nil || !exit.Cancelled {
		t.Errorf("%+v", exit)
	}
	w.Close()
}
