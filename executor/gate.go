package executor

import (
	"fmt"
	"slices"

	v1 "harness/contract/harness/v1"
	"harness/executor/policy"
	"harness/executor/sandbox"
)

// gate judges the programs of a command by the policy of its begin. The shell that the executor itself starts is none of the command's.
func (s *session) gate(argv []string, cmd string) (sandbox.Gate, *sandbox.Suspects) {
	p := s.currentPolicy()
	ours := len(argv) == 3 && argv[0] == shellProgram() && argv[1] == "-c" && argv[2] == cmd
	suspects := sandbox.Suspects(p.Suspects())
	return func(x sandbox.Program) (*v1.Decision, bool) {
		if first := ours; first {
			ours = false
			if slices.Equal(x.Argv, argv) {
				return nil, false
			}
		}
		return p.Exec(policy.Program(x))
	}, &suspects
}

const maxRefusalNotes = 5

// judgeExecs says which programs were refused. A command that failed with one
// refused is denied: nothing of it is put in place.
func judgeExecs(r *v1.StepResult) {
	var first *v1.Decision
	count := 0
	for _, e := range r.Execs {
		if e.Refused == nil {
			continue
		}
		if first == nil {
			first = e.Refused
		}
		if count++; count <= maxRefusalNotes {
			r.Notes = append(r.Notes, fmt.Sprintf("%s was refused at its start: %s (rule %s, from %s)", e.Program, e.Refused.Part, e.Refused.Rule, e.Refused.Source))
		}
	}
	if count > maxRefusalNotes {
		r.Notes = append(r.Notes, fmt.Sprintf("%d programs were refused at their start", count))
	}
	if first != nil && r.Status == v1.Status_failed {
		r.Decision, r.Status = first, v1.Status_denied
		e := denied(first).WithHint("rule %s, from %s; a program that the command started was refused, and nothing of this step was put in place", first.Rule, first.Source)
		r.Error = e.Proto()
	}
}
