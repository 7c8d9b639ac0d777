package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/artifact"
	"harness/executor/sandbox"
	"harness/executor/workspace"
)

// What a command gets where the step does not say.
const (
	defaultTimeout = 2 * time.Minute
	defaultOutput  = 30 << 10 // bytes of text
	maxOutputText  = 1 << 20
	streamedOutput = 64 << 10 // bytes of a command's text that become events
	drainTime      = 2 * time.Second
)

var errOutput = errors.New("output limit")

// defaultLimits hold for every command, beside its timeout.
var defaultLimits = sandbox.Limits{Memory: 8 << 30, Processes: 512, OpenFiles: 4096, CPU: 2 * time.Hour, FileSize: 8 << 30, Disk: 16 << 30}

func (s *session) runCommand(ctx context.Context, l *live, a *v1.RunCommandArgs, tx *workspace.Tx, r *v1.StepResult) error {
	if s.sandbox == nil || !s.sandbox.MeetsMinimum() {
		return contract.Errorf(v1.Error_unavailable, "no command runs here without a sandbox: %v", s.sandboxErr).
			WithHint("harness doctor says what is missing and how to get it")
	}
	dir, err := s.workingDir(a.Cwd)
	if err != nil {
		return err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return contract.Errorf(v1.Error_unavailable, "a pipe: %v", err)
	}
	defer out.Close()
	env := commandEnv(s.x.home, dir, a.Env)
	c := sandbox.Command{Argv: argv(a.Cmd, env), Dir: dir, Env: env,
		Limits: defaultLimits, Output: in, Timeout: defaultTimeout}
	c.Gate, c.Suspects = s.gate(c.Argv, a.Cmd)
	if tx != nil {
		c.Lower = tx.Lower()
	} else if tree, err := s.ws.Tree(); err == nil {
		c.Lower = tree.Layers()
	}
	hidden, err := s.currentPolicy().Hidden(l.shown, c.Lower...)
	if err != nil {
		return contract.Errorf(v1.Error_invalid, "the policy: %v", err)
	}
	for _, h := range hidden {
		c.Hide = append(c.Hide, h.Path)
	}
	if tx != nil {
		c.Upper, c.Work = tx.Upper(), tx.Work()
	}
	if a.TimeoutS > 0 {
		c.Timeout = time.Duration(a.TimeoutS) * time.Second
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if takesInput(l.step) {
		c.Stdin = l.input
		defer l.input.Close()
		defer l.closeStdin()
		watched := s.watchInput(l)
		defer watched()
	}
	collected := s.collect(l, out, cancel)
	connected := s.network(&c, l)
	exit, err := s.play(ctx, c, tx)
	connected(r)
	in.Close()
	out.SetReadDeadline(time.Now().Add(drainTime))
	output, outErr := collected()
	r.Output = output
	if outErr != nil {
		r.Notes = append(r.Notes, "the whole output could not be kept: "+outErr.Error())
	}
	if err != nil {
		return contract.Errorf(v1.Error_unavailable, "the sandbox: %v", err)
	}
	r.Usage = &v1.Usage{CpuMs: float64(exit.CPU.Microseconds()) / 1000, PeakMemoryBytes: exit.PeakMemory}
	if exit.Killed > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d processes that the command left behind were ended", exit.Killed))
	}
	s.readOutput(r)
	judgeExit(ctx, exit, l.step, c.Timeout, r)
	r.Execs, r.ExecsTotal = exit.Execs, uint32(exit.ExecsTotal)
	judgeExecs(r)
	if r.Status == v1.Status_failed && len(hidden) > 0 {
		r.Notes = append(r.Notes, saysHidden(hidden))
	}
	return nil
}

// play runs a command. Where the sandbox has no overlay, it works in the tree
// itself, and what it did is taken into the transaction afterwards.
func (s *session) play(ctx context.Context, c sandbox.Command, tx *workspace.Tx) (*sandbox.Exit, error) {
	if tx == nil || !s.sandbox.Direct() {
		return s.sandbox.Run(ctx, c)
	}
	if len(c.Lower) > 0 {
		return nil, contract.Errorf(v1.Error_unavailable, "a staged session needs an overlay, which is not to be had here")
	}
	if err := tx.Expose(ctx); err != nil {
		if ctx.Err() != nil {
			return &sandbox.Exit{Cancelled: true}, nil
		}
		return nil, err
	}
	exit, err := s.sandbox.Run(ctx, c)
	return exit, errors.Join(err, tx.Gather())
}

