package executor

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/artifact"
)

// printedPause is how often it is looked whether there is more to read.
const printedPause = 50 * time.Millisecond

// readPrinted reads what a command printed, from an offset: of one that runs
// what there is so far, of one that ended what was kept.
func (s *session) readPrinted(ctx context.Context, a *v1.ReadOutputArgs, r *v1.StepResult) error {
	over := time.Now().Add(time.Duration(a.WaitMs) * time.Millisecond)
	for {
		more, err := s.printed(a, r)
		if err != nil {
			return err
		}
		r.Status = v1.Status_ok
		if more || r.Target != v1.Status_running || !time.Now().Before(over) {
			return nil
		}
		select {
		case <-time.After(min(printedPause, time.Until(over))):
		case <-ctx.Done():
			return contract.Errorf(v1.Error_cancelled, "was cancelled")
		}
	}
}

// printed puts one piece into a result and says whether there is any.
func (s *session) printed(a *v1.ReadOutputArgs, r *v1.StepResult) (bool, error) {
	s.mu.Lock()
	l := s.live[a.Target]
	s.mu.Unlock()
	if l != nil && l.step.Action == contract.RunCommand {
		// The state comes before the bytes: one that has ended has all of them.
		r.Target = l.now().Status
		l.mu.Lock()
		o := l.output
		l.mu.Unlock()
		if o == nil {
			r.Output = &v1.Output{Next: a.Offset}
			return false, nil
		}
		total := o.Total()
		err := piece(a, o, total, false, r)
		if err == nil {
			return r.Output.Next > a.Offset, nil
		}
		if !errors.Is(err, os.ErrClosed) {
			return false, contract.Errorf(v1.Error_unavailable, "the output so far: %v", err)
		}
		if _, err := l.settled(s.ctx); err != nil { // it is ending now
			return false, contract.Errorf(v1.Error_interrupted, "the session is closing")
		}
	}
	_, step, result, err := s.journal.Step(a.Target)
	switch {
	case err != nil:
		return false, contract.Errorf(v1.Error_unavailable, "the journal: %v", err)
	case result == nil || step.Action != contract.RunCommand:
		return false, contract.Errorf(v1.Error_not_found, "no step %q ran a command in this session", a.Target).WithField("args.target")
	}
	r.Target = result.Status
	out := result.GetOutput()
	if out.GetArtifact() == "" {
		err = piece(a, strings.NewReader(out.GetText()), uint64(len(out.GetText())), true, r)
	} else {
		var f *os.File
		if f, err = s.store.Get(out.Artifact); err == nil {
			err = errors.Join(piece(a, f, out.TotalBytes, true, r), f.Close())
		}
	}
	if err != nil {
		return false, contract.Errorf(v1.Error_unavailable, "the output of %s: %v", a.Target, err)
	}
	return r.Output.Next > a.Offset, nil
}

// piece reads one piece as harmless text. A character or escape sequence that is
// cut at its end is left for the next one, unless the output ends there.
func piece(a *v1.ReadOutputArgs, from io.ReaderAt, total uint64, ended bool, r *v1.StepResult) error {
	limit := defaultOutput
	if a.Limit > 0 {
		limit = min(max(int(a.Limit), 64), maxOutputText)
	}
	b := make([]byte, limit)
	n, err := from.ReadAt(b, int64(a.Offset))
	if err != nil && err != io.EOF {
		return err
	}
	text, rest := artifact.Piece(b[:n])
	if last := ended && a.Offset+uint64(n) >= total; last || rest == limit {
		text, rest = artifact.Harmless(b[:n]), 0
	}
	r.Output = &v1.Output{Text: text, TotalBytes: max(total, a.Offset+uint64(n)), Next: a.Offset + uint64(n-rest)}
	if total < a.Offset {
		r.Output.TotalBytes = total
	}
	return nil
}
