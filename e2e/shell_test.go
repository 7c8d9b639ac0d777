package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

type shellCase struct {
	ID    string
	Why   string
	Setup struct {
		Files map[string]string
		Env   map[string]string
	}
	Input struct{ Command string }
}

func shellCases(t *testing.T) map[string]shellCase {
	t.Helper()
	f, err := os.Open("testdata/shell.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cases := map[string]shellCase{}
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var c shellCase
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases[c.ID] = c
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return cases
}

type shellCheck func(t *testing.T, b *bed, cmd string)

// once runs the case's command and looks at its result.
func once(status v1.Status, within time.Duration, look func(t *testing.T, b *bed, r *v1.StepResult)) shellCheck {
	return func(t *testing.T, b *bed, cmd string) {
		start := time.Now()
		r := b.do(contract.RunCommand, map[string]any{"cmd": cmd, "timeout_s": 3})
		if took := time.Since(start); within > 0 && took > within {
			t.Errorf("took %v, more than %v", took, within)
		}
		if r.Status != status {
			t.Errorf("status %v, want %v: %v", r.Status, status, r.Error)
		}
		if look != nil {
			look(t, b, r)
		}
	}
}

func says(parts ...string) func(*testing.T, *bed, *v1.StepResult) {
	return func(t *testing.T, _ *bed, r *v1.StepResult) { contains(t, r.Output.GetText(), parts...) }
}

func prints(text string) func(*testing.T, *bed, *v1.StepResult) {
	return func(t *testing.T, _ *bed, r *v1.StepResult) {
		if got := r.Output.GetText(); got != text {
			t.Errorf("prints %q, want %q", got, text)
		}
	}
}

// running counts the processes of this machine whose command line is exactly argv.
func running(t *testing.T, argv ...string) (n int) {
	t.Helper()
	want := strings.Join(argv, "\x00") + "\x00"
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && string(b) == want {
			n++
		}
	}
	return n
}

