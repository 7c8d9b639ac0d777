package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// layer is one step's changes, and the versions that are not in the tree now.
type layer struct {
	w     *Workspace
	n     int
	step  string
	dir   string
	state string
	ops   []op // loaded when needed
}

// Old versions lie under pre, new ones under upper (until they land) or post
// (after an undo), each below its own path.
func (l *layer) pre(path string) string  { return filepath.Join(l.dir, "pre", path) }
func (l *layer) post(path string) string { return filepath.Join(l.dir, "post", path) }

type direction bool

const (
	forward  direction = true
	backward direction = false
)

// land takes the layer's new versions into the tree. If that fails, all is as before.
func (l *layer) land() error {
	if err := l.loadPlan(); err != nil {
		return err
	}
	if l.n == 0 {
		fmt.Sscanf(filepath.Base(l.dir), "%d", &l.n)
	}
	if err := l.set(stateLanding); err != nil {
		return err
	}
	if err := l.finish(forward, stateLanded); err != nil {
		if back := l.finish(backward, stateDropped); back != nil {
			return errors.Join(err, fmt.Errorf("and taking it back failed, it will be tried again: %w", back))
		}
		return err
	}
	l.w.layers = append(l.w.layers, l)
	return nil
}

// finish moves every op's versions in one direction and records the new state.
// What was moved already stays, so it can be called again after a crash.
func (l *layer) finish(d direction, state string) error {
	if err := l.loadPlan(); err != nil {
		return err
	}
	for i := range l.ops {
		o := &l.ops[i]
		if d == backward {
			o = &l.ops[len(l.ops)-1-i]
		}
		if o.Skipped {
			continue
		}
		boundary("move " + o.Path)
		var err error
		if d == forward {
			err = l.apply(o)
		} else {
			err = l.revert(o)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", o.Path, err)
		}
	}
	if state != stateDropped {
		if err := l.remember(); err != nil {
			return err
		}
	}
	return l.set(state)
}

// source is where the new version of an op waits.
func (l *layer) source(o *op) string {
	if p := l.post(o.Path); exists(p) {
		return p
	}
	return filepath.Join(l.dir, "upper", o.Path)
}

func (l *layer) apply(o *op) error {
	at, err := l.w.place(o.Path)
	if err != nil {
		return err
	}
	switch {
	case o.After == nil:
		return moveOnce(at, l.pre(o.Path))
	case o.After.Mode.IsDir():
		if o.Before != nil && !o.Before.Mode.IsDir() {
			if err := moveOnce(at, l.pre(o.Path)); err != nil {
				return err
			}
		}
		return makeDir(at, o.After.Mode)
	case o.InPlace:
		if err := copyOnce(at, l.pre(o.Path)); err != nil {
			return err
		}
		return writeInto(at, l.source(o))
	case o.Before != nil && o.Before.Mode.IsDir():
		if !exists(l.pre(o.Path)) {
			if err := moveOnce(at, l.pre(o.Path)); err != nil {
				return err
			}
		}
	case o.Before != nil:
		if exists(l.source(o)) {
			if err := linkOnce(at, l.pre(o.Path)); err != nil {
				return err
			}
		}
	}
	return replace(l.source(o), at)
}

func (l *layer) revert(o *op) error {
	at, err := l.w.place(o.Path)
	if err != nil {
		if o.Before == nil {
			return nil // a landing that had not come to its folder
		}
		return err
	}
	old := l.pre(o.Path)
	switch {
	case o.After == nil:
		return moveOnce(old, at)
	case o.After.Mode.IsDir():
		if o.Before != nil && o.Before.Mode.IsDir() {
			return makeDir(at, o.Before.Mode)
		}
		if info, err := os.Lstat(at); err == nil && info.IsDir() {
			if err := os.Remove(at); err != nil {
				return err
			}
		}
		if o.Before != nil {
			return moveOnce(old, at)
		}
		return nil
	case o.Before == nil:
		if l.untouched(o) {
			return nil // a landing that had not come to it
		}
		return moveOnce(at, l.post(o.Path))
	}
	if !exists(old) {
		return nil
	}
	switch {
	case o.InPlace:
		if err := copyOnce(at, l.post(o.Path)); err != nil {
			return err
		}
		if err := writeInto(at, old); err != nil {
			return err
		}
		return os.Remove(old)
	case o.Before.Mode.IsDir():
		if err := moveOnce(at, l.post(o.Path)); err != nil {
			return err
		}
		return moveOnce(old, at)
	}
	if !l.untouched(o) {
		if err := linkOnce(at, l.post(o.Path)); err != nil {
			return err
		}
	}
	return replace(old, at)
}

