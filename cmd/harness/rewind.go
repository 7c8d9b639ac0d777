package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/planner/session"
	"harness/surface/terminal"
)

// rewindCmd goes back to where things stood when a step had ended: the folder,
// the conversation, or both. Without a step it lists them.
type rewindCmd struct {
	which
	Code   bool   `help:"Only the files." xor:"part"`
	Talk   bool   `help:"Only the conversation." xor:"part"`
	DryRun bool   `help:"Only list what would change."`
	Step   string `arg:"" optional:"" help:"The step, by number or id, after which all is taken back; 0 is the beginning."`
}

func (c *rewindCmd) Run() error {
	store, err := session.Open(sessionsDir())
	if err != nil {
		return err
	}
	id, _, err := c.find(store)
	if err != nil {
		return err
	}
	log, err := store.Read(id)
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	steps := session.Steps(session.Line(log))
	if c.Step == "" {
		return listSteps(steps)
	}
	at, err := findStep(steps, c.Step)
	if err != nil {
		return err
	}
	c.Session = id
	s, err := c.code(log, at)
	if err != nil || c.DryRun || c.Code {
		return err
	}
	if s == nil {
		if store, err = session.Open(sessionsDir()); err != nil {
			return err
		}
		if s, err = store.Resume(id); err != nil {
			return err
		}
	}
	note := "[The user took the conversation back to this point, and the files to how they were then.]"
	if c.Talk {
		note = "[The user took the conversation back to this point. The files are as later steps left them: read them again before you change them.]"
	}
	if _, err = s.Append(session.Rewound, session.RewoundData{ToSeq: at.Ended, Step: c.Step, Note: note}); err == nil {
		fmt.Printf("the conversation is back at %s; go on with: harness -r %s \"what to do\"\n", name(at), id)
	}
	return err
}

// code takes back what the steps after one changed.
func (c *rewindCmd) code(log []session.Event, at *session.Step) (*session.Session, error) {
	later := changedAfter(log, at)
	if c.Talk || len(later) == 0 {
		return nil, nil
	}
	s, r, err := c.do(contract.Restore, map[string]any{"steps": later, "dry_run": c.DryRun})
	if err != nil {
		return nil, err
	}
	said := c.said(r, "undone", c.DryRun)
	if c.Code && !c.DryRun {
		return s, errors.Join(c.noteFor(s, "undone"), said)
	}
	return s, said
}

// changedAfter is the steps that changed the folder after one had ended, also
// those that the conversation has forgotten.
func changedAfter(log []session.Event, at *session.Step) []any {
	var ids []any
	for _, s := range session.Steps(log) {
		if s.Began > at.Ended && s.Result.GetChanges().GetTotal() > 0 {
			ids = append(ids, s.StepId)
		}
	}
	return ids
}

// findStep finds a step by its number, from 1, or its id; 0 is the beginning.
func findStep(steps []*session.Step, want string) (*session.Step, error) {
	n, err := strconv.Atoi(want)
	if err == nil && n == 0 {
		return &session.Step{}, nil
	}
	for i, s := range steps {
		if (s.StepId == want || err == nil && i+1 == n) && s.Result != nil {
			return s, nil
		}
	}
	return nil, &exit{42, fmt.Errorf("no step %s ended in this conversation, which has %d; harness rewind lists them", want, len(steps))}
}

func name(s *session.Step) string {
	if s.Step == nil {
		return "the beginning"
	}
	return "step " + s.StepId
}

func listSteps(steps []*session.Step) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "N\tSTEP\tSTATUS\tCHANGED\tWHAT")
	for i, s := range steps {
		status := s.Result.GetStatus()
		if s.Result == nil {
			status = v1.Status_running
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%s\n", i+1, s.StepId, status, s.Result.GetChanges().GetTotal(), what(s))
	}
	return w.Flush()
}

// what a step does, in a line.
func what(s *session.Step) string {
	text := s.Action
	for _, arg := range []string{"cmd", "path", "pattern"} {
		if v := s.Args.GetFields()[arg].GetStringValue(); v != "" {
			text += " " + v
			break
		}
	}
	short := []rune(strings.ReplaceAll(terminal.Safe(text), "\n", " "))
	if len(short) > 70 {
		short = append(short[:70], '…')
	}
	return string(short)
}
