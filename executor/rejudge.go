package executor

import (
	"os"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/policy"
)

// Rejudge says what a policy makes of recorded steps and of what they changed,
// as on a machine with a whole sandbox. Nothing runs.
func Rejudge(o policy.Options, steps []*v1.Step, results []*v1.StepResult) ([]*v1.Decision, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/nonexistent"
	}
	o.Home = home
	p, err := policy.Load(o)
	if err != nil {
		return nil, err
	}
	s := &session{x: &Executor{cfg: Config{Workspace: o.Workspace}, home: home}, policy: p}
	list := make([]*v1.Decision, len(steps))
	for i, step := range steps {
		var args proto.Message
		if args, err = contract.Validate(step); err != nil {
			return nil, err
		}
		list[i] = s.judge(step, args).Decision
		var paths []string
		for _, c := range results[i].GetChanges().GetChanges() {
			if !slices.Contains(strings.Split(c.Path, "/"), ".git") {
				paths = append(paths, s.abs(c.Path))
			}
		}
		if step.Action != contract.RunCommand || len(paths) == 0 {
			continue
		}
		if d := p.Judge(policy.Request{Action: contract.WriteFile, Writes: paths}).Decision; d.Verdict == v1.Decision_deny {
			list[i] = d
		}
	}
	return list, nil
}
