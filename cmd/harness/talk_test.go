//go:build linux

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The interactive program at a real terminal: messages, slash commands, the
// person's own commands and questions, steering, and leaving.
func TestTalk(t *testing.T) {
	dir, recording := t.TempDir(), filepath.Join(t.TempDir(), "r.jsonl")
	if err := os.WriteFile(recording, []byte(`{"text":"Hello there."}
{"calls":[{"name":"write_file","args":{"path":"g","content":"new\n"}}]}
{"text":"Wrote g."}
{"calls":[{"name":"run_command","args":{"cmd":"sleep 2"}}]}
{"text":"Read you."}
{"calls":[{"name":"run_command","args":{"cmd":"sleep 60"}}]}
{"text":"Went on."}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	screen, tty := openTerminal(t)
	cmd := exec.Command(self, "-C", dir, "-m", "recorded:"+recording, "--no-check", "--allow", "Bash(sleep:*)")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), asProgram+"=1", "NO_COLOR=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	ended := time.AfterFunc(60*time.Second, func() { cmd.Process.Kill() })
	defer ended.Stop()
	shown := ""
	expect := func(want string) { // and goes on behind it
		t.Helper()
		buf := make([]byte, 4096)
		for !strings.Contains(shown, want) {
			n, err := screen.Read(buf)
			shown += string(buf[:n])
			if err != nil {
				t.Fatalf("%v before %q was shown:\n%s", err, want, shown)
			}
		}
		_, shown, _ = strings.Cut(shown, want)
	}
	for _, c := range []struct {
		typed string
		shown []string
	}{
		{"", []string{"Ctrl-D leaves", "> "}},
		{"hello\r", []string{"Hello there.", "1 turns", "> "}},
		{"/help\r", []string{"/undo [STEP]", "!COMMAND", "> "}},
		{"/nope\r", []string{"there is no /nope", "> "}},
		{"!echo mx\x7fine\r", []string{"\nmine", "> "}},
		{"make g\r", []string{"write_file", "Wrote g.", "+new", "> "}},
		{"/diff\r", []string{"+new", "> "}},
		{"/undo\r", []string{"deleted g", "> "}},
		{"/redo\r", []string{"created g", "> "}},
		{"/status\r", []string{"3 turns", "> "}},
		{"sleep\r", []string{"run_command"}},
		{"hurry\n", []string{"reads this next", "Read you.", "2 turns", "> "}},
		{"!curl http://x.test\r", []string{"[n]o"}},
		{"n not now\n", []string{"denied", "not now", "> "}},
		{"sleep long\r", []string{"run_command"}},
		{"\x03", []string{"instead?"}},
		{"go on\n", []string{"Went on.", "2 turns", "> "}},
		{"/plan\r", []string{"reads only", "> "}},
		{"/clear\r", []string{"session 2", "> "}},
		{"/resume\r", []string{"/resume ID", "> "}},
		{"dropped\x03", []string{"leaves", "> "}},
		{"\x04", []string{"go on later"}},
	} {
		io.WriteString(screen, c.typed)
		for _, s := range c.shown {
			expect(s)
		}
	}
	io.Copy(io.Discard, screen) // ends with an error when the last holder of the terminal ends
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "g")); string(data) != "new\n" {
		t.Errorf("g holds %q: %v", data, err)
	}
}
