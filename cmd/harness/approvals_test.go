//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program runs this program with a home of its own.
type program struct {
	t    *testing.T
	home string
}

func (p program) command(args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), "HOME="+p.home, asProgram+"=1")
	return cmd
}

func (p program) does(args ...string) string {
	p.t.Helper()
	out, err := p.command(args...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("harness %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (p program) fails(args ...string) string {
	p.t.Helper()
	out, err := p.command(args...).CombinedOutput()
	if err == nil {
		p.t.Fatalf("harness %v went well:\n%s", args, out)
	}
	return string(out)
}

// asks starts a run at a terminal that asks for a command, and gives the approval's ID.
func (p program) asks(cmd string) (screen *os.File, shown *strings.Builder, id string, wait func() error) {
	p.t.Helper()
	recording := filepath.Join(p.t.TempDir(), "r.jsonl")
	lines := fmt.Sprintf(`{"calls":[{"name":"run_command","args":{"cmd":%q}}]}`+"\n"+`{"text":"Done."}`+"\n", cmd)
	if err := os.WriteFile(recording, []byte(lines), 0o600); err != nil {
		p.t.Fatal(err)
	}
	screen, tty := openTerminal(p.t)
	c := p.command("run", "-C", p.t.TempDir(), "-m", "recorded:"+recording, "--no-check", "--ask", "Bash(*)", "do it")
	c.Stdin, c.Stdout, c.Stderr = tty, tty, tty
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		p.t.Fatal(err)
	}
	tty.Close()
	ended := time.AfterFunc(time.Minute, func() { c.Process.Kill() })
	p.t.Cleanup(func() { ended.Stop() })
	shown = new(strings.Builder)
	until(p.t, screen, shown, "[n]o")
	list := p.does("approvals")
	for line := range strings.Lines(list) {
		if strings.Contains(line, cmd) {
			id, _, _ = strings.Cut(line, " ")
		}
	}
	if id == "" {
		p.t.Fatalf("%q is not in the list:\n%s", cmd, list)
	}
	return screen, shown, id, c.Wait
}

// A question at one terminal is answered from another one, and the first terminal is told.
func TestApprovalsFromAnotherTerminal(t *testing.T) {
	p := program{t, filepath.Join(t.TempDir(), strings.Repeat("a long way ", 10))} // longer than a socket's path may be
	if err := os.Mkdir(p.home, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ verb, cmd, told, after string }{
		{"approve", "echo went well", "allowed by", "went well"},
		{"deny", "echo never", "denied by", "not before lunch"},
	} {
		t.Run(c.verb, func(t *testing.T) {
			p := program{t, p.home}
			screen, shown, id, wait := p.asks(c.cmd)
			if out := p.does(c.verb, id[:8], "not before lunch"); !strings.Contains(out, c.cmd) {
				t.Errorf("%s", out)
			}
			io.Copy(shown, screen)
			wait()
			if s := shown.String(); !strings.Contains(s, c.told) || !strings.Contains(s, c.after) || !strings.Contains(s, "Done.") {
				t.Errorf("shown: %s", s)
			}
			p.fails("approve", id)
			if out := p.does("audit", "show"); !strings.Contains(out, "via command line") {
				t.Errorf("who answered is not on record:\n%s", out)
			}
		})
	}
	if doors, err := os.ReadDir(filepath.Join(p.home, ".local/state/harness/executor/doors")); err != nil || len(doors) > 0 {
		t.Errorf("doors are left: %v %v", doors, err)
	}
}

// An answer from another machine comes over HTTP, signed.
func TestApprovalsOverHTTP(t *testing.T) {
	p := program{t, t.TempDir()}
	key := filepath.Join(t.TempDir(), "key")
	stranger := key + "2"
	public := p.does("approvals", "key", "ann", key)
	p.does("approvals", "key", "ann", stranger)
	p.fails("approvals", "serve")
	if err := os.MkdirAll(filepath.Join(p.home, ".config/harness"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.home, ".config/harness/approvers"), []byte(public+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := p.command("approvals", "serve", "--listen", "127.0.0.1:0")
	said, err := serve.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { serve.Process.Signal(syscall.SIGTERM); serve.Wait() }()
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSuffix(strings.TrimSpace(line[strings.Index(line, "http://"):]), "/approvals")
	screen, shown, id, wait := p.asks("echo from afar")
	there := program{t, t.TempDir()} // another machine: another home
	there.fails("approve", "--url", url, id)
	there.fails("approve", "--url", url, "--key", stranger, id)
	there.fails("approvals", "--url", url, "--key", stranger)
	if out := there.does("approvals", "--url", url, "--key", key); !strings.Contains(out, "echo from afar") {
		t.Errorf("%s", out)
	}
	there.does("approve", "--url", url, "--key", key, id)
	io.Copy(shown, screen)
	wait()
	if s := shown.String(); !strings.Contains(s, "allowed by ann") {
		t.Errorf("shown: %s", s)
	}
}