// untouched says whether an op's new version never left upper.
func (l *layer) untouched(o *op) bool {
	return exists(filepath.Join(l.dir, "upper", o.Path)) && !exists(l.post(o.Path))
}

// place is a path in the tree, and sees that no link has come into the way to it.
func (w *Workspace) place(name string) (string, error) {
	parts := strings.Split(name, "/")
	at := w.root
	for _, part := range parts[:len(parts)-1] {
		at = filepath.Join(at, part)
		if info, err := os.Lstat(at); err == nil && !info.IsDir() {
			return "", fmt.Errorf("%s is no folder any more", at)
		}
	}
	return filepath.Join(at, parts[len(parts)-1]), nil
}

// identity tells whether a path is still what this package left there.
type identity struct {
	Path           string      `json:"path"`
	Mode           fs.FileMode `json:"mode,omitempty"`
	Size           int64       `json:"size,omitempty"`
	Inode          uint64      `json:"inode,omitempty"`
	Mtime, Changed time.Time
}

func identify(name string) (id identity) {
	info, err := os.Lstat(name)
	if err != nil {
		return id
	}
	id.Mode = info.Mode()
	if !info.IsDir() {
		id.Size, id.Inode, id.Mtime, id.Changed = info.Size(), inode(info), info.ModTime(), changeTime(info)
	}
	return id
}

// remember records what each path is after the layer moved.
func (l *layer) remember() error {
	ids := make([]identity, len(l.ops))
	for i, o := range l.ops {
		ids[i] = identify(filepath.Join(l.w.root, o.Path))
		ids[i].Path = o.Path
	}
	return writeDurably(filepath.Join(l.dir, "now.json"), ids)
}

// changed says for each op why its path is not what the layer left, "" where it is.
func (l *layer) changed() ([]string, error) {
	if err := l.loadPlan(); err != nil {
		return nil, err
	}
	var ids []identity
	if err := readJSON(filepath.Join(l.dir, "now.json"), &ids); err != nil {
		return nil, err
	}
	reasons := make([]string, len(l.ops))
	for i, o := range l.ops {
		at := filepath.Join(l.w.root, o.Path)
		now := identify(at)
		was := ids[i]
		switch {
		case now.Mode == 0 && was.Mode == 0:
		case now.Mode == 0:
			reasons[i] = "somebody else deleted it"
		case was.Mode == 0:
			reasons[i] = "somebody else made it"
		case now.Mode.Type() != was.Mode.Type():
			reasons[i] = "somebody else replaced it"
		case now.Mode.IsDir():
			if l.state == stateLanded && o.Before == nil && l.strangers(at, o.Path) {
				reasons[i] = "holds files that somebody else made"
			}
		case now.Size == was.Size && now.Mtime.Equal(was.Mtime) && now.Mode == was.Mode && (now.Inode == was.Inode || o.After == nil):
		case o.After != nil && l.state == stateLanded && now.Mode == was.Mode && sameDigest(at, o.After):
		case now.Size == was.Size && now.Mtime.Equal(was.Mtime) && now.Mode == was.Mode:
		default:
			reasons[i] = "somebody else changed it"
		}
	}
	return reasons, nil
}

// strangers says whether a folder that this layer made holds what it did not make.
func (l *layer) strangers(at, name string) bool {
	mine := map[string]bool{}
	for _, o := range l.ops {
		if o.After != nil {
			mine[filepath.Join(l.w.root, o.Path)] = true
		}
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return true
	}
	for _, e := range entries {
		if !mine[filepath.Join(at, e.Name())] {
			return true
		}
	}
	return false
}

func sameDigest(name string, v *version) bool {
	if v.Digest == "" {
		return false
	}
	d, err := digestFile(name)
	return err == nil && d == v.Digest
}
