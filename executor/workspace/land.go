package workspace

import (
	"encoding/json"
	"os"
	"path/filepath"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// Land makes the plan durable and puts the step in place. After an error
// nothing of it is. Conflicts stay in the layer.
func (t *Tx) Land() error {
	w := t.w
	w.mu.Lock()
	defer w.mu.Unlock()
	p := t.plan
	if p == nil {
		var err error
		if p, err = t.scan(); err != nil {
			return err
		}
	}
	if t.tree != nil {
		return w.landStaged(t, p)
	}
	if t.apply != nil {
		if err := w.rebase(t, p); err != nil {
			return err
		}
	}
	return w.land(t.name, p, false)
}

// land puts a plan in place. A conflict that the step's result does not name
// yet stops all of it, unless late ones are taken, too.
func (w *Workspace) land(name string, p *plan, late bool) error {
	if len(p.Entries) == 0 {
		return w.drop(name)
	}
	conflict, err := w.verify(p)
	if err != nil {
		return err
	}
	p.Phase = landing
	if conflict != nil && !late {
		for _, e := range p.Entries {
			e.At = atOther
		}
		if err := w.rest(name, p, kept); err != nil {
			return err
		}
		return contract.Errorf(v1.Error_stale, "%s was %s", conflict.Path, changedSince).
			WithHint("the step's version is kept in %s", w.layerDir(name))
	}
	boundary("plan")
	if err := w.writePlan(name, p); err != nil {
		return err
	}
	boundary("planned")
	return w.finishLanding(name, p)
}

// verify turns entries whose path is no longer what it was into conflicts, and
// says the first.
func (w *Workspace) verify(p *plan) (first *entry, err error) {
	for _, e := range p.Entries {
		if e.Reason != "" || e.Shell {
			continue
		}
		ok, err := e.Before.holds(w.at(e.Path), e.Whole)
		if err != nil {
			return nil, err
		}
		if !ok {
			e.Reason = changedSince
			if first == nil {
				first = e
			}
		}
	}
	return first, nil
}

func (w *Workspace) finishLanding(name string, p *plan) error {
	s := &swap{w: w, name: name, dir: w.layerDir(name), forward: true}
	all := func(*entry) bool { return true }
	if err := s.run(p, all); err != nil {
		if back := w.takeBack(name, p); back != nil {
			return back
		}
		return err
	}
	boundary("swapped")
	event := kept
	for _, e := range p.Entries {
		if e.Reason == "" && e.At != atOther {
			e.At = atNew
			if !e.Shell {
				event = landed
			}
		}
	}
	return w.rest(name, p, event)
}

// takeBack ends a landing that was cut or failed with the tree as before it. A
// version that could not go back, since somebody else's files are in its place,
// stays in the layer.
func (w *Workspace) takeBack(name string, p *plan) error {
	s := &swap{w: w, name: name, dir: w.layerDir(name)}
	s.clean(p)
	if err := s.run(p, func(*entry) bool { return true }); err != nil {
		return err
	}
	for _, e := range p.Entries {
		if e.At == atOther && e.Before != nil && exists(filepath.Join(s.dir, e.Old)) {
			return w.rest(name, p, kept)
		}
	}
	return w.drop(name)
}

// rest records what is in the tree now, so that a later change by somebody
// else is seen, and ends the layer's activity.
func (w *Workspace) rest(name string, p *plan, event string) error {
	for _, e := range p.Entries {
		is := e.After
		if event == undone {
			is = e.Before
		}
		if e.Reason != "" || e.At == atOther || is == nil {
			continue
		}
		err := within(w.at(e.Path), func() error {
			now, _, err := look(w.at(e.Path))
			if now != nil {
				is.Ino, is.MTime, is.CTime = now.Ino, now.MTime, now.CTime
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	p.Phase = resting
	if err := w.writePlan(name, p); err != nil {
		return err
	}
	boundary("rested")
	if err := w.record(event, name, p.Step); err != nil {
		return err
	}
	boundary("recorded")
	if event == landed && p.Base != "" && !w.knows(p.Base) {
		if err := w.record(base, p.Base, p.Step); err != nil {
			return err
		}
		boundary("based")
	}
	removeAll(filepath.Join(w.layerDir(name), "work"))
	err := os.Remove(w.activeName(name))
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// Recover finishes what a crash cut: a landing goes forward where committed
// says that the step's outcome stands, else back; an undo or redo is
// completed; stray transactions are removed.
func (w *Workspace) Recover(committed func(stepID string) bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	layers, err := filepath.Glob(filepath.Join(w.state, "layers", "drop-*"))
	if err != nil {
		return err
	}
	for _, d := range layers {
		if err := removeAll(d); err != nil {
			return err
		}
	}
	active, err := os.ReadDir(filepath.Join(w.state, "active"))
	if err != nil {
		return err
	}
	for _, a := range active {
		if err := w.recoverLayer(a.Name(), committed); err != nil {
			return err
		}
	}
	return w.recoverRestore()
}

func (w *Workspace) recoverLayer(name string, committed func(string) bool) error {
	data, err := os.ReadFile(w.activeName(name))
	if err != nil {
		return err
	}
	t := &Tx{w: w, name: name, dir: w.layerDir(name)}
	if json.Unmarshal(data, &t.marker) != nil || !exists(t.dir) {
		return w.drop(name)
	}
	if t.marker.Exposed {
		if err := w.recoverExposed(); err != nil {
			return err
		}
		return w.drop(name)
	}
	p, err := w.readPlan(name)
	switch {
	case err == nil && p.Staged:
		return w.restStaged(name, p)
	case err == nil && p.Phase == resting:
		event := kept
		for _, e := range p.Entries {
			if e.At == atNew && !e.Shell {
				event = landed
			}
		}
		return w.rest(name, p, event)
	case err == nil && committed(t.marker.Step):
		(&swap{w: w, name: name, dir: t.dir}).clean(p)
		return w.finishLanding(name, p)
	case err == nil:
		return w.takeBack(name, p)
	case !os.IsNotExist(err):
		return err
	case !committed(t.marker.Step):
		return w.drop(name)
	}
	if data, err := os.ReadFile(filepath.Join(t.dir, "staged.json")); err == nil {
		if err := json.Unmarshal(data, &t.staged); err != nil {
			return err
		}
	}
	if t.marker.Apply {
		return w.drop(name) // nothing of it is in place, and all is staged still
	}
	if w.staged {
		if t.tree, err = w.tree(); err != nil {
			return err
		}
		t.stack = len(w.stack())
	}
	if p, err = t.scan(); err != nil {
		return err
	}
	if w.staged {
		return w.landStaged(t, p)
	}
	return w.land(name, p, true)
}
