package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestAbove(t *testing.T) {
	root := t.TempDir()
	at := func(p string) string { return filepath.Join(root, filepath.FromSlash(p)) }
	for _, d := range []string{"repo/.git", "repo/a/sub/b", "repo/a/empty/.git", "repo/a/empty/c", "repo/own/.git", "alone/x"} {
		if err := os.MkdirAll(at(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for f, text := range map[string]string{"repo/.git/HEAD": "ref: refs/heads/main\n", "repo/own/.git/HEAD": "ref: refs/heads/main\n", "repo/a/sub/.git": "gitdir: ../../.git/modules/sub\n"} {
		if err := os.WriteFile(at(f), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string][]string{
		"repo":           nil,
		"repo/a":         {"repo"},
		"repo/a/sub":     {"repo", "repo/a"},
		"repo/a/sub/b":   {"repo", "repo/a", "repo/a/sub"},
		"repo/a/empty/c": {"repo", "repo/a", "repo/a/empty"},
		"repo/own":       nil,
		"alone/x":        nil,
	} {
		var full []string
		for _, w := range want {
			full = append(full, at(w))
		}
		if got := above(at(dir)); !slices.Equal(got, full) {
			t.Errorf("%s: %v, want %v", dir, got, full)
		}
	}
}
