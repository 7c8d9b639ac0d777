// Package soak lets an executor work under load, kills it at random moments, and
// checks what must hold whatever the moment: no finished result is lost, no step
// runs twice, one of unknown end is interrupted and the workspace is as before
// it, the audit log is whole and accounts for every step, and nothing is left.
package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "harness/contract/harness/v1"
)

// Options says how much, and of what program.
type Options struct {
	Program  string   // the harness program
	Env      []string // beside HOME and TMPDIR
	Dir      string   // an empty folder for everything
	Sessions int
	Steps    int           // of each session
	Kill     time.Duration // the longest life of an executor; 0: it is never killed
	Seed     uint64
	Log      func(format string, args ...any)
}

// Report is what happened.
type Report struct {
	Kills, Steps int
	Status       map[string]int
}

func (o *Options) prepare() (err error) {
	for _, d := range []string{"ws", "home", "tmp"} {
		if err := os.MkdirAll(filepath.Join(o.Dir, d), 0o755); err != nil {
			return err
		}
	}
	o.Dir, err = filepath.EvalSymlinks(o.Dir)
	return err
}

// Run works, kills, and checks. The error names everything that does not hold.
func Run(ctx context.Context, o Options) (Report, error) {
	if err := o.prepare(); err != nil {
		return Report{}, err
	}
	before := mounts()
	k := newKeeper(o)
	if err := k.start(); err != nil {
		return Report{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var killing sync.WaitGroup
	if o.Kill > 0 {
		killing.Go(func() { k.killAtRandom(ctx) })
	}
	workers := make([]*worker, o.Sessions)
	errs := make([]error, o.Sessions)
	var wg sync.WaitGroup
	for i := range workers {
		workers[i] = &worker{keeper: k, id: fmt.Sprintf("x%d", i), rng: rand.New(rand.NewPCG(o.Seed, uint64(i))), ended: map[string]*v1.StepResult{}}
		wg.Go(func() { errs[i] = workers[i].work(ctx) })
	}
	wg.Wait()
	cancel()
	killing.Wait()
	r := Report{Kills: k.kills, Status: map[string]int{}}
	if err := errors.Join(errs...); err != nil {
		return r, errors.Join(err, k.end())
	}
	for _, w := range workers {
		for _, result := range w.ended {
			r.Steps++
			r.Status[result.Status.String()]++
		}
		errs = append(errs, w.check())
	}
	errs = append(errs, k.end())
	for _, w := range workers {
		errs = append(errs, w.checkAudit())
	}
	errs = append(errs, o.nothingLeft(before))
	return r, errors.Join(errs...)
}
