// Command soak lets an executor work under load and kills it at random moments,
// then checks that nothing was lost, done twice or left behind.
//
//	go build -o /tmp/harness ./cmd/harness && go run ./bench/soak -program /tmp/harness -sessions 50 -steps 200
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"harness/e2e/soak"
)

func main() {
	program := flag.String("program", "", "the harness program")
	sessions := flag.Int("sessions", 50, "sessions at once")
	steps := flag.Int("steps", 200, "steps of each")
	kill := flag.Duration("kill", 2*time.Second, "the longest life of an executor; 0 never kills")
	whole := flag.Bool("whole", false, "the whole program, planner and all, killed as often as there are sessions")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random choices")
	flag.Parse()
	if err := run(*program, *whole, *sessions, *steps, *kill, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(program string, whole bool, sessions, steps int, kill time.Duration, seed uint64) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		return err
	}
	begin := time.Now()
	o := soak.Options{Program: program, Dir: dir, Sessions: sessions, Steps: steps, Kill: kill, Seed: seed,
		Log: func(f string, a ...any) { fmt.Fprintf(os.Stderr, f+"\n", a...) }}
	var r soak.Report
	if whole {
		r, err = soak.Whole(o)
	} else {
		r, err = soak.Run(context.Background(), o)
	}
	fmt.Printf("%d steps of %d sessions in %.1f s, %d kills, seed %d: %v\n", r.Steps, sessions, time.Since(begin).Seconds(), r.Kills, seed, r.Status)
	if err != nil {
		return fmt.Errorf("%w\neverything is in %s", err, dir)
	}
	return os.RemoveAll(dir)
}
