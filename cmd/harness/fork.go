package main

import (
	"errors"
	"fmt"
	"strings"

	"harness/planner/session"
)

// fork begins a session with another's conversation up to a step; ID may be
// empty for the folder's last session. Where later steps changed the folder the
// fork is a staged one, which has their changes taken out: both go on side by side.
func (c *runCmd) fork(store *session.Store, dir, task, model string) (*session.Session, error) {
	if c.Continue || c.Resume != "" {
		return nil, &exit{2, errors.New("--fork, --continue and --resume exclude one another")}
	}
	id, step, _ := strings.Cut(c.Fork, ":")
	id, from, err := which{Dir: dir, Session: id}.find(store)
	if err != nil {
		return nil, err
	}
	if from != dir {
		return nil, &exit{42, fmt.Errorf("the session %s belongs to %s; add -C %s", id, from, from)}
	}
	log, err := store.Read(id)
	if err != nil {
		return nil, err
	}
	at := &session.Step{Ended: int64(len(log))}
	if step != "" {
		if at, err = findStep(session.Steps(session.Line(log)), step); err != nil {
			return nil, err
		}
	}
	c.from = id
	for _, later := range changedAfter(log, at) {
		c.without = append(c.without, later.(string))
	}
	return store.Fork(id, at.Ended, session.Meta{Workspace: dir, Task: task, Model: model})
}
