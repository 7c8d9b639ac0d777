package main

import (
	"errors"
	"fmt"
	"strings"

	"harness/planner/session"
)

// fork begins a session with another's conversation up to a step; ID may be
// empty for the folder's last session.
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
	if later := changedAfter(log, at); len(later) > 0 {
		return nil, &exit{42, fmt.Errorf("the folder has the changes of %d step(s) after %s; harness rewind --code --session %s %s takes them back first", len(later), step, id, step)}
	}
	return store.Fork(id, at.Ended, session.Meta{Workspace: dir, Task: task, Model: model})
}
