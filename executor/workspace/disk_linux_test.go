//go:build linux

package workspace

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// fullChild tries steps with a small filesystem for the state: each ends in an
// error or whole.
func fullChild(root, state string) {
	err := unix.Mount("tmpfs", state, "tmpfs", 0, "size=256k,mode=0700")
	if err != nil {
		fmt.Println("mount:", err)
		os.Exit(125)
	}
	w, err := opened(root, state)
	if err == nil {
		err = tryStep(w, "small", "", Edit{Path: "f", Data: []byte("2\n")})
	}
	if err != nil {
		fmt.Println("a step that fits:", err)
		os.Exit(1)
	}
	if tryStep(w, "big", "", Edit{Path: "f", Data: bytes.Repeat([]byte("x"), 1<<20)}) == nil {
		fmt.Println("a step that does not fit landed")
		os.Exit(1)
	}
	// The version after fits, the one before does not.
	if tryStep(w, "save", "", Edit{Path: "g", Data: []byte("new\n")}, Edit{Path: "big", Data: []byte("new\n")}) == nil {
		fmt.Println("a step whose version before cannot be kept landed")
		os.Exit(1)
	}
	if _, _, err := w.Restore(Restore{}); err != nil {
		fmt.Println("undo of the earlier step:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func TestStoreFull(t *testing.T) {
	root, state := t.TempDir(), t.TempDir()
	sh(t, root, "echo 1 > f; head -c 600000 /dev/zero > big")
	before := tree(t, root)
	if out, err := namespaced("full", root, state); err != nil {
		if bytes.HasPrefix(out, []byte("mount:")) {
			t.Skipf("%s", out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	same(t, "a full store", before, tree(t, root))
}

// TestOtherFilesystem lands and undoes where renames do not reach.
func TestOtherFilesystem(t *testing.T) {
	needOverlay(t)
	shm, err := os.MkdirTemp("/dev/shm", "workspace")
	if err != nil {
		t.Skip(err)
	}
	defer removeAll(shm)
	w, err := opened(t.TempDir(), filepath.Join(shm, "state"))
	if err != nil {
		t.Fatal(err)
	}
	sh(t, w.Root(), manySetup)
	defer sh(t, w.Root(), "chmod -R u+rwx .")
	before := tree(t, w.Root())
	// An overlay wants both of its folders on one filesystem, not the lower one.
	step(t, w, "s", manyStep)
	after := tree(t, w.Root())
	sh(t, w.Root(), `[ "$(cat h2)" = 2 ] && [ "$(cat new/deep/n)" = n ] && ! [ -e whole ] && [ -z "$(find . -name '.harness-tmp*')" ]`)
	for range 2 {
		if _, cs, err := w.Restore(Restore{}); err != nil || len(cs.Conflicts) > 0 {
			t.Fatal(err, cs)
		}
		same(t, "undo", before, tree(t, w.Root()))
		if _, cs, err := w.Restore(Restore{Redo: true}); err != nil || len(cs.Conflicts) > 0 {
			t.Fatal(err, cs)
		}
		same(t, "redo", after, tree(t, w.Root()))
	}
}

func TestDiff(t *testing.T) {
	w := open(t)
	sh(t, w.Root(), `echo 1 > f; printf 'a\0' > bin; mkdir d; echo x > d/x; echo old > gone`)
	step(t, w, "one", "", Edit{Path: "f", Data: []byte("2\n")}, Edit{Path: "bin", Data: []byte("b\x00")}, Edit{Op: Delete, Path: "d"})
	step(t, w, "two", "", Edit{Path: "f", Data: []byte("3\n")}, Edit{Path: "n", Data: []byte("new")}, Edit{Op: Delete, Path: "gone"})
	for _, c := range []struct {
		step, path, want string
	}{
		{"", "f", "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+3\n"},
		{"one", "f", "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+2\n"},
		{"two", "f", "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-2\n+3\n"},
		{"", "bin", "diff --git a/bin b/bin\nBinary files a/bin and b/bin differ\n"},
		{"", "d", "diff --git a/d/x b/d/x\ndeleted file mode 100644\n--- a/d/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"},
		{"", "n", "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+new\n\\ No newline at end of file\n"},
		{"one", "n", ""},
	} {
		got, err := w.Diff(c.step, []string{c.path}, nil)
		if err != nil || got != c.want {
			t.Errorf("%s %s: %v\n%s\nwant\n%s", c.step, c.path, err, got, c.want)
		}
	}
}
