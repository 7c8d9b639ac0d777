package workspace

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// Apply says what of a staged session goes to the user's folder: the paths
// (files, folders, globs; none means all), of a single file only the hunks with
// these numbers, from 1. Force takes the staged version also of what somebody
// else changed since; theirs is kept, and comes back with undo.
type Apply struct {
	Paths []string
	Hunks []uint32
	Force bool
}

// application is an Apply on its way.
type application struct {
	Apply
	net map[string]*entry
}

// BeginApply starts the transaction that takes staged changes to the user's
// folder. Changes, Land and Discard are as for a step.
func (w *Workspace) BeginApply(stepID string, a Apply) (_ *Tx, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.staged {
		return nil, contract.Errorf(v1.Error_unsupported, "this session works in the folder itself: nothing is staged")
	}
	x := &application{Apply: a}
	if x.net, err = w.net(); err != nil {
		return nil, err
	}
	if !x.matches() {
		return nil, contract.Errorf(v1.Error_not_found, "nothing is staged%s", in(a.Paths)).WithHint("harness diff shows what is")
	}
	t, err := w.newTx(stepID, true)
	if err != nil {
		return nil, err
	}
	t.apply = x
	if err = x.gather(t); err != nil {
		w.drop(t.name)
		return nil, err
	}
	return t, nil
}

func in(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	return " of " + strings.Join(paths, ", ")
}

func (x *application) matches() bool {
	for p := range x.net {
		if wanted(p, x.Paths) {
			return true
		}
	}
	return false
}

// stamp is when the first step began that changed a path, or a folder above it.
func (x *application) stamp(p string) int64 {
	if x.Force {
		return 1<<63 - 1
	}
	for ; p != "."; p = path.Dir(p) {
		if e := x.net[p]; e != nil {
			return e.Stamp
		}
	}
	return 0
}

// gather copies what is wanted of the stack into the transaction.
func (x *application) gather(t *Tx) error {
	tree, err := t.w.tree()
	if err != nil {
		return err
	}
	for p, e := range x.net {
		if e.Before != nil && !x.Force {
			t.staged.Based[p] = true
		}
	}
	root, err := os.Stat(t.w.root)
	if err != nil {
		return err
	}
	m := &merge{dirs: tree.layers, copy: true, want: func(p string) bool { return wanted(p, x.Paths) }}
	if err := m.into(t.Upper()); err != nil {
		return err
	}
	if err := os.Chmod(t.Upper(), root.Mode()); err != nil {
		return err
	}
	if len(x.Hunks) == 0 {
		return nil
	}
	if len(x.Paths) != 1 {
		return contract.Errorf(v1.Error_invalid, "hunks are numbered in one file: give its path").WithField("args.hunks")
	}
	p := path.Clean(filepath.ToSlash(x.Paths[0]))
	return pick(t.w.at(p), t.upper(p), x.Hunks)
}

// pick leaves, of the changes from one file to another, those with the given numbers.
func pick(from, to string, numbers []uint32) error {
	_, was, err := content(from)
	if err != nil {
		return err
	}
	mode, is, err := content(to)
	if err != nil {
		return err
	}
	if mode == "" || binary(was) || binary(is) {
		return contract.Errorf(v1.Error_unsupported, "only a text file can be applied in parts").WithField("args.hunks")
	}
	diff, err := udiff.ToUnifiedDiff("a", "b", string(was), udiff.Lines(string(was), string(is)), 3)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		if n < 1 || int(n) > len(diff.Hunks) {
			return contract.Errorf(v1.Error_not_found, "there is no hunk %d, the file has %d", n, len(diff.Hunks)).WithField("args.hunks")
		}
	}
	lines := slices.Collect(strings.Lines(string(was)))
	var b strings.Builder
	at := 0
	for i, h := range diff.Hunks {
		if !slices.Contains(numbers, uint32(i+1)) {
			continue
		}
		start := h.FromLine - 1
		if len(lines) == 0 {
			start = 0
		}
		for ; at < start; at++ {
			b.WriteString(lines[at])
		}
		for _, l := range h.Lines {
			if l.Kind != udiff.Delete {
				b.WriteString(l.Content)
			}
			if l.Kind != udiff.Insert {
				at++
			}
		}
	}
	for ; at < len(lines); at++ {
		b.WriteString(lines[at])
	}
	return os.WriteFile(to, []byte(b.String()), 0o600)
}

// choose leaves in a plan what is wanted, and the folders that it needs.
func (x *application) choose(p *plan) {
	need := map[string]bool{}
	for _, e := range p.Entries {
		if wanted(e.Path, x.Paths) {
			for d := e.Path; d != "."; d = path.Dir(d) {
				need[d] = true
			}
		}
	}
	p.Entries = slices.DeleteFunc(p.Entries, func(e *entry) bool { return !need[e.Path] || e.isFolderMode() && x.net[e.Path] == nil })
}
