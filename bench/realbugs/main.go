//go:build linux

// Command realbugs lets the whole program mend known bugs of published modules:
//
//	go run ./bench/realbugs [-only NAME] [-harness PATH]
//
// For each it fetches the version with the bug and the next one, puts the next
// one's tests beside the old code, sees them red, and runs harness on it with a
// recorded model that lists, searches, reads, errs once and then gets it right.
// Executor, sandbox, undo and the module's own tests are real. A row says proven
// only if the tests were red before, red after the wrong try and green at the
// end, nothing but the expected files changed, and undo gave every byte back.
//
// Modules come through the go command, as GOPROXY says; commands in the sandbox
// have no network.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"text/tabwriter"
	"time"
)

func main() {
	only := flag.String("only", "", "the `name` of one bug")
	program := flag.String("harness", "", "the harness program; default: built from ./cmd/harness")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := all(ctx, *only, *program); err != nil {
		fmt.Fprintln(os.Stderr, "realbugs:", err)
		os.Exit(1)
	}
}

func all(ctx context.Context, only, program string) error {
	tmp, err := os.MkdirTemp("", "harness-realbugs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if program == "" {
		program = filepath.Join(tmp, "harness")
		if err := build(ctx, program); err != nil {
			return err
		}
	} else if program, err = filepath.Abs(program); err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "BUG\tVERSIONS\tTURNS\tSTEPS\tREFUSED\tRED\tTIME\tRESULT")
	tried, failed := 0, 0
	for _, b := range bugs {
		if only != "" && b.name != only {
			continue
		}
		tried++
		dir := filepath.Join(tmp, b.name)
		o, err := try(ctx, b, program, dir)
		result := "proven, undone"
		if err != nil {
			result = "not so"
			failed++
			fmt.Fprintf(os.Stderr, "%s: %v\n", b.name, err)
		}
		fmt.Fprintf(table, "%s\t%s → %s\t%d\t%d\t%d\t%d\t%.1f s\t%s\n", b.name, b.buggy, b.fixed, o.turns, o.steps, o.refused, o.red, o.took.Round(100*time.Millisecond).Seconds(), result)
	}
	table.Flush()
	switch {
	case tried == 0:
		return fmt.Errorf("there is no bug %q", only)
	case failed > 0:
		return fmt.Errorf("%d of %d are not as they should be", failed, tried)
	}
	return nil
}

func build(ctx context.Context, program string) error {
	out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "harness/cmd/harness").CombinedOutput()
	if err != nil {
		return fmt.Errorf("building harness: %w\n%s", err, out)
	}
	return nil
}
