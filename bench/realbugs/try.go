//go:build linux

package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

//go:embed recordings
var recordings embed.FS

// outcome is what a run took.
type outcome struct {
	turns, steps int
	refused      int // actions that could not be done, as an edit of a text that is there twice
	red          int // commands and checks that failed after the first edit
	took         time.Duration
	verdict      string
}

// try lets harness mend one bug below dir, and holds it to what it says.
func try(ctx context.Context, b bug, program, dir string) (outcome, error) {
	var o outcome
	buggy, err := fetch(ctx, b.module, b.buggy)
	if err != nil {
		return o, err
	}
	fixed, err := fetch(ctx, b.module, b.fixed)
	if err != nil {
		return o, err
	}
	if err := judged(ctx, b, filepath.Join(dir, "upstream"), fixed, files{}, true); err != nil {
		return o, fmt.Errorf("upstream's fix: %w", err)
	}
	if err := judged(ctx, b, filepath.Join(dir, "before"), buggy, files{}.from(fixed.Dir, b.tests), false); err != nil {
		return o, fmt.Errorf("before: %w", err)
	}
	ws := filepath.Join(dir, "ws")
	if err := lay(ctx, ws, buggy, files{}.from(fixed.Dir, b.tests)); err != nil {
		return o, err
	}
	before, err := look(ws)
	if err != nil {
		return o, err
	}
	if o, err = mend(ctx, b, program, dir, ws); err != nil {
		return o, err
	}
	after, err := look(ws)
	if err != nil {
		return o, err
	}
	got := slices.DeleteFunc(differ(before, after), func(p string) bool {
		top, _, _ := strings.Cut(p, "/")
		return top == b.leaves
	})
	if !slices.Equal(got, b.changes) {
		return o, fmt.Errorf("changed are %q, not %q", got, b.changes)
	}
	if err := judged(ctx, b, filepath.Join(dir, "after"), buggy, files{}.from(fixed.Dir, b.tests).from(ws, b.changes), true); err != nil {
		return o, fmt.Errorf("after: %w", err)
	}
	if out, err := harness(ctx, program, dir, "undo", "--all", "-C", ws); err != nil {
		return o, fmt.Errorf("undo: %w: %s", err, out)
	}
	undone, err := look(ws)
	if err != nil {
		return o, err
	}
	if got := differ(before, undone); len(got) > 0 {
		return o, fmt.Errorf("undo left other than it was: %q", got)
	}
	return o, nil
}

// judged runs the check outside of any sandbox on a copy, and says if it is not as expected.
func judged(ctx context.Context, b bug, dir string, m version, with files, green bool) error {
	if err := lay(ctx, dir, m, with); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", b.check)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	switch failed := bytes.Contains(out, []byte("--- FAIL")); {
	case green && err != nil:
		return fmt.Errorf("the tests fail: %s", tail(out))
	case !green && err == nil:
		return errors.New("the tests pass already")
	case !green && !failed:
		return fmt.Errorf("the tests do not run: %s", tail(out))
	}
	return nil
}

// mend runs harness on the bug and reads its events.
func mend(ctx context.Context, b bug, program, dir, ws string) (outcome, error) {
	recording, err := recordings.ReadFile("recordings/" + b.name + ".jsonl")
	if err != nil {
		return outcome{}, err
	}
	played := filepath.Join(dir, "recording.jsonl")
	if err := os.WriteFile(played, recording, 0o644); err != nil {
		return outcome{}, err
	}
	begin := time.Now()
	out, err := harness(ctx, program, dir, "run", "--model", "recorded:"+played, "--check", b.check, "--auto", "--json", "-C", ws, b.statement)
	o, bad := read(bytes.NewReader(out))
	o.took = time.Since(begin)
	switch {
	case err != nil:
		return o, fmt.Errorf("run: %w, verdict %q: %s", err, o.verdict, tail(out))
	case bad != nil:
		return o, bad
	case o.verdict != "proven":
		return o, fmt.Errorf("the verdict is %q", o.verdict)
	case o.red == 0:
		return o, errors.New("nothing was red after the first edit: the wrong try was none")
	}
	return o, nil
}

// read takes the figures from the events of a run.
func read(r io.Reader) (outcome, error) {
	var o outcome
	edited := false
	for d := json.NewDecoder(r); ; {
		var e struct {
			Type, Verdict string
			Item          struct {
				Type   string
				Result struct {
					Action, Status string
				}
			}
		}
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return o, nil
		} else if err != nil {
			return o, fmt.Errorf("events: %w", err)
		}
		switch {
		case e.Type == "turn.started":
			o.turns++
		case e.Type == "session.completed":
			o.verdict = e.Verdict
		case e.Type == "item.completed" && e.Item.Type == "step":
			o.steps++
			switch done := e.Item.Result; done.Status {
			case "ok":
				edited = edited || done.Action == "edit_file"
			case "failed":
				if edited {
					o.red++
				}
			default:
				o.refused++
			}
		}
	}
}

// harness runs the program with a state and a configuration of its own.
func harness(ctx context.Context, program, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, "state"), "XDG_CONFIG_HOME="+filepath.Join(dir, "config"))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w %s", err, stderr.String())
	}
	return out, err
}

func tail(out []byte) []byte {
	return out[max(0, len(out)-1000):]
}
