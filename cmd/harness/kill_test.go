//go:build linux

package main

import (
	"os"
	"testing"
	"time"

	"harness/e2e/soak"
)

func soaking(t *testing.T, o soak.Options) soak.Options {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o.Program, o.Env, o.Dir, o.Seed, o.Log = self, []string{asProgram + "=1"}, t.TempDir(), uint64(time.Now().UnixNano()), t.Logf
	return o
}

// The short form of bench/soak: an executor at work is killed at random moments.
func TestKilledExecutor(t *testing.T) {
	o := soaking(t, soak.Options{Sessions: 3, Steps: 25, Kill: 300 * time.Millisecond})
	r, err := soak.Run(t.Context(), o)
	if err != nil {
		t.Errorf("seed %d: %v", o.Seed, err)
	}
	if r.Kills == 0 || r.Steps != 75 {
		t.Errorf("%+v", r)
	}
}

// The whole program: planner, executor, or both.
func TestKilledProgram(t *testing.T) {
	o := soaking(t, soak.Options{Sessions: 8, Steps: 60, Kill: 400 * time.Millisecond})
	r, err := soak.Whole(o)
	if err != nil {
		t.Errorf("seed %d: %v", o.Seed, err)
	}
	if r.Kills == 0 || r.Steps == 0 {
		t.Errorf("%+v", r)
	}
}
