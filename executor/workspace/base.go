package workspace

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// rebase prepares the stack that is left when the plan has landed: what was not
// applied, and the conflicts.
func (w *Workspace) rebase(t *Tx, p *plan) error {
	gone := map[string]bool{}
	if len(t.apply.Hunks) == 0 {
		conflicts := map[string]bool{}
		for _, e := range p.Entries {
			conflicts[e.Path] = e.Reason != ""
		}
		for q := range t.apply.net {
			gone[q] = wanted(q, t.apply.Paths) && !conflicts[q] && !anyBelow(q, conflicts)
		}
	}
	name, err := w.newBase(p.Step, t.apply.net, gone, false)
	p.Base = name
	return err
}

// anyBelow says whether a set has a path below p.
func anyBelow(p string, set map[string]bool) bool {
	for q, in := range set {
		if in && strings.HasPrefix(q, p+"/") {
			return true
		}
	}
	return false
}

// Discard drops what is staged of paths, of all for none. The layers stay in
// the session's state, but nothing leads back to them.
func (w *Workspace) Discard(stepID string, paths []string) (*v1.ChangeSet, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.staged {
		return nil, contract.Errorf(v1.Error_unsupported, "this session works in the folder itself: nothing is staged").WithHint("harness undo takes its steps back")
	}
	net, err := w.net()
	if err != nil {
		return nil, err
	}
	cs, gone := &v1.ChangeSet{}, map[string]bool{}
	for _, p := range slices.Sorted(maps.Keys(net)) {
		if wanted(p, paths) {
			gone[p] = true
			cs.Changes = append(cs.Changes, &v1.Change{Kind: v1.Change_deleted, Path: p})
		}
	}
	if cs.Total = uint32(len(gone)); cs.Total == 0 {
		return nil, contract.Errorf(v1.Error_not_found, "nothing is staged%s", in(paths)).WithHint("harness diff shows what is")
	}
	name, err := w.newBase(stepID, net, gone, true)
	if err != nil {
		return nil, err
	}
	return cs, w.record(base, name, stepID)
}

// newBase makes a layer of what the stack holds but for the paths that are gone.
func (w *Workspace) newBase(step string, net map[string]*entry, gone map[string]bool, discard bool) (string, error) {
	tree, err := w.tree()
	if err != nil {
		return "", err
	}
	b := &plan{Step: step, Phase: resting, Staged: true}
	for _, p := range slices.Sorted(maps.Keys(net)) {
		if !gone[p] {
			b.Entries = append(b.Entries, &entry{Path: p, Before: net[p].Before, Stamp: net[p].Stamp, At: atNew})
		}
	}
	if len(b.Entries) == 0 {
		return w.makeBase(b, &merge{}, nil)
	}
	return w.makeBase(b, &merge{dirs: tree.layers}, func(upper string) error {
		for _, p := range slices.Backward(slices.Sorted(maps.Keys(gone))) {
			if err := uncover(upper, p, net, gone, discard); err != nil {
				return err
			}
			if !discard && gone[p] && exists(filepath.Join(upper, p)) {
				b.Entries = append(b.Entries, &entry{Path: p, Before: &state{}, Stamp: time.Now().UnixNano(), At: atNew})
			}
		}
		return nil
	})
}

// makeBase makes the layer of a plan; finish may still change its upper folder.
func (w *Workspace) makeBase(b *plan, m *merge, finish func(upper string) error) (string, error) {
	w.next++
	name := fmt.Sprintf("%06d-base", w.next)
	dir := w.layerDir(name)
	if err := removeAll(dir); err != nil {
		return "", err
	}
	upper := filepath.Join(dir, "upper")
	root, err := os.Stat(w.root)
	if err != nil {
		return "", err
	}
	if err := m.into(upper); err != nil {
		return "", err
	}
	if finish != nil {
		if err := finish(upper); err != nil {
			return "", err
		}
	}
	if err := os.Chmod(upper, root.Mode()); err != nil {
		return "", err
	}
	return name, w.writePlan(name, b)
}

// uncover takes a path out of a layer, so that the user's folder shows through.
// Below a folder that hides the user's it stays, until all of that goes.
func uncover(upper, p string, net map[string]*entry, gone map[string]bool, discard bool) error {
	if !gone[p] {
		return nil
	}
	for d, rest := "", p; rest != ""; {
		part, more, _ := strings.Cut(rest, "/")
		d, rest = path.Join(d, part), more
		if at := filepath.Join(upper, d); !opaque(at) {
			continue
		}
		for q := range net {
			if under(q, d) && !gone[q] {
				if discard {
					return contract.Errorf(v1.Error_unsupported, "%s was made anew; %s goes only together with all of it", d, p)
				}
				return nil
			}
		}
		return removeAll(filepath.Join(upper, d))
	}
	at := filepath.Join(upper, p)
	if info, err := os.Lstat(at); err == nil && info.IsDir() {
		os.Remove(at) // unless something else is in it
		return nil
	}
	if err := os.Remove(at); err != nil && !os.IsNotExist(err) && !isNotDir(err) {
		return err
	}
	return nil
}
