package workspace

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// Restore says what to take back: the last step, ToStep and all later ones, the
// earliest of Steps that is in place and all later ones, or All of the session.
// Redo puts back what the last undo took.
type Restore struct {
	ToStep            string
	Steps             []string
	All, Redo, DryRun bool
}

// journey is a Restore under way, in restore.json.
type journey struct {
	Redo   bool     `json:"redo"`
	Layers []string `json:"layers"`
}

// Restore undoes or redoes steps, and says which and what changed. A path that
// somebody else changed since is left and named as a conflict.
func (w *Workspace) Restore(r Restore) (steps []string, cs *v1.ChangeSet, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	todo, err := w.choose(r)
	if err != nil {
		return nil, nil, err
	}
	if len(todo) == 0 {
		return nil, &v1.ChangeSet{}, nil
	}
	j := journey{Redo: r.Redo}
	for _, l := range todo {
		j.Layers = append(j.Layers, l.name)
		steps = append(steps, l.step)
	}
	name := filepath.Join(w.state, "restore.json")
	if !r.DryRun {
		boundary("journey")
		if err := writeDurable(name, j); err != nil {
			return nil, nil, err
		}
	}
	t := &turning{w: w, j: j, dry: r.DryRun, cs: &v1.ChangeSet{}, turned: map[string]bool{}}
	for _, l := range todo {
		if err := t.turn(l); err != nil {
			return nil, nil, contract.Errorf(v1.Error_unavailable, "step %s: %v", l.step, err).
				WithHint("the rest is completed at the next start")
		}
	}
	t.cs.Total = uint32(len(t.cs.Changes))
	if r.DryRun {
		return steps, t.cs, nil
	}
	return steps, t.cs, os.Remove(name)
}

// choose lists the layers in the order in which they turn.
func (w *Workspace) choose(r Restore) (todo []*layer, err error) {
	if r.Redo {
		return w.chooseRedo()
	}
	last := 0 // how many of the newest layers Steps take
	for i := len(w.layers) - 1; i >= 0; i-- {
		l := w.layers[i]
		if l.state != landed && l.state != staged {
			continue
		}
		todo = append(todo, l)
		if slices.Contains(r.Steps, l.step) {
			last = len(todo)
		}
		if len(r.Steps) > 0 {
			continue
		}
		if r.ToStep == "" && !r.All || l.step == r.ToStep {
			return todo, nil
		}
	}
	switch {
	case len(r.Steps) > 0:
		return todo[:last], nil
	case r.ToStep != "":
		return nil, contract.Errorf(v1.Error_not_found, "no step %s is in place", r.ToStep).WithField("args.to_step")
	case len(todo) == 0:
		return nil, contract.Errorf(v1.Error_not_found, "there is nothing to undo").WithHint("no step of this session changed a file")
	}
	return todo, nil
}

// chooseRedo finds the layers of the last undo, the oldest first.
func (w *Workspace) chooseRedo() ([]*layer, error) {
	for _, l := range w.layers {
		if l.state != undone && l.state != dropped {
			continue
		}
		batch, err := w.batchOf(l)
		if err != nil {
			return nil, err
		}
		var todo []*layer
		for _, o := range w.layers {
			if o.state != undone && o.state != dropped {
				continue
			}
			b, err := w.batchOf(o)
			if err != nil {
				return nil, err
			}
			if b == batch {
				todo = append(todo, o)
			}
		}
		return todo, nil
	}
	return nil, contract.Errorf(v1.Error_not_found, "there is nothing to redo").
		WithHint("an undone step can be redone until a new step changes something")
}

// batchOf names the undo that took a layer.
func (w *Workspace) batchOf(l *layer) (string, error) {
	p, err := w.readPlan(l.name)
	if err != nil {
		return "", err
	}
	return p.Batch, nil
}

// turning is a Restore on its way through the layers.
type turning struct {
	w      *Workspace
	j      journey
	dry    bool
	cs     *v1.ChangeSet
	turned map[string]bool // paths that a layer before this one turns, in a dry run
}

// turn takes one layer out of the tree or puts it back.
func (t *turning) turn(l *layer) error {
	w, redo := t.w, t.j.Redo
	p, err := w.readPlan(l.name)
	if err != nil {
		return err
	}
	if p.Staged {
		return t.turnStaged(l, p)
	}
	at, next, event, phase := atNew, atOld, undone, undoing
	if redo {
		at, next, event, phase = atOld, atNew, landed, redoing
	}
	if p.Phase == resting {
		if err := t.check(l, p, at); err != nil || t.dry {
			return err
		}
		p.Phase, p.Batch = phase, t.j.Layers[0]
		if err := w.writePlan(l.name, p); err != nil {
			return err
		}
		boundary("turning")
	}
	s := &swap{w: w, name: l.name, dir: w.layerDir(l.name), forward: redo}
	var turned []*entry
	for _, e := range p.Entries {
		if e.At == at {
			turned = append(turned, e)
		}
	}
	if err := s.run(p, func(e *entry) bool { return e.At == at }); err != nil {
		return err
	}
	boundary("turned")
	for _, e := range turned {
		if e.At == at {
			e.At = next
			if e.Reason == "" && !e.Shell {
				t.say(e)
			}
		} else if !e.Shell {
			t.conflict(l, e, "other files are in it, or its folder is gone")
		}
	}
	return w.rest(l.name, p, event)
}

// check leaves out what somebody else changed since.
func (t *turning) check(l *layer, p *plan, at string) error {
	for _, e := range p.Entries {
		if e.Reason != "" || e.At != at || e.Shell {
			continue
		}
		is, whole := e.After, false
		if t.j.Redo {
			is, whole = e.Before, e.Whole
		}
		ok := t.turned[e.Path]
		if !ok {
			var err error
			if ok, err = is.holds(t.w.at(e.Path), whole); err != nil {
				return err
			}
		}
		if !ok {
			t.conflict(l, e, "changed by somebody else since the step")
			e.At = atOther
			continue
		}
		if t.dry {
			t.turned[e.Path] = true
			for _, b := range e.Below {
				t.turned[b.Path] = true
			}
			t.say(e)
		}
	}
	return nil
}

func (t *turning) say(e *entry) {
	t.cs.Changes = append(t.cs.Changes, e.change(t.j.Redo))
	if t.j.Redo {
		t.cs.Changes = append(t.cs.Changes, e.Below...)
		return
	}
	t.cs.Changes = append(t.cs.Changes, e.back()...)
}

func (t *turning) conflict(l *layer, e *entry, reason string) {
	c := &v1.Conflict{Path: e.Path, Reason: reason}
	store := e.Old
	if t.j.Redo {
		store = e.New
	}
	if store = filepath.Join(t.w.layerDir(l.name), store); exists(store) {
		c.Kept = store
	}
	t.cs.Conflicts = append(t.cs.Conflicts, c)
}

// recoverRestore completes an undo or redo that was cut.
func (w *Workspace) recoverRestore() error {
	name := filepath.Join(w.state, "restore.json")
	data, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var j journey
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	event := undone
	if j.Redo {
		event = landed
	}
	t := &turning{w: w, j: j, cs: &v1.ChangeSet{}, turned: map[string]bool{}}
	for _, n := range j.Layers {
		for _, l := range w.layers {
			if l.name != n || l.state == event || l.state == map[string]string{undone: dropped, landed: staged}[event] {
				continue
			}
			p, err := w.readPlan(n)
			if err != nil {
				return err
			}
			(&swap{w: w, name: n, dir: w.layerDir(n)}).clean(p)
			if err := t.turn(l); err != nil {
				return err
			}
		}
	}
	return os.Remove(name)
}