// judgeExit turns how a command ended into a status.
func judgeExit(ctx context.Context, exit *sandbox.Exit, step *v1.Step, timeout time.Duration, r *v1.StepResult) {
	code := int32(exit.Code)
	r.ExitCode, r.Signal, r.Limit = &code, exit.Signal, exit.Limit
	wanted := step.GetExpect().GetExitCode()
	switch {
	case context.Cause(ctx) == errOutput:
		r.Limit = "output"
		r.Status = v1.Status_failed
		r.Error = contract.Errorf(v1.Error_exit, "printed more than %d bytes and was ended", uint64(artifact.MaxOutput)).Proto()
	case exit.Limit == "disk":
		r.Status = v1.Status_error
		r.Error = contract.Errorf(v1.Error_too_large, "wrote more to the disk than a step may").WithHint("nothing of it was put in place; what is in /tmp stays until the session ends").Proto()
	case exit.TimedOut:
		r.Limit = "time"
		r.Status = v1.Status_timed_out
		r.Error = contract.Errorf(v1.Error_timeout, "timed out after %v and was ended, with all that it had started", timeout).
			WithHint("give a larger timeout_s").Proto()
	case exit.Cancelled:
		r.Status = v1.Status_cancelled
		r.Error = contract.Errorf(v1.Error_cancelled, "was cancelled, with all that it had started").Proto()
	case exit.Signal == "" && code == wanted:
		r.Status = v1.Status_ok
	default:
		r.Status = v1.Status_failed
		msg := fmt.Sprintf("exit code %d", code)
		if exit.Signal != "" {
			msg = "ended by " + exit.Signal
		}
		if exit.Limit != "" {
			msg += ", at the limit on " + exit.Limit
		}
		r.Error = contract.Errorf(v1.Error_exit, "%s", msg).Proto()
	}
}

// collect reads a command's output on a goroutine; call what it returns for the end of it.
func (s *session) collect(l *live, out *os.File, cancel context.CancelCauseFunc) func() (*v1.Output, error) {
	growPipe(out)
	step := l.step
	budget := defaultOutput
	if n := int(step.GetExpect().GetMaxOutputBytes()); n > 0 {
		budget = min(max(n, 64), maxOutputText)
	}
	o := artifact.NewOutput(s.store, budget)
	l.mu.Lock()
	l.output = o
	l.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var stream artifact.Stream
		var shown uint64
		err := o.Copy(out, func(b []byte) {
			l.printed(b)
			if shown >= streamedOutput {
				return
			}
			if text := stream.Next(b[:min(len(b), streamedOutput)]); text != "" {
				s.event(&v1.Event{StepId: step.StepId, Event: &v1.Event_Output{Output: &v1.OutputChunk{Offset: shown, Text: text}}})
				shown += uint64(len(text))
			}
		})
		if errors.Is(err, io.ErrShortBuffer) {
			cancel(errOutput)
			out.Close()
		}
	}()
	return func() (*v1.Output, error) {
		<-done
		return o.Result()
	}
}

// workingDir is a command's folder: inside the workspace, through any links.
func (s *session) workingDir(cwd string) (string, error) {
	root := s.x.cfg.Workspace
	dir := cwd
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	real := s.resolve(dir)
	if !inside(root, real) {
		return "", contract.Errorf(v1.Error_outside_workspace, "%s lies outside the workspace %s", cwd, root).WithField("args.cwd")
	}
	rel, err := filepath.Rel(root, real)
	if err != nil {
		return "", err
	}
	tree, err := s.ws.Tree()
	if err != nil {
		return "", contract.Errorf(v1.Error_unavailable, "the workspace: %v", err)
	}
	switch info, err := tree.Stat(filepath.ToSlash(rel)); {
	case err != nil:
		return "", contract.Errorf(v1.Error_not_found, "the folder %s is not there", cwd).WithField("args.cwd")
	case !info.IsDir():
		return "", contract.Errorf(v1.Error_invalid, "%s is not a folder", cwd).WithField("args.cwd")
	}
	return real, nil
}
