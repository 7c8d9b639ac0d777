//go:build linux

package workspace

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkLandTen lands ten changed files in a tree of 20,000.
func BenchmarkLandTen(b *testing.B) {
	w := open(b)
	many(b, w.Root(), 20000)
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
	var undo, copied float64
	for n := range b.N {
		step(b, w, fmt.Sprint("s", n), "", Edit{Op: Delete, Path: "many"})
		b.StartTimer()
		if _, _, err := w.Restore(Restore{}); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		undo = b.Elapsed().Seconds() / float64(n+1)
	}
	to := filepath.Join(b.TempDir(), "copy")
	start := b.Elapsed()
	b.StartTimer()
	if out, err := exec.Command("cp", "-a", filepath.Join(w.Root(), "many"), to).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	b.StopTimer()
	copied = (b.Elapsed() - start).Seconds()
	b.ReportMetric(undo*1000, "undo-ms")
	b.ReportMetric(copied*1000, "cp-ms")
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
