package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A person, or a program of theirs, puts a link in the place of a folder while
// a step lands or is undone: nothing of it reaches where the link leads.
func TestParentSwapped(t *testing.T) {
	for _, at := range []string{"swap d/", "saved d/", "taken d/", "placed d/", "in place"} {
		for _, undo := range []bool{false, true} {
			w := open(t)
			outside := t.TempDir()
			sh(t, w.Root(), `mkdir d; for f in mod del link; do echo 1 > d/$f; done; ln d/link d/other; mkdir d/sub; echo 1 > d/sub/a; chmod 750 d/sub`)
			sh(t, outside, `for f in mod del link new; do echo theirs > $f; done; mkdir sub; echo theirs > sub/a; chmod 700 sub`)
			before := tree(t, outside)
			swapped := 0
			attack := func(name string) {
				if strings.HasPrefix(name, at) && swapped == 0 {
					swapped++
					os.Rename(filepath.Join(w.Root(), "d"), filepath.Join(w.Root(), "moved"))
					os.Symlink(outside, filepath.Join(w.Root(), "d"))
				}
			}
			land := func() error {
				return tryStep(w, "s", "", Edit{Path: "d/mod", Data: []byte("2\n")}, Edit{Op: Delete, Path: "d/del"},
					Edit{Path: "d/link", Data: []byte("2\n")}, Edit{Path: "d/new", Data: []byte("2\n")}, Edit{Path: "d/fresh/x", Data: []byte("2\n")}, Edit{Op: Delete, Path: "d/sub/a"})
			}
			if undo {
				if err := land(); err != nil {
					t.Fatal(err)
				}
			}
			boundary = attack
			if undo {
				w.Restore(Restore{})
			} else {
				land()
			}
			boundary = func(string) {}
			if swapped == 0 {
				t.Errorf("%s, undo %v: there was no moment to attack", at, undo)
			}
			same(t, at, before, tree(t, outside))
		}
	}
}
