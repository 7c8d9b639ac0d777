//go:build linux

package workspace

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkLandTen lands ten changed files in a tree of 20,000.
func BenchmarkLandTen(b *testing.B) {
	w := open(b)
	many(b, w.Root(), 20000)
	b.ResetTimer()
	for n := range b.N {
		var edits []Edit
		for i := range 10 {
			edits = append(edits, Edit{Path: fmt.Sprintf("many/%d/%d", i, i*101), Data: fmt.Appendf(nil, "%d", n)})
		}
		step(b, w, fmt.Sprint("s", n), "", edits...)
	}
}

// BenchmarkUndoRemoveAll undoes rm -rf of 20,000 files; the metric is its time
// against cp -a of them.
func BenchmarkUndoRemoveAll(b *testing.B) {
	w := open(b)
	many(b, w.Root(), 20000)
	var undo time.Duration
	for n := range b.N {
		step(b, w, fmt.Sprint("s", n), "", Edit{Op: Delete, Path: "many"})
		start := time.Now()
		if _, _, err := w.Restore(Restore{}); err != nil {
			b.Fatal(err)
		}
		undo += time.Since(start)
	}
	to := filepath.Join(b.TempDir(), "copy")
	start := time.Now()
	if out, err := exec.Command("cp", "-a", filepath.Join(w.Root(), "many"), to).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	b.ReportMetric(undo.Seconds()*1000/float64(b.N), "undo-ms")
	b.ReportMetric(time.Since(start).Seconds()*1000, "cp-ms")
}

func many(b *testing.B, root string, n int) {
	b.Helper()
	for i := range n {
		dir := filepath.Join(root, "many", fmt.Sprint(i/100%200))
		if i%100 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte("x"), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen opens a session of 10,000 layers.
func BenchmarkOpen(b *testing.B) {
	root, state := b.TempDir(), b.TempDir()
	var index []byte
	for n := range 10000 {
		index = fmt.Appendf(index, "landed %06d-s %q\n", n, "s")
	}
	if err := os.WriteFile(filepath.Join(state, "index"), index, 0o600); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		if _, err := Open(root, state); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFork forks a session, after which ten files changed, in a tree of
// 20,000 files.
func BenchmarkFork(b *testing.B) {
	w := open(b)
	many(b, w.Root(), 20000)
	var edits []Edit
	for i := range 10 {
		edits = append(edits, Edit{Path: fmt.Sprintf("many/%d/%d", i, i*101), Data: []byte("new")})
	}
	step(b, w, "s", "", edits...)
	b.ResetTimer()
	for range b.N {
		f, err := Open(w.Root(), filepath.Join(b.TempDir(), "state"))
		if err == nil {
			err = f.Fork(w, []string{"s"})
		}
		if err != nil {
			b.Fatal(err)
		}
		if text, err := f.Diff("", nil, nil); err != nil || len(text) == 0 {
			b.Fatal("the fork shows nothing: ", err)
		}
	}
}

// BenchmarkStagedTen stages ten changed files in a tree of 20,000, over the
// layers of the steps before.
func BenchmarkStagedTen(b *testing.B) {
	w := open(b)
	many(b, w.Root(), 20000)
	if err := w.Stage(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for n := range b.N {
		var edits []Edit
		for i := range 10 {
			edits = append(edits, Edit{Path: fmt.Sprintf("many/%d/%d", i, i*101), Data: fmt.Appendf(nil, "%d", n)})
		}
		step(b, w, fmt.Sprint("s", n), "", edits...)
	}
}

// BenchmarkUndoTen undoes a step that changed ten files of 20,000.
func BenchmarkUndoTen(b *testing.B) {
	w := open(b)
	many(b, w.Root(), 20000)
	var edits []Edit
	for i := range 10 {
		edits = append(edits, Edit{Path: fmt.Sprintf("many/%d/%d", i, i*101), Data: []byte("new")})
	}
	step(b, w, "s", "", edits...)
	b.ResetTimer()
	for n := range b.N {
		if _, _, err := w.Restore(Restore{Redo: n%2 == 1}); err != nil {
			b.Fatal(err)
		}
	}
}
