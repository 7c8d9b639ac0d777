package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor"
	"harness/planner/session"
)

// rerun is an exact replay: the model's part comes from the log, the steps are real.
func (c *replayCmd) rerun(m session.Meta, steps []*session.Step) error {
	first := 0
	if c.From != "" {
		at, err := findStep(steps, c.From)
		if err != nil {
			return err
		}
		first = slices.Index(steps, at)
	}
	base, err := os.MkdirTemp("", "harness-replay-")
	if err != nil {
		return err
	}
	if base, err = filepath.EvalSymlinks(base); err != nil {
		return err
	}
	dir := filepath.Join(base, filepath.Base(m.Workspace))
	if !c.Keep {
		defer os.RemoveAll(base)
	}
	if err := executor.Materialise(executorDir(), m.ID, m.Workspace, dir); err != nil {
		return err
	}
	x, stop, err := startExecutor(dir, c.policyFlags)
	if err != nil {
		return err
	}
	defer stop()
	r := &rerun{x: x, id: "replay_" + rand.Text()[:12], was: m.Workspace, now: dir}
	if _, err := open(context.Background(), x, stop, &v1.OpenRequest{SessionId: r.id, Planner: version}); err != nil {
		return err
	}
	differ := 0
	for i, s := range steps {
		if s.SessionId != m.ID || s.Mode == v1.Step_async || s.Action == contract.CancelStep || s.Action == contract.WriteStdin {
			fmt.Printf("%3d left out   %s\n", i+1, what(s))
			continue
		}
		got, err := r.step(s)
		if err != nil {
			return err
		}
		if i < max(first, 0) {
			continue
		}
		diffs := r.compare(s.Result, got)
		if len(diffs) == 0 {
			fmt.Printf("%3d same       %s\n", i+1, what(s))
			continue
		}
		differ++
		fmt.Printf("%3d differs    %s\n", i+1, what(s))
		for _, d := range diffs {
			fmt.Println("               ", d)
		}
	}
	if c.Keep {
		fmt.Println("the copy:", dir)
	}
	if differ > 0 {
		return &exit{1, fmt.Errorf("%d of %d steps differ", differ, len(steps))}
	}
	return nil
}

// rerun is the way of recorded steps through an executor on another folder.
type rerun struct {
	x        contract.Executor
	id       string
	was, now string // the folder, then and now
}

// step submits a recorded step; a question that was answered then is answered with yes.
func (r *rerun) step(s *session.Step) (*v1.StepResult, error) {
	step := proto.CloneOf(s.Step)
	step.SessionId = r.id
	moveStrings(step.Args, r.was, r.now)
	for {
		got, err := r.x.Submit(context.Background(), step)
		if err != nil || got.Status != v1.Status_awaiting_approval {
			return got, err
		}
		answer := v1.DecideRequest_allow
		if s.Result.Status == v1.Status_denied {
			answer = v1.DecideRequest_deny
		}
		a := got.Approval
		if a.Host != "" && !connected(s.Result, a) {
			answer = v1.DecideRequest_deny
		}
		if _, err := r.x.Decide(context.Background(), &v1.DecideRequest{SessionId: r.id, ApprovalId: a.ApprovalId, Digest: a.Digest, Answer: answer, Surface: "replay"}); err != nil {
			return nil, err
		}
	}
}

// connected is whether a recorded step made the connection that a question is about.
func connected(r *v1.StepResult, a *v1.Approval) bool {
	return slices.ContainsFunc(r.GetConnections(), func(c *v1.Connection) bool {
		return c.Host == a.Host && c.Port == a.Port && c.Refused == nil
	})
}

// moveStrings puts one folder in the place of another in all texts.
func moveStrings(s *structpb.Struct, was, now string) {
	for k, v := range s.GetFields() {
		switch x := v.GetKind().(type) {
		case *structpb.Value_StringValue:
			s.Fields[k] = structpb.NewStringValue(strings.ReplaceAll(x.StringValue, was, now))
		case *structpb.Value_StructValue:
			moveStrings(x.StructValue, was, now)
		}
	}
}

// compare lists in what two results of one step differ.
func (r *rerun) compare(was, now *v1.StepResult) (diffs []string) {
	if was.Status != now.Status {
		diffs = append(diffs, fmt.Sprintf("status %v, was %v: %s", now.Status, was.Status, now.GetError().GetMessage()))
	}
	if was.GetExitCode() != now.GetExitCode() {
		diffs = append(diffs, fmt.Sprintf("exit code %d, was %d", now.GetExitCode(), was.GetExitCode()))
	}
	a, b := changeLines(was), changeLines(now)
	for _, l := range a {
		if !slices.Contains(b, l) {
			diffs = append(diffs, "no more: "+l)
		}
	}
	for _, l := range b {
		if !slices.Contains(a, l) {
			diffs = append(diffs, "new: "+l)
		}
	}
	x := strings.Split(plain(was.GetOutput().GetText()), "\n")
	y := strings.Split(plain(strings.ReplaceAll(now.GetOutput().GetText(), r.now, r.was)), "\n")
	for i := range max(len(x), len(y)) {
		var from, to string
		if i < len(x) {
			from = x[i]
		}
		if i < len(y) {
			to = y[i]
		}
		if from != to {
			diffs = append(diffs, fmt.Sprintf("output, line %d: %.120q, was %.120q", i+1, to, from))
			break
		}
	}
	return diffs
}

var durations = regexp.MustCompile(`\b[0-9]+(\.[0-9]+)?(µs|ms|s)\b|\(cached\)`)

// plain is output without what differs from run to run.
func plain(text string) string { return durations.ReplaceAllString(text, "…") }

func changeLines(r *v1.StepResult) (lines []string) {
	for _, c := range r.GetChanges().GetChanges() {
		lines = append(lines, fmt.Sprintf("%v %s %o %s", c.Kind, c.Path, c.ModeAfter, c.DigestAfter))
	}
	return lines
}
