//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// At a terminal, Ctrl-C ends what is going on and a second one the run, whatever it waits for.
func TestInterruptAtTheTerminal(t *testing.T) {
	for _, c := range []struct{ name, cmd, wait string }{
		{"a step runs", "sleep 60", "run_command"},
		{"a person is asked", "curl http://host.example", "[n]o"},
	} {
		t.Run(c.name, func(t *testing.T) {
			recording := filepath.Join(t.TempDir(), "r.jsonl")
			lines := fmt.Sprintf(`{"calls":[{"name":"run_command","args":{"cmd":%q}}]}`+"\n"+`{"text":"Done."}`+"\n", c.cmd)
			if err := os.WriteFile(recording, []byte(lines), 0o600); err != nil {
				t.Fatal(err)
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			screen, tty := openTerminal(t)
			cmd := exec.Command(self, "run", "-C", t.TempDir(), "-m", "recorded:"+recording, "--no-check", "--allow", "Bash(sleep:*)", "wait")
			cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), asProgram+"=1")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			tty.Close()
			ended := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
			defer ended.Stop()
			shown := new(strings.Builder)
			until(t, screen, shown, c.wait)
			io.WriteString(screen, "\x03")
			until(t, screen, shown, "instead?")
			io.WriteString(screen, "\x03")
			io.Copy(shown, screen) // ends with an error when the last holder of the terminal ends
			var code *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &code) || code.ExitCode() != 130 {
				t.Errorf("ended with %v, want exit code 130; shown:\n%s", err, shown)
			}
		})
	}
}

// until reads the screen until it shows a text.
func until(t *testing.T, screen io.Reader, shown *strings.Builder, want string) {
	t.Helper()
	buf := make([]byte, 4096)
	for !strings.Contains(shown.String(), want) {
		n, err := screen.Read(buf)
		shown.Write(buf[:n])
		if err != nil {
			t.Fatalf("%v before %q was shown:\n%s", err, want, shown)
		}
	}
}

// openTerminal gives both ends of a new terminal.
func openTerminal(t *testing.T) (screen, tty *os.File) {
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	t.Cleanup(func() { screen.Close() })
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return screen, tty
}
