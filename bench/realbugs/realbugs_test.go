//go:build linux

package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"harness/planner/model/recorded"
)

// A recording is of the steps that a model would take, a wrong one among them.
func TestRecordings(t *testing.T) {
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			data, err := recordings.ReadFile("recordings/" + b.name + ".jsonl")
			if err != nil {
				t.Fatal(err)
			}
			replies, err := recorded.Load(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			count := map[string]int{}
			for _, r := range replies {
				for _, c := range r.Calls {
					count[c.Name]++
				}
			}
			for name, least := range map[string]int{"search": 1, "read_file": 1, "edit_file": 2, "run_command": 2} {
				if count[name] < least {
					t.Errorf("%d of %s, want at least %d", count[name], name, least)
				}
			}
			if last := replies[len(replies)-1]; len(last.Calls) > 0 || last.Text == "" {
				t.Error("the last reply is no last word")
			}
		})
	}
}

// The quick bugs are mended and proven by the whole program.
func TestProven(t *testing.T) {
	if testing.Short() {
		t.Skip("it fetches modules and runs their tests")
	}
	program := filepath.Join(t.TempDir(), "harness")
	if err := build(t.Context(), program); err != nil {
		t.Fatal(err)
	}
	for _, b := range bugs {
		if !b.quick {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			o, err := try(t.Context(), b, program, t.TempDir())
			if errors.Is(err, errFetch) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d turns, %d steps, %v", o.turns, o.steps, o.took)
		})
	}
}

// What the figures come from, and what a run that goes another way looks like.
func TestRead(t *testing.T) {
	const (
		turn   = `{"type":"turn.started"}` + "\n"
		edit   = `{"type":"item.completed","item":{"type":"step","result":{"action":"edit_file","status":"ok"}}}` + "\n"
		refuse = `{"type":"item.completed","item":{"type":"step","result":{"action":"edit_file","status":"error"}}}` + "\n"
		fail   = `{"type":"item.completed","item":{"type":"step","result":{"action":"run_command","status":"failed"}}}` + "\n"
		word   = `{"type":"item.completed","item":{"type":"agent_message","text":"so"}}` + "\n"
		done   = `{"type":"session.completed","verdict":"proven"}` + "\n"
	)
	for _, c := range []struct {
		name, events string
		want         outcome
	}{
		{"nothing", "", outcome{}},
		{"red before the first edit only", turn + fail + edit + done, outcome{turns: 1, steps: 2, verdict: "proven"}},
		{"a wrong try", turn + fail + edit + fail + turn + edit + word + done, outcome{turns: 2, steps: 4, red: 1, verdict: "proven"}},
		{"a refused edit is none", turn + refuse + fail, outcome{turns: 1, steps: 2, refused: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := read(bytes.NewReader([]byte(c.events))); err != nil || got != c.want {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
	if _, err := read(bytes.NewReader([]byte("no event"))); err == nil {
		t.Error("what is no event was read")
	}
}
