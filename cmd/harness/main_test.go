package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"harness/executor/sandbox"
)

// asProgram makes the test binary the program.
const asProgram = "HARNESS_TEST_AS_PROGRAM"

// The test binary is the program, its executor, and its hands.
func TestMain(m *testing.M) {
	sandbox.HandsMain()
	if len(os.Args) > 1 && os.Args[1] == asServer {
		serveMCP()
		return
	}
	if os.Getenv(asProgram) != "" || len(os.Args) > 1 && os.Args[1] == "executor" {
		os.Exit(run(os.Args[1:]))
	}
	testscript.Main(m, map[string]func(){"harness": func() { os.Exit(run(os.Args[1:])) }})
}

func TestCommandLine(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "server": server},
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			for _, k := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY"} {
				e.Setenv(k, os.Getenv(k))
			}
			e.Setenv("GOCACHE", filepath.Join(os.TempDir(), "harness-test-gocache"))
			e.Setenv("GOFLAGS", "-mod=mod")
			e.Setenv("ANTHROPIC_API_KEY", "")
			e.Setenv("OPENAI_API_KEY", "")
			return os.MkdirAll(home, 0o755)
		},
	})
}

// exits CODE PROGRAM ARG … runs a program that must end with an exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG …")
	}
	got := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("%v ended with %s, want %s", args[1:], got, args[0])
	}
}
