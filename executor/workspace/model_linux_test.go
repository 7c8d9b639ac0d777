//go:build linux

package workspace

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// plainTree is the files of a folder by path.
func plainTree(t *rapid.T, root string) map[string]string {
	m := map[string]string{}
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		rel, _ := filepath.Rel(root, p)
		m[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// turned is what one undo or rewind took back.
type turned struct {
	now  map[string]string
	past []map[string]string
	ids  []string
}

// TestModel plays edits, undo, redo, rewind, forks, a person's edits and reopening
// against a list of plain maps.
func TestModel(t *testing.T) {
	base := t.TempDir()
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		root, state := filepath.Join(base, fmt.Sprint("w", run)), filepath.Join(base, fmt.Sprint("s", run))
		if err := os.Mkdir(root, 0o755); err != nil {
			t.Fatal(err)
		}
		w, err := opened(root, state)
		if err != nil {
			t.Fatal(err)
		}
		file := rapid.SampledFrom([]string{"a", "b", "d/a", "d/b", "d/e/a", "x/y/z", "x/y/w/v/u"})
		now := map[string]string{}
		var past []map[string]string // before each step that is in place
		var ids []string             // those steps
		var future []turned
		back := func(k int) { // to before the k-th step
			future = append(future, turned{now, slices.Clone(past[k:]), slices.Clone(ids[k:])})
			now, past, ids = past[k], past[:k], ids[:k]
		}
		steps, writes, forks := 0, 0, 0
		text := func() string { writes++; return fmt.Sprint("text ", writes, "\n") }
		t.Repeat(map[string]func(*rapid.T){
			"step": func(t *rapid.T) {
				next := maps.Clone(now)
				var edits []Edit
				for range rapid.IntRange(1, 3).Draw(t, "edits") {
					p := file.Draw(t, "path")
					_, is := next[p]
					switch rapid.IntRange(0, 2).Draw(t, "kind") {
					case 0:
						next[p] = text()
						edits = append(edits, Edit{Path: p, Data: []byte(next[p])})
					case 1:
						if is {
							delete(next, p)
							edits = append(edits, Edit{Op: Delete, Path: p})
						}
					case 2:
						to := file.Draw(t, "to")
						if _, taken := next[to]; is && !taken {
							next[to] = next[p]
							delete(next, p)
							edits = append(edits, Edit{Op: Move, Path: p, To: to})
						}
					}
				}
				x, err := w.Begin(fmt.Sprint("s", steps))
				if err != nil {
					t.Fatal(err)
				}
				steps++
				if err := x.Stage(edits); err != nil {
					t.Fatal(err)
				}
				cs, err := x.Changes()
				if err != nil || len(cs.Conflicts) > 0 {
					t.Fatal(err, cs)
				}
				if err := x.Land(); err != nil {
					t.Fatal(err)
				}
				if cs.Total > 0 {
					past, ids, future, now = append(past, now), append(ids, fmt.Sprint("s", steps-1)), nil, next
				}
			},
			"undo": func(t *rapid.T) {
				_, cs, err := w.Restore(Restore{})
				if (err == nil) != (len(past) > 0) {
					t.Fatal(err, len(past))
				}
				if err == nil {
					if len(cs.Conflicts) > 0 {
						t.Fatal(cs)
					}
					back(len(past) - 1)
				}
			},
			"redo": func(t *rapid.T) {
				_, cs, err := w.Restore(Restore{Redo: true})
				if (err == nil) != (len(future) > 0) {
					t.Fatal(err, len(future))
				}
				if err == nil {
					if len(cs.Conflicts) > 0 {
						t.Fatal(cs)
					}
					t := future[len(future)-1]
					past, ids, now, future = append(past, t.past...), append(ids, t.ids...), t.now, future[:len(future)-1]
				}
			},
			"person": func(t *rapid.T) {
				own := text()
				if err := os.WriteFile(filepath.Join(root, "person"), []byte(own), 0o644); err != nil {
					t.Fatal(err)
				}
				now["person"] = own
				for _, m := range past {
					m["person"] = own
				}
				for _, t := range future {
					for _, m := range append(t.past, t.now) {
						m["person"] = own
					}
				}
			},
			"rewind": func(t *rapid.T) {
				k := rapid.IntRange(0, len(past)).Draw(t, "to")
				if k == len(past) {
					return
				}
				if _, cs, err := w.Restore(Restore{Steps: ids[k:]}); err != nil || len(cs.Conflicts) > 0 {
					t.Fatal(err, cs)
				}
				back(k)
			},
			"fork": func(t *rapid.T) {
				k := rapid.IntRange(0, len(past)).Draw(t, "at")
				forks++
				f, err := Open(root, state+fmt.Sprint("f", forks))
				if err == nil {
					err = f.Fork(w, ids[k:])
				}
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				want := now
				if k < len(past) {
					want = past[k]
				}
				if got := shows(t, f); !maps.Equal(got, want) {
					t.Fatalf("the fork: want %v\ngot %v", want, got)
				}
				to := state + fmt.Sprint("c", forks)
				if whole, err := w.CopyTo(to, ids[:k]); err != nil || !whole {
					t.Fatal(whole, err)
				}
				if got := plainTree(t, to); !maps.Equal(got, want) {
					t.Fatalf("the copy: want %v\ngot %v", want, got)
				}
			},
			"reopen": func(t *rapid.T) {
				if w, err = opened(root, state); err != nil {
					t.Fatal(err)
				}
				if err := w.Recover(func(string) bool { return true }); err != nil {
					t.Fatal(err)
				}
			},
			"": func(t *rapid.T) {
				if got := plainTree(t, root); !maps.Equal(got, now) {
					t.Fatalf("want %v\ngot %v", now, got)
				}
			},
		})
	})
}

// inTree is whether the tests run once more without an overlay.
var inTree = os.Getenv("WORKSPACE_DIRECT") != ""

func opened(root, state string) (*Workspace, error) {
	w, err := Open(root, state)
	if err == nil && inTree {
		err = w.Direct()
	}
	return w, err
}