var shellChecks = map[string]shellCheck{
	"S-shl-001": once(v1.Status_ok, 2*time.Second, says("up")),
	"S-shl-002": once(v1.Status_ok, 2*time.Second, says("launched")),
	"S-shl-003": once(v1.Status_ok, 3*time.Second, func(t *testing.T, _ *bed, _ *v1.StepResult) {
		if n := running(t, "sleep", "78"); n > 0 {
			t.Errorf("%d processes are left", n)
		}
	}),
	"S-shl-004": once(v1.Status_timed_out, 10*time.Second, func(t *testing.T, _ *bed, r *v1.StepResult) {
		contains(t, r.Error.GetMessage(), "timed out")
		if n := running(t, "sleep", "60"); n > 0 {
			t.Errorf("%d processes are left", n)
		}
	}),
	"S-shl-005": func(t *testing.T, b *bed, _ string) {
		b.write("sub/f", "")
		b.sh("cd sub")
		b.want(b.do(contract.RunCommand, map[string]any{"cmd": "sleep 60", "timeout_s": 1}), v1.Status_timed_out)
		if got := b.sh("pwd").GetOutput().GetText(); got != b.dir+"\n" {
			t.Errorf("pwd says %q: every command starts in the workspace", got)
		}
	},
	"S-shl-006": once(v1.Status_ok, 0, nil),
	"S-shl-007": once(v1.Status_failed, 0, func(t *testing.T, _ *bed, r *v1.StepResult) {
		if r.GetExitCode() != 44 {
			t.Errorf("exit code %d", r.GetExitCode())
		}
	}),
	"S-shl-008": once(v1.Status_ok, 2*time.Second, says("got:\n")),
	"S-shl-009": once(v1.Status_ok, 2*time.Second, prints("")),
	"S-shl-010": once(v1.Status_failed, 5*time.Second, func(t *testing.T, _ *bed, r *v1.StepResult) {
		if strings.Contains(r.GetOutput().GetText(), "Username") {
			t.Errorf("it asked: %q", r.GetOutput().GetText())
		}
	}),
	"S-shl-011": func(t *testing.T, b *bed, cmd string) {
		r := b.do(contract.RunCommand, map[string]any{"cmd": cmd, "timeout_s": 3})
		if r.Status != v1.Status_ok && r.Status != v1.Status_failed {
			t.Errorf("%v: %v", r.Status, r.Error)
		}
	},
	"S-shl-012": func(t *testing.T, b *bed, cmd string) {
		r := b.want(b.do(contract.RunCommand, map[string]any{"cmd": cmd, "timeout_s": 30}), v1.Status_ok)
		contains(t, r.GetOutput().GetText(), "aaaa", "TAIL", "left out")
		if r.Output.TotalBytes != 50000005 || len(r.GetOutput().GetText()) > 64<<10 {
			t.Errorf("%d bytes, %d of text", r.Output.TotalBytes, len(r.GetOutput().GetText()))
		}
	},
	"S-shl-013": once(v1.Status_ok, 0, func(t *testing.T, _ *bed, r *v1.StepResult) {
		if len(r.GetOutput().GetText()) > 64<<10 || r.Output.OmittedBytes == 0 {
			t.Errorf("%d bytes of text", len(r.GetOutput().GetText()))
		}
	}),
	"S-shl-014": once(v1.Status_ok, 0, prints("\u732b\n")),
	"S-shl-015": once(v1.Status_ok, 0, func(t *testing.T, _ *bed, r *v1.StepResult) {
		if !utf8.ValidString(r.GetOutput().GetText()) || strings.ContainsRune(r.GetOutput().GetText(), 0) {
			t.Errorf("%q", r.GetOutput().GetText())
		}
	}),
	"S-shl-016": once(v1.Status_ok, 0, prints("ok\n")),
	"S-shl-017": once(v1.Status_ok, 0, prints("click\n")),
	"S-shl-018": once(v1.Status_ok, 0, prints(`a\u202ecba`+"\n")),
	"S-shl-019": once(v1.Status_ok, 3*time.Second, says("done", "eee")),
	"S-shl-020": func(t *testing.T, b *bed, _ string) {
		if r := b.want(b.sh("exit 7"), v1.Status_failed); r.GetExitCode() != 7 {
			t.Errorf("exit code %d", r.GetExitCode())
		}
		contains(t, b.want(b.sh("echo alive"), v1.Status_ok).GetOutput().GetText(), "alive")
	},
	"S-shl-021": func(t *testing.T, b *bed, _ string) {
		b.write("seen", "")
		b.sh("export PATH=/nowhere")
		contains(t, b.want(b.sh("ls"), v1.Status_ok).GetOutput().GetText(), "seen")
	},
	"S-shl-022": once(v1.Status_ok, 0, func(t *testing.T, _ *bed, r *v1.StepResult) {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		contains(t, r.GetOutput().GetText(), home+"\n", "UTF-8", "git version")
	}),
	"S-shl-023": once(v1.Status_ok, 0, func(t *testing.T, b *bed, r *v1.StepResult) {
		if _, err := os.Stat(filepath.Join(b.dir, "PWNED")); err == nil || r.GetOutput().GetText() != "hi\n" {
			t.Errorf("a project file steered the executor: %q", r.GetOutput().GetText())
		}
	}),
	"S-shl-024": func(t *testing.T, b *bed, cmd string) {
		step := b.step(contract.RunCommand, map[string]any{"cmd": cmd})
		step.Expect = &v1.Expect{MaxOutputBytes: 1 << 20}
		if n := strings.Count(b.want(b.submit(step), v1.Status_ok).GetOutput().GetText(), "line of text\n"); n != 3000 {
			t.Errorf("%d lines arrive", n)
		}
	},
	"S-shl-025": func(t *testing.T, b *bed, _ string) {
		step := b.step(contract.RunCommand, map[string]any{"cmd": "for i in $(seq 100); do echo $i; sleep 0.1; done"})
		step.Mode = v1.Step_async
		b.want(b.submit(step), v1.Status_running)
		time.Sleep(time.Second)
		b.want(b.do(contract.CancelStep, map[string]any{"target": step.StepId}), v1.Status_ok)
		step.Mode = v1.Step_async
		for {
			r := b.submit(step)
			if r.Status == v1.Status_running {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			b.want(r, v1.Status_cancelled)
			contains(t, r.GetOutput().GetText(), "1\n2\n3\n")
			return
		}
	},
}

func TestShellCases(t *testing.T) {
	cases := shellCases(t)
	if len(cases) != len(shellChecks) {
		t.Errorf("%d cases, %d checks", len(cases), len(shellChecks))
	}
	for id, c := range cases {
		t.Run(id, func(t *testing.T) {
			check := shellChecks[id]
			if check == nil {
				t.Fatal("no check for this case")
			}
			if lang := c.Setup.Env["LANG"]; lang != "" {
				t.Setenv("LANG", lang)
			}
			b := newBed(t, allowAll, direct)
			for name, text := range c.Setup.Files {
				b.write(name, text)
			}
			check(t, b, c.Input.Command)
		})
	}
}
