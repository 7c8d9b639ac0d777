package workspace

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// Restore says what to take back, or, with Redo, to put again. The zero value
// is the last step that changed something.
type Restore struct {
	ToStep string // this step and all later ones
	All    bool
	Redo   bool // the reverse of the last undo
	DryRun bool // only say
}

// Restore takes steps back, newest first, or puts the last undone ones again.
// A path that somebody changed since is left as it is and named in the
// conflicts; both versions are kept.
func (w *Workspace) Restore(r Restore) ([]string, *v1.ChangeSet, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	layers, err := w.selected(r)
	if err != nil {
		return nil, nil, err
	}
	var steps []string
	cs := &v1.ChangeSet{}
	for _, l := range layers {
		if err := l.restore(r, cs); err != nil {
			return steps, cs, fmt.Errorf("step %s: %w", l.step, err)
		}
		steps = append(steps, l.step)
	}
	cs.Total = uint32(len(cs.Changes))
	if len(cs.Changes) > maxListed {
		cs.Changes = cs.Changes[:maxListed]
	}
	return steps, cs, nil
}

func (w *Workspace) selected(r Restore) ([]*layer, error) {
	if r.Redo {
		for i, l := range w.layers {
			if l.state == stateUndone && !slices.ContainsFunc(w.layers[i:], func(l *layer) bool { return l.state == stateLanded }) {
				return []*layer{l}, nil
			}
		}
		return nil, contract.Errorf(v1.Error_not_found, "there is nothing to redo").WithHint("a new step after an undo ends what can be redone")
	}
	var landed []*layer
	for _, l := range slices.Backward(w.layers) {
		if l.state != stateLanded {
			continue
		}
		landed = append(landed, l)
		switch {
		case r.ToStep == l.step, r.ToStep == "" && !r.All:
			return landed, nil
		}
	}
	switch {
	case r.ToStep != "":
		return nil, contract.Errorf(v1.Error_not_found, "no step %s that changed something is there to take back", r.ToStep)
	case len(landed) == 0:
		return nil, contract.Errorf(v1.Error_not_found, "there is nothing to undo")
	}
	return landed, nil
}

// restore moves one layer back, or forward again.
func (l *layer) restore(r Restore, cs *v1.ChangeSet) error {
	reasons, err := l.changed()
	if err != nil {
		return err
	}
	var ops []op
	skipped := false
	for i, o := range l.ops {
		if reasons[i] != "" {
			kept := l.pre(o.Path)
			if r.Redo {
				kept = l.source(&o)
			}
			cs.Conflicts = append(cs.Conflicts, &v1.Conflict{Path: o.Path, Reason: reasons[i], Kept: kept})
			skipped = skipped || !o.Skipped
			l.ops[i].Skipped = true
			continue
		}
		ops = append(ops, o)
	}
	for _, o := range ops {
		if !o.Skipped {
			cs.Changes = append(cs.Changes, reversed(&o, l, r.Redo)...)
		}
	}
	if r.DryRun {
		for i := range l.ops {
			l.ops[i].Skipped = l.ops[i].Skipped && reasons[i] == ""
		}
		return nil
	}
	if skipped {
		if err := l.savePlan(); err != nil {
			return err
		}
	}
	if r.Redo {
		if err := l.set(stateRedoing); err != nil {
			return err
		}
		return l.finish(forward, stateLanded)
	}
	if err := l.set(stateUndoing); err != nil {
		return err
	}
	return l.finish(backward, stateUndone)
}

// reversed is what restoring an op does to its path.
func reversed(o *op, l *layer, redo bool) []*v1.Change {
	if redo {
		return o.changes(l)
	}
	back := op{Path: o.Path, Before: o.After, After: o.Before}
	if back.Before == nil && back.After.Mode.IsDir() { // a folder comes back, with all in it
		list := o.changes(l)
		for _, c := range list {
			c.Kind = v1.Change_created
			c.ModeAfter, c.SizeAfter, c.ModeBefore, c.SizeBefore = c.ModeBefore, c.SizeBefore, 0, 0
		}
		return list
	}
	return back.changes(l)
}

// versions are the two files of one path that a diff compares; "" is not there.
type versions struct{ before, after string }

// diffOf is the paths that a step, or every landed step, changed. A file's
// version after a step is what the next step that changed it found, or the tree's.
func (w *Workspace) diffOf(step string) (map[string]versions, error) {
	all := map[string]versions{}
	found := step == ""
	for _, l := range w.layers {
		if l.state != stateLanded {
			continue
		}
		mine := step == "" || l.step == step
		found = found || mine
		if !mine && len(all) == 0 {
			continue
		}
		if err := l.loadPlan(); err != nil {
			return nil, err
		}
		for i := range l.ops {
			for name, old := range l.oldVersions(&l.ops[i]) {
				v, ok := all[name]
				switch {
				case mine && !ok:
					all[name] = versions{before: old, after: filepath.Join(w.root, name)}
				case !mine && ok && v.after == filepath.Join(w.root, name):
					v.after = old
					all[name] = v
				}
			}
		}
	}
	if !found {
		return nil, contract.Errorf(v1.Error_not_found, "no step %s that changed something is in place", step).WithField("args.step")
	}
	return all, nil
}

// oldVersions is where the files that an op replaced are now, by path.
func (l *layer) oldVersions(o *op) map[string]string {
	old := map[string]string{}
	if o.After != nil && !o.After.Mode.IsDir() || o.Before == nil {
		old[o.Path] = ""
	}
	if o.Before == nil || o.Before.Mode.IsDir() && o.After != nil && o.After.Mode.IsDir() {
		return old
	}
	base := l.pre(o.Path)
	filepath.WalkDir(base, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if rel, err := filepath.Rel(base, p); err == nil {
				old[filepath.ToSlash(filepath.Join(o.Path, rel))] = p
			}
		}
		return nil
	})
	return old
}
