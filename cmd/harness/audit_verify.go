package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"harness/executor/audit"
	"harness/planner/session"
)

type auditVerify struct {
	Session string `help:"Only this session." placeholder:"ID"`
	JSON    bool   `name:"json" help:"As JSON, one log a line."`
}

func (c *auditVerify) Run() error {
	key, err := audit.ReadKey(executorDir())
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("there is no audit log here")
	}
	if err != nil {
		return err
	}
	witnesses, err := auditWitnesses(c.Session)
	if err != nil {
		return err
	}
	sessions, err := audit.Sessions(executorDir())
	if err != nil {
		return err
	}
	for _, id := range sessions {
		if _, ok := witnesses[id]; !ok && (c.Session == "" || c.Session == id) {
			witnesses[id] = nil
		}
	}
	bad := 0
	for _, id := range slices.Sorted(maps.Keys(witnesses)) {
		r, err := audit.Verify(audit.Dir(executorDir(), id), id, key.Public(), witnesses[id])
		if err != nil {
			return err
		}
		if len(r.Findings) > 0 {
			bad++
		}
		if c.JSON {
			if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
				return err
			}
			continue
		}
		auditReport(r)
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d logs are not as they were written", bad, len(witnesses))
	}
	return nil
}

func auditReport(r *audit.Report) {
	verdict := "clean"
	if len(r.Findings) > 0 {
		verdict = "DAMAGED"
	}
	fmt.Printf("%s: %s: %d lines, %d signed, held against %d heads that the session log saw\n", r.Session, verdict, r.Lines, r.Signed, r.Witness)
	for _, f := range r.Findings {
		fmt.Printf("  line %d %s: %s\n", f.Line, f.Problem, f.Text)
	}
}

// auditWitnesses is the heads that the planner's session logs saw, by session.
func auditWitnesses(only string) (map[string][]string, error) {
	store, err := session.Open(sessionsDir())
	if err != nil {
		return nil, err
	}
	defer store.Close()
	list, err := store.List()
	if err != nil {
		return nil, err
	}
	heads := map[string][]string{}
	for _, m := range list {
		events, err := store.Read(m.ID)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			var d struct {
				Item struct {
					Result struct {
						Head string `json:"audit_head"`
					}
				}
			}
			if json.Unmarshal(e.Data, &d) != nil {
				continue
			}
			// A fork shares its parent's results: the head says whose log it is.
			if id := audit.SessionOf(d.Item.Result.Head); id != "" && (only == "" || only == id) {
				heads[id] = append(heads[id], d.Item.Result.Head)
			}
		}
	}
	return heads, nil
}
