package main

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed sample
var sample embed.FS

type demoCmd struct {
	Sandbox string `default:"auto" enum:"auto,namespaces,landlock" help:"The sandbox: auto (the best that is to be had), namespaces or landlock."`
}

// demoPlan is what a demo's run says of itself.
type demoPlan struct{ undo string }

const demoTask = "The tests of this package fail. Find out why and fix the code."

// Run does what "harness run" does, on a copy of the sample and with a recording for a model.
func (d demoCmd) Run() error {
	if _, err := exec.LookPath("go"); err != nil {
		return &exit{1, errors.New("the sample's tests need Go in PATH")}
	}
	base, err := os.MkdirTemp("", "harness-demo-")
	if err != nil {
		return err
	}
	dir := filepath.Join(base, "interval")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	files, err := sample.ReadDir("sample")
	if err != nil {
		return err
	}
	for _, f := range files {
		data, err := sample.ReadFile("sample/" + f.Name())
		if err != nil {
			return err
		}
		to := filepath.Join(base, f.Name())
		if name, ok := strings.CutSuffix(f.Name(), ".txt"); ok {
			to = filepath.Join(dir, name)
		}
		if err := os.WriteFile(to, data, 0o644); err != nil {
			return err
		}
	}
	program := "harness"
	if self, err := os.Executable(); err == nil && strings.Contains(self, string(filepath.Separator)+"go-build") {
		program = "go run ./cmd/harness"
	}
	fmt.Fprintf(os.Stderr, "a sample project in %s, a recorded model; executor, sandbox and tests are real\n\n", dir)
	c := runCmd{Task: []string{demoTask}, Dir: dir, Model: "recorded:" + filepath.Join(base, "recording.jsonl"),
		plan: &demoPlan{undo: fmt.Sprintf("%s undo --all -C %s", program, dir)}}
	c.Sandbox = d.Sandbox
	return c.Run()
}
