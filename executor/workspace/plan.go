package workspace

import (
	"encoding/json"
	"os"
	"path/filepath"

	v1 "harness/contract/harness/v1"
)

// entry is one path that a layer changes, and which version the tree has.
type entry struct {
	Path    string       `json:"path"`
	Before  *state       `json:"before,omitempty"`
	After   *state       `json:"after,omitempty"`
	Old     string       `json:"old"`                // where the version before is kept, in the layer
	New     string       `json:"new"`                // where the version after is kept while it is not in the tree
	Whole   bool         `json:"whole,omitempty"`    // before is a folder that goes with all below it
	InPlace bool         `json:"in_place,omitempty"` // the file has other names: they follow
	Shell   bool         `json:"shell,omitempty"`    // a folder that only has to be writable meanwhile
	Reason  string       `json:"reason,omitempty"`   // a conflict at landing: never put in place
	At      string       `json:"at,omitempty"`       // which version the tree has
	Below   []*v1.Change `json:"below,omitempty"`    // what goes with a whole folder
	Stamp   int64        `json:"stamp,omitempty"`    // of a staged change: when the step began
}

const (
	atOld   = "" // the version before
	atNew   = "new"
	atOther = "other" // somebody else's
)

// plan is a layer: what it changes. Phase says which way it is going.
type plan struct {
	Step    string   `json:"step"`
	Phase   string   `json:"phase"`
	Batch   string   `json:"batch,omitempty"` // the undo that took it, named by its first layer
	Staged  bool     `json:"staged,omitempty"`
	Base    string   `json:"base,omitempty"` // what is left of the stack after this was applied
	Entries []*entry `json:"entries"`
}

const (
	landing = "landing"
	undoing = "undoing"
	redoing = "redoing"
	resting = "resting"
)

func (w *Workspace) readPlan(name string) (*plan, error) {
	data, err := os.ReadFile(filepath.Join(w.layerDir(name), "plan.json"))
	if err != nil {
		return nil, err
	}
	p := &plan{}
	return p, json.Unmarshal(data, p)
}

func (w *Workspace) writePlan(name string, p *plan) error {
	return writeDurable(filepath.Join(w.layerDir(name), "plan.json"), p)
}

// changeSet is the plan as it goes into a step's result.
func (p *plan) changeSet(dir string) *v1.ChangeSet {
	cs := &v1.ChangeSet{}
	for _, e := range p.Entries {
		switch {
		case e.Shell:
		case e.Reason != "":
			cs.Conflicts = append(cs.Conflicts, &v1.Conflict{Path: e.Path, Reason: e.Reason, Kept: e.kept(dir)})
		default:
			cs.Changes = append(append(cs.Changes, e.change(true)), e.Below...)
		}
	}
	cs.Total = uint32(len(cs.Changes))
	return cs
}

func (e *entry) kept(dir string) string {
	if e.After == nil {
		return ""
	}
	return filepath.Join(dir, e.New)
}

// change is the entry going forward or back.
func (e *entry) change(forward bool) *v1.Change {
	from, to := e.Before, e.After
	if !forward {
		from, to = to, from
	}
	c := &v1.Change{Path: e.Path, Kind: v1.Change_modified}
	if from == nil {
		c.Kind = v1.Change_created
	} else {
		c.Type, c.ModeBefore, c.SizeBefore = from.Type, from.Mode, uint64(from.Size)
	}
	if to == nil {
		c.Kind = v1.Change_deleted
		return c
	}
	c.Type, c.ModeAfter, c.SizeAfter = to.Type, to.Mode, uint64(to.Size)
	if to.Type == v1.Change_file {
		c.DigestAfter = to.Digest
	}
	return c
}

// back is what goes with a whole folder, the other way.
func (e *entry) back() []*v1.Change {
	var cs []*v1.Change
	for _, b := range e.Below {
		cs = append(cs, &v1.Change{Kind: v1.Change_created, Path: b.Path, Type: b.Type, ModeAfter: b.ModeBefore, SizeAfter: b.SizeBefore})
	}
	return cs
}
