package sandbox

import (
	"context"
	"fmt"
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

func TestMain(m *testing.M) {
	HandsMain()
	os.Exit(m.Run())
}

// box is a sandbox with a home, a workspace inside it, and room for layers.
type box struct {
	*Sandbox
	base, home, ws, outside string
	layers                  int
}

func newBox(t testing.TB) *box {
	t.Helper()
	base := t.TempDir()
	b := &box{base: base, home: filepath.Join(base, "home"), ws: filepath.Join(base, "home", "w", "repo"), outside: filepath.Join(base, "out")}
	for _, d := range []string{b.ws, b.outside, filepath.Join(b.home, ".cfg"), filepath.Join(b.home, ".ssh"), filepath.Join(base, "state")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{filepath.Join(b.home, ".cfg", "wallet"), filepath.Join(b.home, ".ssh", "id"), filepath.Join(base, "state", "key")} {
		if err := os.WriteFile(f, []byte("s2cret\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Start(context.Background(), Config{Workspace: b.ws, State: filepath.Join(base, "state", "sandbox"), Home: b.home, Hide: []string{filepath.Join(base, "state")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	b.Sandbox = s
	t.Cleanup(func() { // the kernel makes these without any right, and a normal user must open them to remove them
		dirs, _ := filepath.Glob(filepath.Join(base, "state", "*", "work", "work"))
		more, _ := filepath.Glob(filepath.Join(base, "state", "sandbox", "*", "*", "work", "work"))
		for _, d := range append(append(dirs, more...), filepath.Join(base, "state", "sandbox", "probe", "work", "work"), filepath.Join(base, "state", "k", "work")) {
			os.Chmod(d, 0o700)
		}
	})
	return b
}

var testLimits = Limits{Memory: 256 << 20, Processes: 64, OpenFiles: 256, CPU: 6 * time.Second, FileSize: 64 << 20, Disk: 96 << 20}

// sh runs a line with a layer of its own and returns what it printed.
func (b *box) sh(t testing.TB, ctx context.Context, line string, edit func(*Command)) (*Exit, string) {
	t.Helper()
	b.layers++
	layer := filepath.Join(b.base, "state", "layer"+strconv.Itoa(b.layers))
	c := Command{Argv: []string{"/bin/sh", "-c", line}, Dir: b.ws, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + b.home},
		Upper: filepath.Join(layer, "upper"), Work: filepath.Join(layer, "work"), Limits: testLimits, Timeout: 20 * time.Second}
	for _, d := range []string{c.Upper, c.Work} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c.Output = w
	if edit != nil {
		edit(&c)
	}
	text := make(chan string)
	go func() {
		out, _ := io.ReadAll(r)
		text <- string(out)
	}()
	exit, err := b.Run(ctx, c)
	w.Close()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return exit, <-text
}

// asUsers runs a test as the current user and, when that is root, once more as a
// normal user.
func asUsers(t *testing.T, test func(t *testing.T)) {
	if os.Getenv("SANDBOX_TEST_USER") != "" || os.Getuid() != 0 {
		test(t)
		return
	}
	t.Run("root", test)
	t.Run("user", func(t *testing.T) {
		dir, err := os.MkdirTemp("/var/tmp", "sandbox-user-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		self := filepath.Join(dir, "self.test")
		b, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(self, b, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(t.Name(), "/")
		cmd := exec.Command(self, "-test.run=^"+name+"$", "-test.v")
		cmd.Dir, cmd.Env = dir, []string{"SANDBOX_TEST_USER=1", "TMPDIR=" + dir, "HOME=" + dir, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: "+name) {
			t.Fatalf("as a normal user: %v\n%s", err, out)
		}
	})
}

func TestStarts(t *testing.T) {
	asUsers(t, func(t *testing.T) {
		b := newBox(t)
		if !b.MeetsMinimum() {
			t.Errorf("below the minimum: %v", b.Capabilities())
		}
		for _, c := range b.Capabilities() {
			t.Log(c.Name, c.Enforced, c.Detail)
		}
		exit, out := b.sh(t, t.Context(), "pwd; id -u; echo hi >&2; echo new > f; cat; exit 3", nil)
		if want := fmt.Sprintf("%s\n%d\nhi\n", b.ws, os.Getuid()); out != want || exit.Code != 3 || exit.Signal != "" || exit.Killed != 0 {
			t.Errorf("got %q %+v, want %q", out, exit, want)
		}
		if _, err := os.Stat(filepath.Join(b.ws, "f")); !os.IsNotExist(err) {
			t.Error("the change got past the layer")
		}
		if got, err := os.ReadFile(filepath.Join(b.base, "state", "layer1", "upper", "f")); string(got) != "new\n" {
			t.Errorf("the layer holds %q, %v", got, err)
		}
	})
}

func TestAttacks(t *testing.T) {
	asUsers(t, func(t *testing.T) {
		b := newBox(t)
		if err := os.WriteFile(filepath.Join(b.ws, "old"), []byte("old\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		victim := exec.Command("sleep", "300")
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		defer victim.Wait()
		defer victim.Process.Kill()
		py := func(code string) string { return "python3 -c '" + code + "' 2>/dev/null" }
		_, noPython := exec.LookPath("python3")
		for _, c := range []struct{ name, line, want string }{
			{"S-sbx-001", "touch " + b.outside + "/PWNED 2>/dev/null && test -d /nowhere; echo end", "end\n"},
			{"S-sbx-003", "grep -r s2cret " + b.home + " 2>/dev/null; tar -cf - " + b.home + " 2>/dev/null | grep -a s2cret; echo end", "end\n"},
			{"state", "grep -rs s2cret " + b.base + "; cat /proc/self/mountinfo | grep -c layer", "0\n"},
			{"S-sbx-004", py("import ctypes;print(ctypes.CDLL(None).ptrace(16,1,0,0))"), "-1\n"},
			{"S-sbx-005", "kill " + strconv.Itoa(victim.Process.Pid) + " 2>/dev/null; kill -0 1 2>/dev/null || echo no", "no\n"},
			{"S-sbx-006", py(`import socket;s=socket.socket(socket.AF_UNIX);s.connect("/var/run/docker.sock");print("IN")`), ""},
			{"S-sbx-007", `echo "${DBUS_SESSION_BUS_ADDRESS:-none} ${SSH_AUTH_SOCK:-none}"; ls -A /run`, "none none\n"},
			{"S-sbx-008", py(`import fcntl,os;fd=os.open("/dev/tty",os.O_RDWR);fcntl.ioctl(fd,0x5412|0x100000000,b"x");print("IN")`), ""},
			{"terminal calls", py(`import ctypes;l=ctypes.CDLL(None,use_errno=True);r=l.syscall(16,ctypes.c_long(0),ctypes.c_long(0x100005412),b"x");print(r,ctypes.get_errno())`), "-1 1\n"},
			{"S-sbx-009", py("import ctypes;print(ctypes.CDLL(None).syscall(250,0,-3,1))"), "-1\n"},
			{"S-sbx-010", "grep -h -E '^(Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t' | sort", "CapAmb:0000000000000000\nCapBnd:0000000000000000\nCapEff:0000000000000000\nCapPrm:0000000000000000\nNoNewPrivs:1\nSeccomp:2\n"},
			{"S-sbx-012", py(`import socket;socket.socket(socket.AF_PACKET,socket.SOCK_RAW);print("IN")`), ""},
			{"vsock", py(`import socket;socket.socket(40,socket.SOCK_STREAM);print("IN")`), ""},
			{"network", "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '", "lo\n"},
			{"S-sbx-021", "f=$(mktemp) && test -w $f && rm $f && echo ok", "ok\n"},
			{"namespaces", "unshare -U true 2>/dev/null || echo no; unshare -Ur true 2>/dev/null || echo no", "no\nno\n"},
			{"through pid 1", "ls /proc/1/root/ 2>/dev/null; cat /proc/1/environ 2>/dev/null; cat /proc/1/fd/*; readlink /proc/1/fd/3; ls /outside 2>/dev/null; echo end", "end\n"},
			{"sysctl", "echo x > /proc/sys/kernel/core_pattern; echo x > /etc/passwd-; test ! -s /etc/shadow || cat /etc/shadow; echo end", "end\n"},
			{"descriptors", "ls /proc/self/fd | grep -v -x 10 | wc -l", "4\n"},
			{"workspace", "rm old && echo x > a && mkdir d && mv a d/b && cat d/b", "x\n"},
		} {
			t.Run(c.name, func(t *testing.T) {
				if noPython != nil && strings.HasPrefix(c.line, "python3") {
					t.Skip("no python3")
				}
				_, out := b.sh(t, t.Context(), "exec 2>/dev/null; "+c.line, nil)
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
		if _, err := os.Stat(filepath.Join(b.ws, "old")); err != nil {
			t.Error("the user's file is gone")
		}
	})
}

func TestEnds(t *testing.T) {
	asUsers(t, func(t *testing.T) {
		b := newBox(t)
		for _, c := range []struct {
			name, line string
			timeout    time.Duration
			check      func(*Exit) bool
		}{
			{"signal", "kill -TERM $$", 0, func(e *Exit) bool { return e.Signal == "SIGTERM" && e.Code == 143 }},
			{"code", "exit 42", 0, func(e *Exit) bool { return e.Code == 42 && e.Signal == "" }},
			{"S-sbx-018", "while :; do :; done", time.Second, func(e *Exit) bool { return e.TimedOut && e.Limit == "time" }},
			{"deaf children", "trap '' TERM; for i in 1 2 3; do (trap '' TERM; while :; do sleep 1; done) & done; wait", 500 * time.Millisecond, func(e *Exit) bool { return e.TimedOut && e.Killed >= 3 && e.Wall < 4*time.Second }},
			{"daemon", "setsid sh -c 'sleep 300 & sleep 300' & sleep 0.1; exit 0", 0, func(e *Exit) bool { return e.Code == 0 && e.Killed >= 2 && e.Wall < 4*time.Second }},
			{"fork bomb", "f(){ f|f& };f; sleep 2", 0, nil},
			{"S-sbx-016", `python3 -c "a=[];exec('while 1: a.append(bytearray(10**7))')"`, 0, func(e *Exit) bool { return e.Limit == "memory" }},
			{"S-sbx-017", `python3 -c "import os;[open('/dev/null') for _ in iter(int,1)]"`, 0, func(e *Exit) bool { return e.Code == 1 }},
			{"disk fill", "i=0; while :; do i=$((i+1)); head -c 20000000 /dev/zero > f$i || exit 9; done", 0, func(e *Exit) bool { return e.Limit == "disk" }},
			{"processor time of many", "for i in 1 2 3 4 5 6 7 8; do while :; do :; done & done; wait", 0, func(e *Exit) bool { return e.Limit == "cpu" }},
			{"open files", "python3 -c \"import time\nx=[]\ntry:\n  while 1: x.append(open('/dev/null'))\nexcept OSError:\n  time.sleep(.3)\n  raise\"", 0, func(e *Exit) bool { return e.Limit == "open_files" && e.Code == 1 }},
			{"file size", "exec head -c 100000000 /dev/zero > big", 0, func(e *Exit) bool { return e.Limit == "file_size" }},
		} {
			t.Run(c.name, func(t *testing.T) {
				if _, err := exec.LookPath("python3"); err != nil && strings.HasPrefix(c.line, "python3") {
					t.Skip("no python3")
				}
				exit, out := b.sh(t, t.Context(), c.line, func(x *Command) {
					if c.timeout > 0 {
						x.Timeout = c.timeout
					}
				})
				if c.check == nil { // found to be over the limit, or refused by the kernel before that
					if exit.Limit != "processes" && !strings.Contains(out, "fork") {
						t.Errorf("%+v %.300q", exit, out)
					}
					return
				}
				if !c.check(exit) {
					t.Errorf("%+v %.300q", exit, out)
				}
			})
		}
		if _, out := b.sh(t, t.Context(), "ls -d /proc/[0-9]*", nil); strings.Count(out, "\n") > 3 {
			t.Errorf("left behind: %s", out)
		}
	})
}

func TestCancel(t *testing.T) {
	b := newBox(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	exit, _ := b.sh(t, ctx, "sleep 300 & sleep 300", nil)
	if !exit.Cancelled || exit.TimedOut || exit.Wall > 5*time.Second {
		t.Errorf("%+v", exit)
	}
}

func TestReadOnly(t *testing.T) {
	b := newBox(t)
	exit, out := b.sh(t, t.Context(), "echo x > f; ls", func(c *Command) { c.Upper, c.Work = "", "" })
	if exit.Code != 0 || !strings.Contains(out, "f") || fileThere(b.ws, "f") {
		t.Errorf("%+v %q", exit, out)
	}
}

func fileThere(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

func TestLoud(t *testing.T) {
	b := newBox(t)
	exit, out := b.sh(t, t.Context(), "dd if=/dev/zero bs=1M count=16 2>/dev/null", nil)
	if exit.Code != 0 || len(out) != 16<<20 {
		t.Errorf("%+v, %d bytes", exit, len(out))
	}
}

func TestParallel(t *testing.T) {
	b := newBox(t)
	done := make(chan string)
	for i := range 8 {
		go func() {
			r, w, _ := os.Pipe()
			defer r.Close()
			exit, err := b.Run(t.Context(), Command{Argv: []string{"/bin/sh", "-c", "sleep 0.05; echo " + strconv.Itoa(i)}, Dir: b.ws, Output: w})
			w.Close()
			out, _ := io.ReadAll(r)
			if err != nil || exit.Code != 0 || string(out) != strconv.Itoa(i)+"\n" {
				done <- fmt.Sprintf("%v %+v %q", err, exit, out)
				return
			}
			done <- ""
		}()
	}
	for range 8 {
		if msg := <-done; msg != "" {
			t.Error(msg)
		}
	}
}
