package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

// snapshot is a folder as text: names, modes, contents.
func snapshot(t testing.TB, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		text := ""
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			text, err = os.Readlink(p)
		case info.Mode().IsRegular():
			var data []byte
			data, err = os.ReadFile(p)
			text = string(data)
		}
		if rel != "." {
			fmt.Fprintf(&b, "%s %v %q\n", rel, info.Mode(), text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func write(t testing.TB, root, name, text string) {
	t.Helper()
	p := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, root, state string) *Workspace {
	t.Helper()
	w, err := Open(root, state)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// do lands a transaction that prepare fills.
func do(t testing.TB, w *Workspace, step string, prepare func(*Tx)) {
	t.Helper()
	tx, err := w.Begin(step)
	if err != nil {
		t.Fatal(err)
	}
	prepare(tx)
	if _, err := tx.Changes(); err != nil {
		t.Fatal(err)
	}
	if err := tx.Land(); err != nil {
		t.Fatal(err)
	}
}

func stage(t testing.TB, edits ...Edit) func(*Tx) {
	return func(tx *Tx) {
		t.Helper()
		if err := tx.Stage(edits); err != nil {
			t.Fatal(err)
		}
	}
}

// overlay is an upper folder as a command leaves it.
func overlay(t testing.TB) func(*Tx) {
	return func(tx *Tx) {
		t.Helper()
		up := tx.Upper()
		write(t, up, "mod", "two\n")
		write(t, up, "new/deep/f", "n\n")
		if err := os.Symlink("mod", filepath.Join(up, "link")); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(up, "mod"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, gone := range []string{"gone", "tree", "swap"} {
			if gone == "swap" {
				write(t, up, "swap/now-a-folder", "x")
				continue
			}
			if err := syscall.Mknod(filepath.Join(up, gone), syscall.S_IFCHR, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(filepath.Join(up, "opaque"), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, up, "opaque/fresh", "f")
		if err := syscall.Setxattr(filepath.Join(up, "opaque"), "user.overlay.opaque", []byte("y"), 0); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(up, "dir2file")); err != nil {
			t.Fatal(err)
		}
		write(t, up, "dir2file", "file now")
	}
}

func base(t testing.TB, root string) {
	write(t, root, "mod", "one\n")
	write(t, root, "gone", "g")
	write(t, root, "tree/a/b", "ab")
	write(t, root, "tree/c", "c")
	write(t, root, "swap", "a file")
	write(t, root, "opaque/old", "o")
	write(t, root, "dir2file/x", "x")
	write(t, root, "other", "other")
}

func TestOverlayLandsUndoesRedoes(t *testing.T) {
	root := t.TempDir()
	base(t, root)
	before := snapshot(t, root)
	w := open(t, root, t.TempDir())
	do(t, w, "s1", overlay(t))
	after := snapshot(t, root)
	for _, want := range []string{`mod -rwxr-xr-x "two\n"`, `new/deep/f`, `link Lrwxrwxrwx "mod"`, `swap/now-a-folder`, `opaque/fresh`, `dir2file -rw-r--r-- "file now"`} {
		if !strings.Contains(after, want) {
			t.Errorf("no %q in\n%s", want, after)
		}
	}
	for _, gone := range []string{"gone", "tree", "opaque/old", "dir2file/x"} {
		if strings.Contains(after, gone+" ") {
			t.Errorf("%s is still there", gone)
		}
	}
	for range 3 {
		if _, _, err := w.Restore(Restore{}); err != nil {
			t.Fatal(err)
		}
		if got := snapshot(t, root); got != before {
			t.Fatalf("after undo:\n%s\nwant\n%s", got, before)
		}
		if _, _, err := w.Restore(Restore{Redo: true}); err != nil {
			t.Fatal(err)
		}
		if got := snapshot(t, root); got != after {
			t.Fatalf("after redo:\n%s\nwant\n%s", got, after)
		}
	}
}

type crash struct{}

// crashAt calls f and ends it at the n-th boundary, as a kill would: nothing of
// the Workspace in memory is used afterwards. It says whether f came that far.
func crashAt(n int, f func()) (crashed bool) {
	boundary = func(string) {
		if n--; n == 0 {
			panic(crash{})
		}
	}
	defer func() {
		boundary = func(string) {}
		if r := recover(); r != nil {
			if _, ok := r.(crash); !ok {
				panic(r)
			}
			crashed = true
		}
	}()
	f()
	return false
}

// Killed at any boundary of landing, undo or redo, recovery ends in the state
// before or after, by what was recorded, and undo works from there.
func TestCrashAnywhere(t *testing.T) {
	for n := 1; ; n++ {
		ended := true
		for _, committed := range []bool{true, false} {
			root, state := t.TempDir(), t.TempDir()
			base(t, root)
			before := snapshot(t, root)
			w := open(t, root, state)
			landed := false
			crashed := crashAt(n, func() {
				do(t, w, "s1", overlay(t))
				landed = true
				w.Restore(Restore{})
				w.Restore(Restore{Redo: true})
			})
			ended = ended && !crashed
			w = open(t, root, state)
			if err := w.Recover(func(string) bool { return committed || landed }); err != nil {
				t.Fatalf("boundary %d: %v", n, err)
			}
			got := snapshot(t, root)
			if got != before {
				if !strings.Contains(got, "dir2file -rw") || strings.Contains(got, "gone") {
					t.Fatalf("boundary %d: between before and after:\n%s", n, got)
				}
				if !landed && !committed {
					t.Fatalf("boundary %d: landed without an outcome", n)
				}
				if _, _, err := w.Restore(Restore{All: true}); err != nil {
					t.Fatalf("boundary %d: %v", n, err)
				}
				if got := snapshot(t, root); got != before {
					t.Fatalf("boundary %d: undo gives\n%s", n, got)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(root, "*"+tempName+"*")); len(left) > 0 {
				t.Errorf("boundary %d: %v is left", n, left)
			}
		}
		if ended {
			if n < 10 {
				t.Errorf("only %d boundaries", n)
			}
			return
		}
	}
}

func TestOthersChangesAreKept(t *testing.T) {
	root := t.TempDir()
	write(t, root, "f", "1\n")
	write(t, root, "g", "1\n")
	w := open(t, root, t.TempDir())
	do(t, w, "s1", stage(t, Edit{Path: "f", Data: []byte("2\n")}, Edit{Path: "g", Data: []byte("2\n")}, Edit{Path: "n", Data: []byte("2\n")}))
	write(t, root, "f", "mine\n")
	steps, cs, err := w.Restore(Restore{DryRun: true})
	if err != nil || len(steps) != 1 || len(cs.Conflicts) != 1 {
		t.Fatalf("dry run: %v %v %v", steps, cs, err)
	}
	_, cs, err = w.Restore(Restore{})
	if err != nil || len(cs.Conflicts) != 1 || cs.Conflicts[0].Path != "f" {
		t.Fatalf("%v %v", cs, err)
	}
	if kept, err := os.ReadFile(cs.Conflicts[0].Kept); err != nil || string(kept) != "1\n" {
		t.Errorf("the old version: %q %v", kept, err)
	}
	if got := snapshot(t, root); got != "f -rw-r--r-- \"mine\\n\"\ng -rw-r--r-- \"1\\n\"\n" {
		t.Errorf("%s", got)
	}
}

func TestChangedWhileTheStepRan(t *testing.T) {
	root := t.TempDir()
	write(t, root, "f", "1\n")
	w := open(t, root, t.TempDir())
	tx, err := w.Begin("s1")
	if err != nil {
		t.Fatal(err)
	}
	stage(t, Edit{Path: "f", Data: []byte("2\n")}, Edit{Path: "g", Data: []byte("2\n")})(tx)
	for { // until the file system's clock has gone on
		write(t, root, "f", "mine\n")
		if info, err := os.Stat(filepath.Join(root, "f")); err == nil && changeTime(info).After(tx.began) {
			break
		}
	}
	cs, err := tx.Changes()
	if err != nil || len(cs.Conflicts) != 1 || len(cs.Changes) != 1 {
		t.Fatalf("%v %v", cs, err)
	}
	if err := tx.Land(); err != nil {
		t.Fatal(err)
	}
	if got := snapshot(t, root); got != "f -rw-r--r-- \"mine\\n\"\ng -rw-r--r-- \"2\\n\"\n" {
		t.Errorf("%s", got)
	}
}

func TestHardLinksFollow(t *testing.T) {
	root := t.TempDir()
	write(t, root, "x", "a\n")
	if err := os.Link(filepath.Join(root, "x"), filepath.Join(root, "y")); err != nil {
		t.Fatal(err)
	}
	w := open(t, root, t.TempDir())
	do(t, w, "s1", stage(t, Edit{Path: "x", Data: []byte("b\n")}))
	for _, name := range []string{"x", "y"} {
		if b, _ := os.ReadFile(filepath.Join(root, name)); string(b) != "b\n" {
			t.Errorf("%s says %q", name, b)
		}
	}
	if _, _, err := w.Restore(Restore{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x", "y"} {
		if b, _ := os.ReadFile(filepath.Join(root, name)); string(b) != "a\n" {
			t.Errorf("after undo %s says %q", name, b)
		}
	}
}

func TestDiff(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "1\n2\n")
	write(t, root, "d/b", "x\n")
	w := open(t, root, t.TempDir())
	do(t, w, "s1", stage(t, Edit{Path: "a", Data: []byte("1\nzwei\n")}, Edit{Path: "n", Data: []byte("new\n")}))
	do(t, w, "s2", stage(t, Edit{Path: "a", Data: []byte("eins\nzwei\n")}, Edit{Op: Delete, Path: "d"}))
	whole, err := w.Diff("", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"-1\n-2\n+eins\n+zwei\n", "new file mode 100644", "deleted file mode 100644\n--- a/d/b\n+++ /dev/null"} {
		if !strings.Contains(whole, want) {
			t.Errorf("no %q in\n%s", want, whole)
		}
	}
	one, err := w.Diff("s1", []string{"a"})
	if err != nil || !strings.Contains(one, " 1\n-2\n+zwei\n") || strings.Contains(one, "eins") || strings.Contains(one, "new") {
		t.Errorf("%v\n%s", err, one)
	}
}

// Random edits, undo, redo and other people's edits, against a plain history.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp("", "model")
		if err != nil {
			rt.Fatal(err)
		}
		state, err := os.MkdirTemp("", "model")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(root)
		defer removeAll(state)
		w := open(t, root, state)
		history := []string{snapshot(t, root)} // history[i] is the state after i steps
		at, top := 0, 0
		name := rapid.SampledFrom([]string{"a", "b", "d/a", "d/b", "d/e/f"})
		for i := range rapid.IntRange(1, 15).Draw(rt, "n") {
			switch rapid.IntRange(0, 4).Draw(rt, "what") {
			case 0:
				if _, _, err := w.Restore(Restore{}); (err == nil) != (at > 0) {
					rt.Fatalf("undo at %d: %v", at, err)
				} else if err == nil {
					at--
				}
			case 1:
				if _, _, err := w.Restore(Restore{Redo: true}); (err == nil) != (at < top) {
					rt.Fatalf("redo at %d of %d: %v", at, top, err)
				} else if err == nil {
					at++
				}
			case 2:
				w.fs.Close()
				w = open(t, root, state)
				if err := w.Recover(func(string) bool { return true }); err != nil {
					rt.Fatal(err)
				}
			default:
				e := Edit{Path: name.Draw(rt, "path"), Data: []byte(fmt.Sprint(i))}
				if rapid.Bool().Draw(rt, "delete") {
					e = Edit{Op: Delete, Path: e.Path}
				}
				was := snapshot(t, root)
				do(t, w, fmt.Sprint("s", i), stage(t, e))
				if now := snapshot(t, root); now != was {
					at++
					top = at
					history = append(history[:at], now)
				}
			}
			if got := snapshot(t, root); got != history[at] {
				rt.Fatalf("step %d: state\n%s\nwant\n%s", i, got, history[at])
			}
		}
	})
}
