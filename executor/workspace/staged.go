package workspace

import (
	"os"
	"path"
	"path/filepath"
	"slices"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// landStaged puts a step's layer on the stack. What a step beside it changed
// meanwhile is not covered: then all of it is kept apart.
func (w *Workspace) landStaged(t *Tx, p *plan) error {
	if len(p.Entries) == 0 {
		return w.drop(t.name)
	}
	p.Staged = true
	other, err := w.overlaps(t, p)
	if err != nil {
		return err
	}
	if err := t.seal(p); err != nil {
		return err
	}
	for _, e := range p.Entries {
		e.At, e.Stamp = atNew, t.marker.Stamp
		if other != "" {
			e.At = atOther
		}
	}
	boundary("plan")
	p.Phase = resting
	if err := w.writePlan(t.name, p); err != nil {
		return err
	}
	boundary("rested")
	if err := w.restStaged(t.name, p); err != nil || other == "" {
		return err
	}
	return contract.Errorf(v1.Error_stale, "%s was changed by a step that ran at the same time", other).
		WithHint("the step's version is kept in %s", w.layerDir(t.name))
}

func (w *Workspace) restStaged(name string, p *plan) error {
	event := staged
	if slices.ContainsFunc(p.Entries, func(e *entry) bool { return e.At == atOther }) {
		event = kept
	}
	if err := w.record(event, name, p.Step); err != nil {
		return err
	}
	boundary("recorded")
	removeAll(filepath.Join(w.layerDir(name), "work"))
	if err := os.Remove(w.activeName(name)); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// overlaps is a path that both the step and a layer that came since it began
// change, "" if there is none.
func (w *Workspace) overlaps(t *Tx, p *plan) (string, error) {
	stack := w.stack()
	for _, l := range stack[min(t.stack, len(stack)):] {
		q, err := w.readPlan(l.name)
		if err != nil {
			return "", err
		}
		taken := map[string]bool{}
		for _, e := range q.Entries {
			for d := e.Path; d != "."; d = path.Dir(d) {
				// A folder that both only have other things in is none of it.
				taken[d] = taken[d] || d == e.Path
			}
		}
		for _, e := range p.Entries {
			if _, met := taken[e.Path]; met && (taken[e.Path] || e.After == nil || e.After.Type != v1.Change_directory) {
				return e.Path, nil
			}
			for d := path.Dir(e.Path); d != "."; d = path.Dir(d) {
				if taken[d] && !isNewFolder(q, d) {
					return e.Path, nil
				}
			}
		}
	}
	return "", nil
}

func isNewFolder(p *plan, path string) bool {
	for _, e := range p.Entries {
		if e.Path == path {
			return e.After != nil && e.After.Type == v1.Change_directory
		}
	}
	return false
}

// seal makes the upper folder a layer that says what the plan says and nothing
// more: what the step touched and left as it was would hide later edits of the
// user's, and what an edit deleted needs a mark.
func (t *Tx) seal(p *plan) error {
	changed := map[string]bool{}
	for _, e := range p.Entries {
		changed[e.Path] = e.Reason == ""
	}
	for d := range t.staged.Deleted {
		if t.covered(d) {
			continue
		}
		info, err := os.Lstat(t.upper(d))
		switch {
		case err == nil && info.IsDir():
			err = setOpaque(t.upper(d))
		case os.IsNotExist(err) || isNotDir(err):
			if err = t.parents(d); err == nil {
				err = makeWhiteout(t.upper(d))
			}
		}
		if err != nil {
			return err
		}
	}
	boundary("sealing")
	return t.prune("", changed, false)
}

// covered says whether a deletion above already takes p.
func (t *Tx) covered(p string) bool {
	for d := path.Dir(p); d != "."; d = path.Dir(d) {
		if t.staged.Deleted[d] {
			return true
		}
	}
	return false
}

// prune goes through a folder; alone means that nothing shows through it, so
// that what the step left as it was must stay.
func (t *Tx) prune(dir string, changed map[string]bool, alone bool) error {
	at := t.upper(dir)
	info, err := os.Lstat(at)
	if err != nil {
		return err
	}
	if info.Mode()&0o700 != 0o700 {
		if err := os.Chmod(at, info.Mode()|0o700); err != nil {
			return err
		}
		defer os.Chmod(at, info.Mode())
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return err
	}
	for _, d := range entries {
		p := path.Join(dir, d.Name())
		switch {
		case d.IsDir():
			hides := alone || opaque(t.upper(p))
			err = t.prune(p, changed, hides)
			if err == nil && !changed[p] && !hides {
				os.Remove(t.upper(p)) // where nothing is left in it
			}
		case !changed[p] && !alone:
			err = os.Remove(t.upper(p))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// turnStaged takes a layer off the stack or puts it back: its index line is all
// that changes.
func (t *turning) turnStaged(l *layer, p *plan) error {
	for _, e := range p.Entries {
		if !e.Shell && e.Reason == "" {
			t.say(e)
		}
	}
	if t.dry {
		return nil
	}
	event := dropped
	if t.j.Redo {
		event = staged
	} else {
		p.Batch = t.j.Layers[0]
		if err := t.w.writePlan(l.name, p); err != nil {
			return err
		}
	}
	boundary("turning")
	return t.w.record(event, l.name, l.step)
}

// net is the first change of each path in the stack.
func (w *Workspace) net() (map[string]*entry, error) { return w.netOf(w.stack()) }

func (w *Workspace) netOf(stack []*layer) (map[string]*entry, error) {
	net := map[string]*entry{}
	for _, l := range stack {
		p, err := w.readPlan(l.name)
		if err != nil {
			return nil, err
		}
		for _, e := range p.Entries {
			if e.Shell || e.Reason != "" {
				continue
			}
			if net[e.Path] == nil {
				net[e.Path] = e
			}
			for _, b := range e.Below {
				if net[b.Path] == nil {
					net[b.Path] = &entry{Path: b.Path, Before: &state{Type: b.Type, Mode: b.ModeBefore}, Stamp: e.Stamp}
				}
			}
		}
	}
	return net, nil
}

// stagedPairs pairs the user's folder with what is staged over it.
func (w *Workspace) stagedPairs() (map[string]pair, error) {
	net, err := w.net()
	if err != nil {
		return nil, err
	}
	tree, err := w.tree()
	if err != nil {
		return nil, err
	}
	pairs := map[string]pair{}
	for p := range net {
		pairs[p] = pair{w.at(p), tree.real(p)}
	}
	return pairs, nil
}

// pairLayer pairs what one staged step met with what it left.
func (w *Workspace) pairLayer(found int, p *plan, pairs map[string]pair) error {
	below := &Tree{root: w.dir, dir: w.root}
	for _, l := range w.layers[:found] {
		if l.state == staged || l.state == base {
			below.layers = append([]string{filepath.Join(w.layerDir(l.name), "upper")}, below.layers...)
		}
	}
	for _, e := range p.Entries {
		if e.Shell || e.Reason != "" {
			continue
		}
		v := pair{old: below.real(e.Path)}
		if e.After != nil {
			v.new = filepath.Join(w.layerDir(w.layers[found].name), e.New)
		}
		pairs[e.Path] = v
		for _, b := range e.Below {
			pairs[b.Path] = pair{old: below.real(b.Path)}
		}
	}
	return nil
}
