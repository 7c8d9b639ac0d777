package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"harness/surface/eval"
	"harness/surface/terminal"
)

type evalCmd struct {
	Suite    string   `arg:"" help:"A suite in YAML, or SWE-bench instances in JSON Lines."`
	Model    []string `short:"m" sep:"none" help:"A model in the place of the suite's; repeatable. {task} in it is the task's name;" placeholder:"MODEL"`
	Only     []string `sep:"none" help:"Only the tasks whose name fits a pattern, as 'parser-*'; repeatable." placeholder:"PATTERN"`
	Repeats  int      `help:"Run each cell so many times." placeholder:"N"`
	Parallel int      `short:"j" help:"So many cells at a time." placeholder:"N"`
	Continue bool     `short:"c" help:"Go on with the last run of this suite: what it has judged is not done again."`
	Keep     bool     `help:"Keep workspaces, with the hidden tests in them, and sessions."`
	Sandbox  string   `default:"auto" enum:"auto,namespaces,landlock" help:"The sandbox: auto (the best that is to be had), namespaces or landlock."`
	JSON     bool     `name:"json" help:"Print the report as JSON."`
	PassRate float64  `name:"pass-rate" default:"1" help:"The exit code is 54 where a model resolves a smaller part than this." placeholder:"R"`
	Quiet    bool     `short:"q" help:"No progress."`
}

// Run does what is not done yet, then reports on all.
func (c *evalCmd) Run() error {
	s, err := eval.Load(c.Suite, c.Model)
	if err != nil {
		return &exit{42, err}
	}
	if err := c.narrow(s); err != nil {
		return &exit{42, err}
	}
	dir, err := c.place(s.Name)
	if err != nil {
		return err
	}
	j, err := eval.OpenJournal(dir)
	if err != nil {
		return err
	}
	defer j.Close()
	cells := s.Cells()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p := &progress{total: len(cells), done: len(slices.DeleteFunc(slices.Clone(cells), func(x eval.Cell) bool { return !j.Done(x) })), quiet: c.Quiet}
	p.say("%s: %d cells, %d of them judged already, %d at a time, in %s", s.Name, p.total, p.done, s.Parallel, dir)
	// The policy keeps steps out of the state folder, so workspaces are elsewhere.
	r := &evalRun{dir: filepath.Join(evalCache(), "cells", filepath.Base(filepath.Dir(dir)), filepath.Base(dir)), sandbox: c.Sandbox, keep: c.Keep, checkTime: s.CheckTime}
	err = eval.Run(ctx, cells, j, s.Parallel, r.cell, p.tell)
	if err != nil && ctx.Err() == nil {
		return err
	}
	report := eval.NewReport(s.Name, len(cells), j.Outcomes(cells))
	if err := c.write(report); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return &exit{130, fmt.Errorf("interrupted; harness eval -c %s goes on", c.Suite)}
	}
	return c.verdict(report)
}

// narrow takes what the command line says over the suite.
func (c *evalCmd) narrow(s *eval.Suite) error {
	for _, p := range c.Only {
		if _, err := filepath.Match(p, ""); err != nil {
			return fmt.Errorf("--only %s: %w", p, err)
		}
	}
	if len(c.Only) > 0 {
		s.Tasks = slices.DeleteFunc(s.Tasks, func(t eval.Task) bool {
			return !slices.ContainsFunc(c.Only, func(p string) bool { ok, _ := filepath.Match(p, t.Name); return ok })
		})
		if len(s.Tasks) == 0 {
			return fmt.Errorf("no task of %s fits --only %s", c.Suite, strings.Join(c.Only, " "))
		}
	}
	if c.Repeats > 0 {
		s.Repeats = c.Repeats
	}
	if c.Parallel > 0 {
		s.Parallel = c.Parallel
	}
	return nil
}

// place is the folder of a run: a new one, or with --continue the last one of
// the same suite that was begun.
func (c *evalCmd) place(name string) (string, error) {
	file, err := filepath.Abs(c.Suite)
	if err != nil {
		return "", err
	}
	base := filepath.Join(stateDir(), "eval", shortName(name)+"-"+digest(file))
	list, err := os.ReadDir(base)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if !c.Continue {
		return filepath.Join(base, fmt.Sprintf("%04d-%s", len(list)+1, strings.ToLower(rand.Text()[:4]))), nil
	}
	if len(list) == 0 {
		return "", &exit{42, fmt.Errorf("there is no run of %s to go on with", c.Suite)}
	}
	return filepath.Join(base, list[len(list)-1].Name()), nil
}

func (c *evalCmd) write(r *eval.Report) error {
	print := r.Table
	if c.JSON {
		print = r.JSON
	}
	return print(os.Stdout)
}

// verdict is the exit code.
func (c *evalCmd) verdict(r *eval.Report) error {
	for _, g := range r.Groups {
		if g.Errors > 0 {
			return &exit{1, fmt.Errorf("%d cells of %s could not be judged; harness eval -c %s tries them again", g.Errors, g.Model, c.Suite)}
		}
	}
	for _, g := range r.Groups {
		if g.Rate < c.PassRate {
			return &exit{54, nil}
		}
	}
	return nil
}

// progress is a line on standard error for each cell that begins and ends.
type progress struct {
	mu          sync.Mutex
	total, done int
	quiet       bool
}

func (p *progress) say(format string, args ...any) {
	if !p.quiet {
		fmt.Fprintln(os.Stderr, "harness:", terminal.Safe(fmt.Sprintf(format, args...)))
	}
}

func (p *progress) tell(c eval.Cell, o *eval.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o == nil {
		p.say("begins: %v", c)
		return
	}
	p.done++
	line := fmt.Sprintf("[%d/%d] %v: %s", p.done, p.total, c, o.Class)
	if why := o.Reason(); why != "" && !o.Resolved {
		line += ": " + why
	}
	p.say("%s (%d turns, %d steps, $%.4f, %.1f s)", line, o.Turns, o.Steps, o.CostUSD, o.Seconds)
}
