// Package workspace makes every changing step a transaction over the user's
// tree, and takes it back again.
//
// A command writes to an overlay's upper folder (Tx.Upper), a file action
// stages edits in the same form. Changes says exactly what the step would
// change, Land puts it in place, by renames, with what was there before moved
// into the layer: undo and redo are the same swap the other way. Costs grow
// with what a step changed, never with the size of the tree.
//
// Where there is no overlay (Direct), a command works in the tree itself
// between Expose and Gather, and what it did is taken out again into the same form.
//
// Promises: a path that somebody else changed since the step began, or since
// it landed, is never overwritten: it is a Conflict and both versions are
// kept. A kill at any instant ends, after Recover, in before or after. Nothing
// is told to git, and git's files are files like others.
//
// The state folder belongs to one session and lies outside the root:
//
//	index                  one line an event of a layer, append-only
//	active/LAYER           a transaction, or its landing, is under way
//	restore.json           an undo or redo is under way
//	staged                 is there in a staged session
//	flat/                  merged layers, a cache
//	layers/LAYER/plan.json what the step changes; old/ what was there; upper/ what came
package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// Op is what an Edit does.
type Op int

const (
	Write Op = iota
	Delete
	Move
	Mkdir
	Symlink
)

// Edit is one change that a file action wants. To is the new path of a Move or
// the target of a Symlink. Mode 0 on Write keeps the mode that the file has.
type Edit struct {
	Op       Op
	Path, To string
	Data     []byte
	Mode     fs.FileMode
}

// Workspace is a user's folder and the layers that one session put on it.
type Workspace struct {
	root, state string
	dir         *os.Root
	fd          *os.File // the root
	staged      bool     // set before the first step

	mu     sync.Mutex // of everything below, and of the tree while it is changed
	next   int
	layers []*layer
	index  *os.File
	direct *direct // nil: commands work in an overlay
}

// layer is a landed step as the index knows it.
type layer struct {
	name, step string
	state      string
}

// The states of a layer in the index.
const (
	landed  = "landed"
	undone  = "undone"
	kept    = "kept"    // only conflicts: nothing is in place, the versions are kept
	stale   = "stale"   // undone, and a newer step landed since
	staged  = "staged"  // over the user's folder, in a staged session
	dropped = "dropped" // staged, and undone
	base    = "base"    // what a stack begins with
	folded  = "folded"  // staged, and in the folder or a base by now
)

// boundary is called between any two effects; a test cuts there.
var boundary = func(string) {}

// Open opens the workspace at root with the session's own state folder.
func Open(root, state string) (*Workspace, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return nil, contract.Errorf(v1.Error_not_found, "the workspace %s: %v", root, err)
	}
	if state, err = filepath.Abs(state); err != nil {
		return nil, err
	}
	if state == abs || strings.HasPrefix(state, abs+string(filepath.Separator)) {
		return nil, contract.Errorf(v1.Error_invalid, "the state folder %s lies inside the workspace", state)
	}
	for _, d := range []string{state, filepath.Join(state, "layers"), filepath.Join(state, "flat"), filepath.Join(state, "active")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	w := &Workspace{root: abs, state: state, staged: exists(filepath.Join(state, "staged"))}
	if w.dir, err = os.OpenRoot(abs); err != nil {
		return nil, err
	}
	if w.fd, err = os.Open(abs); err != nil {
		w.dir.Close()
		return nil, err
	}
	if err := w.loadIndex(); err != nil {
		w.dir.Close()
		return nil, err
	}
	return w, nil
}

// Begun says whether the session has any layer yet.
func (w *Workspace) Begun() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.layers) > 0
}

// Close lets go of the folder.
func (w *Workspace) Close() error { return errors.Join(w.fd.Close(), w.dir.Close(), w.index.Close()) }

// Root is the absolute path of the user's folder.
func (w *Workspace) Root() string { return w.root }

func (w *Workspace) at(path string) string { return filepath.Join(w.root, filepath.FromSlash(path)) }

func (w *Workspace) layerDir(name string) string { return filepath.Join(w.state, "layers", name) }
