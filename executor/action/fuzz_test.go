package action

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/workspace"
)

// Whatever a patch says, it ends in edits inside the root or a typed error.
func FuzzPatch(f *testing.F) {
	f.Add("*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch\n")
	f.Add("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n")
	f.Add("*** Begin Patch\n*** Add File: ../a\n+x\n*** Delete File: a\n*** End Patch")
	f.Add("diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n")
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("x\n"), 0o644); err != nil {
		f.Fatal(err)
	}
	w, err := workspace.Open(dir, filepath.Join(f.TempDir(), "state"))
	if err != nil {
		f.Fatal(err)
	}
	root, err := w.Tree()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, patch string) {
		out, err := Patch(t.Context(), Env{Root: root, Dir: dir}, &v1.ApplyPatchArgs{Patch: patch})
		if err != nil {
			if e := contract.AsError(err); e.Message == "" || e.Kind == v1.Error_internal {
				t.Errorf("%v: %v", e.Kind, err)
			}
			return
		}
		for _, e := range out.Edits {
			if !filepath.IsLocal(e.Path) {
				t.Errorf("an edit of %q", e.Path)
			}
		}
	})
}

// An edit that is taken changes nothing outside of the place that it names.
func FuzzEdit(f *testing.F) {
	f.Add("a\r\nb\r\nc", "b", "B", false)
	f.Add("\ufeffusing X;\n", "using X;", "y", false)
	f.Add("aaaa", "aa", "b", true)
	f.Add("if y:\n    a()\n", "if y:\n  a()", "b", false)
	f.Add("x\xff\n", "x", "y", false)
	f.Fuzz(func(t *testing.T, text, old, new string, all bool) {
		if old == "" || strings.ContainsRune(text, 0) || strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
			return
		}
		out, n, note, err := replaceIn("f", []byte(text), old, new, all)
		if err != nil {
			return
		}
		if n == 0 {
			t.Error("taken, but nothing was replaced")
		}
		if note == "" && !strings.Contains(text, "\r\n") && !strings.Contains(old, "\r\n") {
			if want := strings.ReplaceAll(text, old, new); string(out) != want {
				t.Errorf("%q, want %q", out, want)
			}
		}
	})
}
