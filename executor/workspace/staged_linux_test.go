//go:build linux

package workspace

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// shows is the content of a whole tree as a staged session's steps see it.
func shows(t *rapid.T, w *Workspace) map[string]string {
	tree, err := w.Tree()
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]string{}
	err = tree.walk(".", func(name string, info os.FileInfo) error {
		if info.IsDir() {
			return nil
		}
		data, err := tree.ReadFile(name)
		m[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// effects are commands on files a, b, d/a, d/e/a, made of small moves.
var effects = []string{"echo %d > a", "echo %d > b", "mkdir -p d; echo %d > d/a", "mkdir -p d/e; echo %d > d/e/a", "rm -f a", "rm -rf d/e", "rm -rf d", "rm -rf d; mkdir d",
	"rm -rf d; mkdir d; echo %d > d/b", "rm -rf d; echo %d > d", "test -d d || { rm -f d; mkdir d; }", "if [ -d d ]; then mv d x; cp -r x d; rm -rf x; fi", "touch b", "rm -rf b; mkdir b; echo %d > b/a", "if [ -f a ]; then mv a c; fi", "rm -f c"}

// TestStagedModel plays commands, edits, undo, redo, apply, discard, forks and
// reopening of two staged sessions on one folder, as real overlays, against
// plain copies of folders on which the same commands run.
func TestStagedModel(t *testing.T) {
	needOverlay(t)
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		flag.Set("rapid.checks", "25") // each command is a process in a new overlay
		defer flag.Set("rapid.checks", checks.DefValue)
	}
	top := t.TempDir()
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		dir := filepath.Join(top, fmt.Sprint(run))
		defer removeAll(dir)
		root := filepath.Join(dir, "root")
		copies := 0
		plainCopy := func(of string) string {
			copies++
			to := filepath.Join(dir, fmt.Sprint("copy", copies))
			if err := copyTree(of, to); err != nil {
				t.Fatal(err)
			}
			return to
		}
		if err := os.MkdirAll(filepath.Join(root, "d"), 0o755); err != nil {
			t.Fatal(err)
		}
		os.WriteFile(filepath.Join(root, "a"), []byte("first\n"), 0o644)
		os.WriteFile(filepath.Join(root, "d", "a"), []byte("first\n"), 0o644)
		open := func(name string) *Workspace {
			w, err := Open(root, filepath.Join(dir, name))
			if err == nil {
				err = w.Recover(func(string) bool { return true })
			}
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		name := "s0"
		w := open(name)
		if err := w.Stage(); err != nil {
			t.Fatal(err)
		}
		now := plainCopy(root)
		user := plainTree(t, root)
		var past, future []string
		steps, sessions := 0, 0
		t.Repeat(map[string]func(*rapid.T){
			"command": func(t *rapid.T) {
				cmd := ""
				for range rapid.IntRange(1, 3).Draw(t, "n") {
					steps++
					e := rapid.SampledFrom(effects).Draw(t, "effect")
					if slices.Contains([]byte(e), '%') {
						e = fmt.Sprintf(e, steps)
					}
					cmd += e + "\n"
				}
				next := plainCopy(now)
				failed := shellIn(next, cmd) != nil
				x, err := w.Begin(fmt.Sprint("s", steps))
				if err != nil {
					t.Fatal(err)
				}
				if err := shell(w, x, cmd); (err != nil) != failed {
					t.Fatal(err, failed)
				}
				cs, err := x.Changes()
				if err != nil || len(cs.Conflicts) > 0 {
					t.Fatal(err, cs)
				}
				if err := x.Land(); err != nil {
					t.Fatal(err)
				}
				if cs.Total > 0 {
					past, future, now = append(past, now), nil, next
				}
			},
			"edit": func(t *rapid.T) {
				steps++
				p := rapid.SampledFrom([]string{"a", "n/x", "d/a"}).Draw(t, "path")
				x, err := w.Begin(fmt.Sprint("s", steps))
				if err != nil {
					t.Fatal(err)
				}
				next := plainCopy(now)
				op := Edit{Path: p, Data: fmt.Appendln(nil, steps)}
				cmd := fmt.Sprintf("mkdir -p $(dirname %s) && [ ! -d %[1]s ] && echo %d > %[1]s", p, steps)
				if rapid.Bool().Draw(t, "delete") {
					op, cmd = Edit{Op: Delete, Path: p}, "[ -e "+p+" ] && rm -r "+p
				}
				if err := x.Stage([]Edit{op}); (err != nil) != (shellIn(next, cmd) != nil) {
					t.Fatal(p, err)
				} else if err != nil {
					x.Discard()
					return
				}
				if err := x.Land(); err != nil {
					t.Fatal(err)
				}
				past, future, now = append(past, now), nil, next
			},
			"undo": func(t *rapid.T) {
				if len(past) == 0 {
					return
				}
				if _, _, err := w.Restore(Restore{}); err != nil {
					t.Fatal(err)
				}
				future = append(future, now)
				now, past = past[len(past)-1], past[:len(past)-1]
			},
			"redo": func(t *rapid.T) {
				if len(future) == 0 {
					return
				}
				if _, _, err := w.Restore(Restore{Redo: true}); err != nil {
					t.Fatal(err)
				}
				past = append(past, now)
				now, future = future[len(future)-1], future[:len(future)-1]
			},
			"apply": func(t *rapid.T) {
				steps++
				x, err := w.BeginApply(fmt.Sprint("s", steps), Apply{})
				if err != nil {
					return // nothing is staged
				}
				cs, err := x.Changes()
				if err != nil || len(cs.Conflicts) > 0 {
					t.Fatal(err, cs)
				}
				if cs.Total == 0 {
					if err := x.Discard(); err != nil {
						t.Fatal(err)
					}
					return
				}
				if err := x.Land(); err != nil {
					t.Fatal(err)
				}
				past, future, user = nil, nil, plainTree(t, now)
				if _, err := w.BeginApply("again", Apply{}); err == nil {
					t.Fatal("something is staged after all was applied")
				}
			},
			"discard": func(t *rapid.T) {
				if _, err := w.Discard("s", nil); err == nil {
					past, future, now = nil, nil, plainCopy(root)
				}
			},
			"fork": func(t *rapid.T) {
				// The fork begins as the session stands; what it leaves behind is not seen.
				sessions++
				f := open(fmt.Sprint("s", sessions))
				if err := f.Fork(w, nil); err != nil {
					t.Fatal(err)
				}
				w, name = f, fmt.Sprint("s", sessions)
				past, future = nil, nil
			},
			"reopen": func(t *rapid.T) { w = open(name) },
			"": func(t *rapid.T) {
				if got := plainTree(t, root); !maps.Equal(got, user) {
					t.Fatalf("the user's folder: want %v\ngot %v", user, got)
				}
				if got, want := shows(t, w), plainTree(t, now); !maps.Equal(got, want) {
					t.Fatalf("the session: want %v\ngot %v", want, got)
				}
			},
		})
	})
}

func shellIn(dir, cmd string) error {
	c := execCommand(dir, cmd)
	return c.Run()
}
