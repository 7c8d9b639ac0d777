package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/audit"
)

// worker is one session's planner: it submits step after step, again and again
// until each has its end, and compares.
type worker struct {
	*keeper
	id    string
	rng   *rand.Rand
	order []*v1.Step
	ended map[string]*v1.StepResult
	count int // what the session's counter must be
	files map[string]bool
}

// work runs the session's steps.
func (w *worker) work(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(w.workspace(), w.id), 0o755); err != nil {
		return err
	}
	w.files = map[string]bool{}
	for n := range w.Steps {
		step := w.step(n)
		r, err := w.toTheEnd(ctx, step)
		if err != nil {
			return fmt.Errorf("%s: %w", step.StepId, err)
		}
		w.order, w.ended[step.StepId] = append(w.order, step), r
		w.files[fmt.Sprintf("f%d", n)] = r.Status == v1.Status_ok
		if r.Status == v1.Status_ok && step.Action == contract.RunCommand {
			w.count++
		}
		if err := w.again(ctx); err != nil {
			return err
		}
	}
	return nil
}

// step is the session's n-th: most are commands that count one up and leave a
// process behind, some take their time, some are edits.
func (w *worker) step(n int) *v1.Step {
	args := map[string]any{"cmd": fmt.Sprintf(`sleep %s & echo x >> f%d; c=$(cat count 2>/dev/null || echo 0); sleep 0.0%d; echo $((c+1)) > count`, w.mark(), n, w.rng.IntN(4)), "cwd": w.id}
	action := contract.RunCommand
	if w.rng.IntN(5) == 0 {
		action, args = contract.WriteFile, map[string]any{"path": fmt.Sprintf("%s/f%d", w.id, n), "content": "x\n"}
	}
	a, err := structpb.NewStruct(args)
	if err != nil {
		panic(err) // strings always fit
	}
	return &v1.Step{StepId: fmt.Sprintf("%s_%d", w.id, n), SessionId: w.id, Action: action, Args: a}
}

// toTheEnd submits a step until it has its end, over as many executors as it takes.
func (w *worker) toTheEnd(ctx context.Context, step *v1.Step) (*v1.StepResult, error) {
	var last error
	for begin := time.Now(); time.Since(begin) < time.Minute && ctx.Err() == nil; {
		x := w.executor()
		r, err := x.Submit(ctx, step)
		var refused *contract.Error
		switch {
		case err == nil:
			return r, nil
		case errors.As(err, &refused) && refused.Kind == v1.Error_not_found:
			_, err = x.Open(ctx, &v1.OpenRequest{SessionId: w.id})
		}
		if last = err; err != nil {
			time.Sleep(time.Millisecond)
		}
	}
	return nil, fmt.Errorf("no end within a minute: %w", errors.Join(last, ctx.Err()))
}

// again asks for an old step's result: it is the one that was given out.
func (w *worker) again(ctx context.Context) error {
	step := w.order[w.rng.IntN(len(w.order))]
	r, err := w.toTheEnd(ctx, step)
	if err != nil {
		return fmt.Errorf("%s again: %w", step.StepId, err)
	}
	if !proto.Equal(r, w.ended[step.StepId]) {
		return fmt.Errorf("%s: another result than before: %v, was %v", step.StepId, r, w.ended[step.StepId])
	}
	return nil
}

// check holds the workspace against the results: what was ok is there once, what was not is not there.
func (w *worker) check() error {
	var errs []error
	for name, ok := range w.files {
		data, err := os.ReadFile(filepath.Join(w.workspace(), w.id, name))
		if ok != (err == nil) || ok && string(data) != "x\n" {
			errs = append(errs, fmt.Errorf("%s/%s: ended ok: %v, has %q", w.id, name, ok, data))
		}
	}
	if w.count > 0 {
		data, err := os.ReadFile(filepath.Join(w.workspace(), w.id, "count"))
		if strings.TrimSpace(string(data)) != fmt.Sprint(w.count) {
			errs = append(errs, fmt.Errorf("%s: %d commands ended ok, counted %q %v", w.id, w.count, data, err))
		}
	}
	for id, r := range w.ended {
		if r.Status != v1.Status_ok && r.Status != v1.Status_interrupted {
			errs = append(errs, fmt.Errorf("%s ended %v: %v", id, r.Status, r.Error))
		}
	}
	return errors.Join(errs...)
}

// checkAudit holds the audit log against the results: it verifies with every
// head that was given out, and has each step's end, and its start once at most.
func (w *worker) checkAudit() error {
	key, err := audit.ReadKey(w.state())
	if err != nil {
		return err
	}
	var heads []string
	for _, r := range w.ended {
		heads = append(heads, r.AuditHead)
	}
	report, err := audit.Verify(audit.Dir(w.state(), w.id), w.id, key.Public(), heads)
	if err != nil {
		return err
	}
	if len(report.Findings) > 0 || report.Witness != len(heads) {
		return fmt.Errorf("%s: the audit log: %+v", w.id, report)
	}
	started, status := map[string]int{}, map[string]string{}
	err = audit.Each(w.state(), audit.Query{Session: w.id}, func(e audit.Entry) error {
		switch e.Kind {
		case audit.Started:
			started[e.Step]++
		case audit.Finished:
			status[e.Step] = e.Status
		}
		return nil
	})
	errs := []error{err}
	for id, r := range w.ended {
		if started[id] > 1 || started[id] == 0 && r.Status == v1.Status_ok || status[id] != r.Status.String() {
			errs = append(errs, fmt.Errorf("%s: started %d times, ended %q on record, %v as given out", id, started[id], status[id], r.Status))
		}
	}
	return errors.Join(errs...)
}
