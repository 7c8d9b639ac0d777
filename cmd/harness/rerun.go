package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/planner/session"
	"harness/surface/terminal"
)

// rerun is an exact replay: the model's part comes from the log, the steps are real.
func (c *replayCmd) rerun(p *past, n *now) error {
	x, stop, err := startExecutor(n.dir, c.policyFlags)
	if err != nil {
		return err
	}
	defer stop()
	if _, err := open(context.Background(), x, stop, &v1.OpenRequest{SessionId: n.id, Planner: version}); err != nil {
		return err
	}
	return n.steps(x, p, p.steps)
}

// steps runs recorded steps, tells of those from the cut on how they compare,
// and notes for the model where they differ.
func (n *now) steps(x contract.Executor, p *past, steps []*session.Step) error {
	r := &rerun{x: x, id: n.id, was: p.Workspace, now: n.dir}
	differ, ran := 0, 0
	var then, today time.Duration
	for i, s := range steps {
		if i < n.from {
			continue
		}
		if s.SessionId != p.ID || s.Mode == v1.Step_async || s.Action == contract.CancelStep || s.Action == contract.ReadOutput || s.Action == contract.WriteStdin {
			if i < p.first {
				continue
			}
			fmt.Printf("%3d left out   %s\n", i+1, what(s))
			continue
		}
		got, err := r.step(s)
		if err != nil {
			return err
		}
		diffs := r.compare(s.Result, got)
		if len(diffs) > 0 {
			n.notes = append(n.notes, fmt.Sprintf("Run again, the step %s came out otherwise: %s", what(s), strings.Join(diffs, "; ")))
		}
		if i < p.first {
			continue
		}
		ran++
		then += wall(s.Result)
		today += wall(got)
		word := "same"
		if len(diffs) > 0 {
			word = "differs"
			differ++
		}
		fmt.Printf("%3d %-8s %7s, was %7s  %s\n", i+1, word, short(wall(got)), short(wall(s.Result)), what(s))
		for _, d := range diffs {
			fmt.Println("             ", terminal.Safe(d))
		}
	}
	if ran > 0 {
		fmt.Printf("%d of %d steps differ; %s in steps, was %s\n", differ, ran, short(today), short(then))
	}
	if differ > 0 {
		return &exit{1, nil}
	}
	return nil
}

// short is a time in three digits or so.
func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
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
