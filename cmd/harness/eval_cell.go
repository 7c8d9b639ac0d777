package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"harness/surface/eval"
	"harness/surface/terminal"
)

// evalRun is what the cells of an evaluation share.
type evalRun struct {
	dir       string
	sandbox   string
	keep      bool
	checkTime time.Duration
	sources   sources
}

// cell makes a workspace, lets harness run work in it, and judges what is there then.
func (r *evalRun) cell(ctx context.Context, c eval.Cell) (o eval.Outcome, err error) {
	dir := filepath.Join(r.dir, c.ID())
	if err := os.RemoveAll(dir); err != nil { // of a run that was cut off
		return o, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return o, err
	}
	if !r.keep {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	ws, err := r.sources.lay(ctx, c.Task, dir)
	if err != nil {
		return o, fmt.Errorf("the workspace: %w", err)
	}
	before, err := keepTests(ws, filepath.Join(dir, "tests"), c.Task.Hidden)
	if err != nil {
		return o, fmt.Errorf("the workspace: %w", err)
	}
	if o, err = r.work(ctx, c, dir, ws); err != nil {
		return o, err
	}
	begin := time.Now()
	defer func() { o.JudgeSeconds = time.Since(begin).Seconds() }()
	if c.Task.Hidden.Any() {
		if err := before.putBack(ws); err != nil {
			return o, fmt.Errorf("taking back its tests: %w", err)
		}
		if err := r.sources.hide(ctx, c.Task.Hidden, ws); err != nil {
			return o, fmt.Errorf("the hidden tests: %w", err)
		}
	}
	return o, r.judge(ctx, c.Task, dir, ws, &o)
}

// work runs the program on the task, under a state and configuration of its own.
func (r *evalRun) work(ctx context.Context, c eval.Cell, dir, ws string) (o eval.Outcome, err error) {
	self, err := os.Executable()
	if err != nil {
		return o, err
	}
	args := []string{"run", "--json", "--cd=" + ws, "--model=" + c.Use}
	args = append(args, policyFlags{PolicyFile: c.Policy.File, Allow: c.Policy.Allow, Ask: c.Policy.Ask, Deny: c.Policy.Deny, Auto: c.Policy.Auto, Plan: c.Policy.Plan, Sandbox: r.sandbox}.args()...)
	if c.Task.Check != "" && !c.Task.OwnCheck {
		args = append(args, "--check="+c.Task.Check)
	}
	for flag, v := range map[string]any{"--max-turns=%v": c.Limits.Turns, "--max-tokens=%v": c.Limits.Tokens, "--max-time=%v": c.Limits.Time, "--max-budget-usd=%v": c.Limits.BudgetUSD} {
		if v != 0 && v != 0.0 && v != time.Duration(0) {
			args = append(args, fmt.Sprintf(flag, v))
		}
	}
	events, err := os.Create(filepath.Join(dir, "events.jsonl"))
	if err != nil {
		return o, err
	}
	defer events.Close()
	cmd := exec.CommandContext(ctx, self, append(args, "-")...)
	cmd.Env = append(os.Environ(), cellEnv(dir)...)
	cmd.Stdin, cmd.Stdout = strings.NewReader(c.Task.Statement), events
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(endSignal) }
	cmd.WaitDelay = 20 * time.Second
	aside(cmd)
	begin := time.Now()
	err = cmd.Run()
	took := time.Since(begin)
	if ctx.Err() != nil {
		return o, ctx.Err()
	}
	if _, err := events.Seek(0, 0); err != nil {
		return o, err
	}
	o, bad := eval.ReadEvents(events)
	o.Seconds = took.Seconds()
	var code *exec.ExitError
	switch {
	case bad != nil:
		return o, bad
	case err != nil && !errors.As(err, &code):
		return o, err
	case o.StopReason == "crashed":
		return o, fmt.Errorf("harness run ended with %v: %s", err, lastLine(stderr.String()))
	}
	switch o.StopReason {
	case "credentials", "executor_lost", "error", "interrupted", "model_error":
		return o, fmt.Errorf("%s: %s", o.StopReason, o.Why) // nothing that the model did
	}
	return o, nil
}

func cellEnv(dir string) []string {
	return []string{"XDG_STATE_HOME=" + filepath.Join(dir, "state"), "XDG_CONFIG_HOME=" + filepath.Join(dir, "config")}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return terminal.Safe(lines[len(lines)-1])
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

var oddName = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

func shortName(name string) string {
	return fmt.Sprintf("%.40s", strings.Trim(oddName.ReplaceAllString(name, "-"), "-."))
}
