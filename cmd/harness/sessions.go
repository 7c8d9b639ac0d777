package main

import (
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"

	"harness/planner/session"
	"harness/surface/jsonl"
	"harness/surface/terminal"
)

type sessionsCmd struct {
	List   sessionsList   `cmd:"" default:"1" help:"All sessions, newest first."`
	Show   sessionsShow   `cmd:"" help:"One session's events."`
	Export sessionsExport `cmd:"" help:"Write a session, with its layers, to one file."`
	Import sessionsImport `cmd:"" help:"Read such a file."`
	Prune  sessionsPrune  `cmd:"" help:"Remove old sessions, with what undo would need."`
}

type sessionsList struct {
	JSON bool `name:"json" help:"As JSON."`
}

func (c *sessionsList) Run() error {
	store, err := session.Open(sessionsDir())
	if err != nil {
		return err
	}
	defer store.Close()
	list, err := store.List()
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(list)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tUPDATED\tVERDICT\tSTEPS\tFOLDER\tTASK")
	for _, m := range list {
		task := []rune(terminal.Safe(m.Task))
		if len(task) > 60 {
			task = append(task[:60], '…')
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", m.ID, m.Updated.Format("2006-01-02 15:04"), m.Verdict, m.Steps, terminal.Safe(m.Workspace), string(task))
	}
	return w.Flush()
}

type sessionsShow struct {
	ID   string `arg:"" help:"The session."`
	JSON bool   `name:"json" help:"As JSON, one event a line."`
}

func (c *sessionsShow) Run() error {
	store, err := session.Open(sessionsDir())
	if err != nil {
		return err
	}
	defer store.Close()
	if _, err := store.Get(c.ID); err != nil {
		return &exit{42, fmt.Errorf("session %s: %w", c.ID, err)}
	}
	events, err := store.Read(c.ID)
	if err != nil {
		return err
	}
	var s session.Surface = &terminal.Surface{W: os.Stdout}
	if c.JSON {
		s = &jsonl.Surface{W: os.Stdout}
	}
	for _, e := range events {
		s.Event(e)
		if e.Type == "message.user" || e.Type == "message.assistant" {
			var m struct{ Text string }
			if json.Unmarshal(e.Data, &m) == nil && m.Text != "" && !c.JSON {
				fmt.Printf("%s: %s\n", e.Type[len("message."):], terminal.Safe(m.Text))
			}
		}
	}
	if !c.JSON {
		listArtifacts(events)
	}
	return nil
}

// listArtifacts names what steps gave out, and what their reports of tests say.
func listArtifacts(events []session.Event) {
	for _, s := range session.Steps(events) {
		for _, a := range s.Result.GetArtifacts() {
			fmt.Printf("artifact of %s: %s, %d bytes, %s\n", s.StepId, terminal.Safe(a.Name), a.Size, a.Digest)
		}
		for _, t := range s.Result.GetTests() {
			fmt.Printf("tests of %s: %d passed, %d failed, %d skipped (%s)\n", s.StepId, t.Passed, t.Failed, t.Skipped, terminal.Safe(t.Name))
		}
	}
}
