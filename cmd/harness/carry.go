package main

import (
	"errors"
	"fmt"
	"os"

	"harness/executor"
	"harness/planner/session"
)

type sessionsExport struct {
	ID  string `arg:"" help:"The session."`
	Out string `short:"o" help:"The file; default: ID.harness." placeholder:"FILE"`
}

func (c *sessionsExport) Run() error {
	store, err := session.Open(sessionsDir())
	if err != nil {
		return err
	}
	defer store.Close()
	texts, err := store.Texts(c.ID)
	if err != nil {
		return &exit{42, err}
	}
	if c.Out == "" {
		c.Out = c.ID + ".harness"
	}
	f, err := os.OpenFile(c.Out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return &exit{42, err}
	}
	err = errors.Join(executor.Export(f, executorDir(), c.ID, texts), f.Close())
	if err != nil {
		return errors.Join(err, os.Remove(c.Out))
	}
	fmt.Println(c.Out)
	return nil
}

type sessionsImport struct {
	File string `arg:"" help:"A bundle that harness sessions export made."`
}

func (c *sessionsImport) Run() error {
	store, err := session.Open(sessionsDir())
	if err != nil {
		return err
	}
	defer store.Close()
	f, err := os.Open(c.File)
	if err != nil {
		return &exit{42, err}
	}
	defer f.Close()
	var m session.Meta
	var events []session.Event
	err = executor.Import(f, executorDir(), func(texts map[string][]byte) (string, error) {
		m, events, err = store.Accept(texts)
		return m.ID, err
	})
	if err != nil {
		return &exit{42, fmt.Errorf("%s: %w", c.File, err)}
	}
	if err := store.Put(m, events); err != nil {
		return err
	}
	fmt.Printf("session %s, %d events, of %s\n", m.ID, len(events), m.Workspace)
	return nil
}
