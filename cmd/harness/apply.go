package main

import (
	"harness/contract"
)

type applyCmd struct {
	which
	Hunks []uint32 `help:"Only these hunks of one file, by their numbers in harness diff, as 1,3." placeholder:"N,…"`
	Force bool     `help:"Also over what somebody else changed since; undo brings theirs back."`
	Paths []string `arg:"" optional:"" help:"Only these files, folders or globs."`
}

func (c *applyCmd) Run() error {
	hunks := make([]any, len(c.Hunks))
	for i, n := range c.Hunks {
		hunks[i] = n
	}
	return c.move(contract.Apply, map[string]any{"paths": list(c.Paths), "hunks": hunks, "force": c.Force}, "applied")
}

type discardCmd struct {
	which
	Paths []string `arg:"" optional:"" help:"Only these files, folders or globs."`
}

func (c *discardCmd) Run() error {
	return c.move(contract.Discard, map[string]any{"paths": list(c.Paths)}, "discarded")
}

func list(words []string) []any {
	l := make([]any, len(words))
	for i, w := range words {
		l[i] = w
	}
	return l
}

// move takes staged changes somewhere and says so, to the user and the model.
func (w which) move(action string, args map[string]any, done string) error {
	s, r, err := w.do(action, args)
	if err != nil {
		return err
	}
	said := w.said(r, done, false)
	if action == contract.Discard && said == nil {
		return w.noteFor(s, done)
	}
	return said
}
