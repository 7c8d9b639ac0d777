package main

import (
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	v1 "harness/contract/harness/v1"
	"harness/executor"
	"harness/planner/session"
	"harness/surface/terminal"
)

// replayCmd runs the steps that the model asked for again, on a copy of the
// folder as it was, and compares. With a policy it runs nothing: it says which
// steps that policy would allow, ask for or deny.
type replayCmd struct {
	policyFlags
	ID   string `arg:"" help:"The session."`
	From string `help:"Compare only from this step on, by number or id; those before it run too." placeholder:"STEP"`
	Keep bool   `help:"Keep the copy."`
}

func (c *replayCmd) Run() error {
	store, err := session.Open(sessionsDir())
	if err != nil {
		return err
	}
	m, err := store.Get(c.ID)
	if err != nil {
		return &exit{42, fmt.Errorf("session %s: %w", c.ID, err)}
	}
	log, err := store.Read(c.ID)
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	var steps []*session.Step
	for _, s := range session.Steps(log) {
		if s.Result != nil {
			steps = append(steps, s)
		}
	}
	if c.PolicyFile != "" || len(c.Allow)+len(c.Ask)+len(c.Deny) > 0 || c.Auto || c.AskEdits || c.Plan {
		return c.rejudge(m, steps)
	}
	return c.rerun(m, steps)
}

// rejudge prints a line for each step, and how many verdicts are other ones.
func (c *replayCmd) rejudge(m session.Meta, steps []*session.Step) error {
	var list []*v1.Step
	var results []*v1.StepResult
	for _, s := range steps {
		list, results = append(list, s.Step), append(results, s.Result)
	}
	decisions, err := executor.Rejudge(c.options(m.Workspace), list, results)
	if err != nil {
		return &exit{52, err}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "N\tWAS\tNOW\tRULE\tFROM\tWHAT")
	other := 0
	for i, d := range decisions {
		was := results[i].GetDecision().GetVerdict()
		if was != d.Verdict {
			other++
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", i+1, was, d.Verdict, terminal.Safe(d.Rule), d.Source, what(steps[i]))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("%d of %d steps have another verdict\n", other, len(steps))
	return nil
}
