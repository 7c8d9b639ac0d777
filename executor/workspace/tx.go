package workspace

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// Tx is one step on its way: nothing of it is in the user's tree before Land.
type Tx struct {
	w      *Workspace
	name   string
	dir    string
	marker marker
	staged stagedEdits
	plan   *plan
	tree   *Tree // of a staged session: what the step sees below its own folder
	stack  int   // and how many layers there were
	apply  *application
}

// marker says, in active/, that a layer is under way. What changed in the tree
// after Stamp changed after the step began.
type marker struct {
	Step  string `json:"step"`
	Stamp int64  `json:"stamp,omitempty"`
	// Exposed: a command works in the tree itself, and the mirror has what was there.
	Exposed bool `json:"exposed,omitempty"`
	Apply   bool `json:"apply,omitempty"` // it takes staged changes to the user's folder
}

// stagedEdits is what an upper folder cannot say on every system.
type stagedEdits struct {
	Deleted map[string]bool `json:"deleted,omitempty"`
	Based   map[string]bool `json:"based,omitempty"` // existed when its edit was staged
}

// Begin starts the transaction of a step.
func (w *Workspace) Begin(stepID string) (*Tx, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, err := w.newTx(stepID, false)
	if err != nil || !w.staged {
		return t, err
	}
	t.stack = len(w.stack())
	if t.tree, err = w.tree(); err != nil {
		w.drop(t.name)
	}
	return t, err
}

func (w *Workspace) newTx(stepID string, apply bool) (*Tx, error) {
	w.next++
	name := fmt.Sprintf("%06d-%s", w.next, safeName(stepID))
	t := &Tx{w: w, name: name, dir: w.layerDir(name), marker: marker{Step: stepID, Apply: apply}}
	t.staged = stagedEdits{Deleted: map[string]bool{}, Based: map[string]bool{}}
	if err := os.Mkdir(t.dir, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Stat(t.dir)
	if err != nil {
		return nil, err
	}
	_, t.marker.Stamp = identity(info)
	if err := w.begin(t); err != nil {
		removeAll(t.dir)
		os.Remove(w.activeName(name))
		return nil, err
	}
	return t, nil
}

func (w *Workspace) begin(t *Tx) error {
	root, err := os.Stat(w.root)
	if err != nil {
		return err
	}
	for _, d := range []string{t.Upper(), t.Work(), filepath.Join(t.dir, "old")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	// The overlay's root shows the mode of its upper folder.
	if err := os.Chmod(t.Upper(), root.Mode()); err != nil {
		return err
	}
	data, err := json.Marshal(t.marker)
	if err != nil {
		return err
	}
	return os.WriteFile(w.activeName(t.name), data, 0o600)
}

// mark writes the marker again.
func (t *Tx) mark() error { return writeDurable(t.w.activeName(t.name), t.marker) }

func (w *Workspace) activeName(name string) string { return filepath.Join(w.state, "active", name) }

func safeName(step string) string {
	s := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, step)
	return s[:min(len(s), 64)]
}

// Upper is the folder that an overlay over the root writes to.
func (t *Tx) Upper() string { return filepath.Join(t.dir, "upper") }

// Lower is the folders between the user's and Upper, the newest first.
func (t *Tx) Lower() []string {
	if t.tree == nil {
		return nil
	}
	return t.tree.Layers()
}

// below is where the version before of a path is, if there is one.
func (t *Tx) below(p string) string {
	if t.tree == nil {
		return t.w.at(p)
	}
	if real := t.tree.real(p); real != "" {
		return real
	}
	return filepath.Join(t.dir, "nothing")
}

// Work is that overlay's work folder.
func (t *Tx) Work() string { return filepath.Join(t.dir, "work") }

// Changes says exactly what the step changes. All of it is listed, so that a
// policy can judge it whole.
func (t *Tx) Changes() (*v1.ChangeSet, error) {
	p, err := t.scan()
	if err != nil {
		return nil, err
	}
	if t.apply != nil {
		t.apply.choose(p)
	}
	t.plan = p
	return p.changeSet(t.dir), nil
}

// Discard drops the step and all that it wrote.
func (t *Tx) Discard() error {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	if t.marker.Exposed { // what it did could not be gathered
		if err := t.w.recoverExposed(); err != nil {
			return err
		}
	}
	return t.w.drop(t.name)
}

// drop first takes a layer's name away, so that a half removed one is never
// taken for a whole one.
func (w *Workspace) drop(name string) error {
	gone := filepath.Join(w.state, "layers", "drop-"+name)
	if err := os.Rename(w.layerDir(name), gone); err != nil && !os.IsNotExist(err) {
		return err
	}
	boundary("drop")
	if err := os.Remove(w.activeName(name)); err != nil && !os.IsNotExist(err) {
		return err
	}
	return removeAll(gone)
}

func outside(path string) error {
	return contract.Errorf(v1.Error_outside_workspace, "%s lies outside the workspace", path)
}
