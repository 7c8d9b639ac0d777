package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWork does what a day's work does: builds with the user's own caches, and commits.
func TestWork(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip("no home")
	}
	base := t.TempDir()
	b := &box{base: base, home: home, ws: filepath.Join(base, "ws")}
	for name, text := range map[string]string{"go.mod": "module sample\n\ngo 1.24\n", "a.go": "package sample\n\nfunc One() int { return 1 }\n",
		"a_test.go": "package sample\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif One() != 1 {\n\t\tt.Fatal()\n\t}\n}\n"} {
		if err := os.MkdirAll(b.ws, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(b.ws, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.Sandbox, err = Start(t.Context(), Config{Workspace: b.ws, State: filepath.Join(base, "state", "sandbox"), Home: home})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	wide := func(c *Command) {
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local"}
		c.Limits, c.Timeout = Limits{Memory: 4 << 30, Processes: 512}, 0
	}
	for _, c := range []struct{ tool, line, want string }{
		{"go", "go test ./... && go test -count=1 ./...", "ok"},
		{"git", "git init -q . && git config user.email t@t.test && git config user.name t && echo a > a && git add a && git commit -qm a && git log --oneline | wc -l", "1\n"},
	} {
		if _, err := exec.LookPath(c.tool); err != nil {
			continue
		}
		exit, out := b.sh(t, t.Context(), c.line, wide)
		t.Logf("%s: %v", c.tool, exit.Wall)
		if exit.Code != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%s: %+v %s", c.line, exit, out)
		}
	}
}
