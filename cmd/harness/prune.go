package main

import (
	"fmt"
	"os"
	"slices"
	"time"

	"harness/executor"
	"harness/planner/session"
)

type sessionsPrune struct {
	Older  time.Duration `default:"720h" help:"Those that nothing was added to for so long, as 720h."`
	DryRun bool          `help:"Only list them."`
	IDs    []string      `arg:"" optional:"" name:"id" help:"Exactly these, however old."`
}

func (c *sessionsPrune) Run() error {
	store, err := session.Open(sessionsDir())
	if err != nil {
		return err
	}
	defer store.Close()
	list, err := store.List()
	if err != nil {
		return err
	}
	for _, id := range c.IDs {
		if !slices.ContainsFunc(list, func(m session.Meta) bool { return m.ID == id }) {
			return &exit{42, fmt.Errorf("session %s: %w", id, session.ErrNone)}
		}
	}
	kept := 0
	for _, m := range list { // the newest first, so forks before what they begin with
		named := slices.Contains(c.IDs, m.ID)
		if len(c.IDs) > 0 && !named || len(c.IDs) == 0 && time.Since(m.Updated) < c.Older {
			continue
		}
		if c.DryRun {
			fmt.Println("would be removed:", m.ID)
			continue
		}
		if err := store.Remove(m.ID, func() error { return executor.Remove(executorDir(), m.ID, named) }); err != nil {
			fmt.Fprintf(os.Stderr, "harness: %s stays: %v\n", m.ID, err)
			kept++
			continue
		}
		fmt.Println("removed:", m.ID)
	}
	if kept > 0 && len(c.IDs) > 0 {
		return &exit{1, nil}
	}
	return nil
}
