//go:build linux

package workspace

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plays says how each case is played: the steps as commands or edits, what a
// person does meanwhile, and a command that holds after the undo.
var plays = map[string]struct {
	sub     string // the workspace, below the folder of the case
	steps   []string
	edit    *Edit
	person  string
	all     bool
	changed string // holds before the undo
	fact    string
}{
	"S-und-001": {steps: []string{"echo v2 > new.txt"}, fact: `[ "$(cat new.txt)" = v1 ]`},
	"S-und-002": {person: "echo k > x", steps: []string{"rm x"}, changed: "! [ -e x ]", fact: `[ "$(cat x)" = k ]`},
	"S-und-003": {edit: &Edit{Path: ".gitignore", Data: []byte("y\n")}, fact: `[ "$(cat notes.tmp)" = keep ]`},
	"S-und-004": {steps: []string{"rm -r node_modules"}, changed: "! [ -e node_modules ]", fact: `[ "$(cat node_modules/m)" = a ]`},
	"S-und-005": {steps: []string{"printf 2 > f"}, changed: `[ "$(cat f)" = 2 ]`, fact: `[ "$(cat f)" = 1 ]`},
	"S-und-006": {edit: &Edit{Path: "a", Data: []byte("b\n")}, fact: `git status --porcelain | grep -qx '?? u'`},
	"S-und-007": {edit: &Edit{Path: "a", Data: []byte("b\n")}, changed: `[ -e a ]`, fact: `[ -e .git/index.lock ] && ! [ -e a ]`},
	"S-und-010": {steps: []string{"rm l; echo b > l"}, changed: "! [ -L l ]", fact: `[ "$(readlink l)" = real ]`},
	"S-und-011": {steps: []string{"rm dead"}, changed: "! [ -L dead ]", fact: `[ "$(readlink dead)" = nowhere ]`},
	"S-und-012": {steps: []string{"rm -rf inner"}, changed: "! [ -e inner ]", fact: `[ -e inner/.git/HEAD ] && [ -e inner/a ]`},
	"S-und-013": {steps: []string{"echo b > s/a"}, changed: `[ "$(cat s/a)" = b ]`, fact: `[ "$(cat s/a)" = a ]`},
	"S-und-014": {steps: []string{"echo 2 > f"}, changed: `[ "$(cat f)" = 2 ]`, fact: `[ "$(cat f)" = 1 ]`},
	"S-und-015": {edit: &Edit{Path: "f", Data: []byte("2\n")}, changed: `[ "$(cat f)" = 2 ]`, fact: `[ "$(cat f)" = 1 ]`},
	"S-und-018": {steps: []string{"echo z > f"}, changed: `[ "$(cat f)" = z ]`, fact: `[ "$(wc -c < f)" = 6 ]`},
	"S-und-019": {sub: "x", edit: &Edit{Path: "f", Data: []byte("2\n")}, fact: `[ "$(cat ../y/f)" = mine ]`},
	"S-und-020": {steps: []string{"echo mid > f", "echo after > f"}, all: true, fact: `[ "$(cat f)" = before ]`},
}

// ownTests are the cases that have a test of their own.
var ownTests = map[string]string{
	"S-und-008": "TestPersonElsewhere", "S-und-009": "TestBranchAfterUndo",
	"S-und-016": "TestKills", "S-und-017": "TestStoreFull",
}

func TestUndoCases(t *testing.T) {
	needOverlay(t)
	data, err := os.ReadFile("testdata/undo.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var c struct {
			ID, Why string
			Setup   struct {
				Bash  string
				Files map[string]string
			}
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		if ownTests[c.ID] != "" {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			play, ok := plays[c.ID]
			if !ok {
				t.Fatalf("nothing plays %s", c.ID)
			}
			dir := t.TempDir()
			for name, text := range c.Setup.Files {
				os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
			}
			sh(t, dir, "export HOME="+t.TempDir()+"; "+strings.Replace(c.Setup.Bash, "git config --unset user.name;", "", 1)+"\n"+play.person)
			w, err := opened(filepath.Join(dir, play.sub), filepath.Join(t.TempDir(), "state"))
			if err != nil {
				t.Fatal(err)
			}
			before := tree(t, dir)
			for _, cmd := range play.steps {
				step(t, w, cmd, cmd)
			}
			if play.edit != nil {
				step(t, w, "edit", "", *play.edit)
			}
			if len(differences(before, tree(t, dir))) == 0 {
				t.Fatal("the steps changed nothing")
			}
			if play.changed != "" {
				sh(t, w.Root(), play.changed)
			}
			after := tree(t, dir)
			_, cs, err := w.Restore(Restore{All: play.all})
			if err != nil || len(cs.Conflicts) > 0 {
				t.Fatal(err, cs)
			}
			same(t, c.Why, before, tree(t, dir))
			sh(t, w.Root(), "export HOME="+t.TempDir()+"; "+play.fact)
			same(t, "only that", before, withoutIndex(before, tree(t, dir)))
			if _, _, err := w.Restore(Restore{Redo: true}); err != nil {
				t.Fatal(err)
			}
			same(t, "redo", after, withoutIndex(after, tree(t, dir)))
		})
	}
}

// withoutIndex forgives that git status, run by the test, refreshes the index.
func withoutIndex(want, got map[string]string) map[string]string {
	if _, ok := want[".git/index"]; ok {
		got[".git/index"] = want[".git/index"]
	}
	return got
}

func TestPersonElsewhere(t *testing.T) {
	w := open(t)
	sh(t, w.Root(), "echo 1 > f; echo 1 > h; echo 1 > g")
	step(t, w, "a", "", Edit{Path: "f", Data: []byte("2\n")}, Edit{Path: "g", Data: []byte("2\n")})
	sh(t, w.Root(), "echo 3 > h; echo mine > g")
	_, cs, err := w.Restore(Restore{})
	if err != nil {
		t.Fatal(err)
	}
	if len(cs.Conflicts) != 1 || cs.Conflicts[0].Path != "g" {
		t.Fatal(cs)
	}
	if data, err := os.ReadFile(cs.Conflicts[0].Kept); err != nil || string(data) != "1\n" {
		t.Fatalf("the version before is not kept: %q %v", data, err)
	}
	sh(t, w.Root(), `[ "$(cat f)" = 1 ] && [ "$(cat h)" = 3 ] && [ "$(cat g)" = mine ]`)
}

func TestBranchAfterUndo(t *testing.T) {
	w := open(t)
	sh(t, w.Root(), "echo 1 > f")
	step(t, w, "two", "", Edit{Path: "f", Data: []byte("2\n")})
	if _, _, err := w.Restore(Restore{}); err != nil {
		t.Fatal(err)
	}
	step(t, w, "four", "", Edit{Path: "f", Data: []byte("4\n")})
	if _, _, err := w.Restore(Restore{Redo: true}); err == nil {
		t.Fatal("the older branch was redone over the newer")
	}
	text, err := w.Diff("two", nil, nil)
	if err != nil || !strings.Contains(text, "+2\n") {
		t.Fatalf("the version 2 cannot be had: %v\n%s", err, text)
	}
}

func TestConflictWhileRunning(t *testing.T) {
	needOverlay(t)
	w := open(t)
	sh(t, w.Root(), "mkdir d; echo 1 > f; echo 1 > g; echo 1 > d/x; echo 1 > gone")
	x, err := w.Begin("s")
	if err != nil {
		t.Fatal(err)
	}
	if err := shell(w, x, "echo 2 > f; echo 2 > g; rm -r d; echo 2 >> gone"); err != nil {
		t.Fatal(err)
	}
	sh(t, w.Root(), "echo mine > f; echo mine > d/x; rm gone")
	cs, err := x.Changes()
	if err != nil || len(cs.Changes) != 1 || len(cs.Conflicts) != 3 {
		t.Fatal(err, cs)
	}
	if err := x.Land(); err != nil {
		t.Fatal(err)
	}
	sh(t, w.Root(), `[ "$(cat f)" = mine ] && [ "$(cat g)" = 2 ] && [ "$(cat d/x)" = mine ] && ! [ -e gone ]`)
	for _, c := range cs.Conflicts {
		if c.Path == "f" {
			if data, err := os.ReadFile(c.Kept); err != nil || string(data) != "2\n" {
				t.Fatalf("the step's version is not kept: %q %v", data, err)
			}
		}
	}
}

func TestNothingChanged(t *testing.T) {
	needOverlay(t)
	w := open(t)
	sh(t, w.Root(), "mkdir -p d/e; echo 1 > d/e/f; ln -s f l")
	x, err := w.Begin("s")
	if err != nil {
		t.Fatal(err)
	}
	defer x.Discard()
	if err := shell(w, x, "touch d/e/f; chmod 644 d/e/f; echo 1 > d/e/f; touch n; rm n; rm l; ln -s f l"); err != nil {
		t.Fatal(err)
	}
	if cs, err := x.Changes(); err != nil || cs.Total != 0 || len(cs.Conflicts) != 0 {
		t.Fatal(err, cs)
	}
}

// A file that a command renames, or gives another name, is no conflict.
func TestRenamedByCommand(t *testing.T) {
	needOverlay(t)
	w := open(t)
	sh(t, w.Root(), "mkdir d; echo 1 > a; echo 2 > b; echo 3 > d/c")
	before := tree(t, w.Root())
	step(t, w, "s", "mv a d/a; mkdir -p n/m; mv d/c n/m/c; ln b b2; mv b b.bak; echo 4 > b")
	after := map[string]string{"b": "4\n", "b.bak": "2\n", "b2": "2\n", "d/a": "1\n", "n/m/c": "3\n"}
	for p, text := range after {
		if data, err := os.ReadFile(filepath.Join(w.Root(), p)); err != nil || string(data) != text {
			t.Fatalf("%s: %q, %v", p, data, err)
		}
	}
	if _, _, err := w.Restore(Restore{}); err != nil {
		t.Fatal(err)
	}
	same(t, "undo", before, tree(t, w.Root()))
}
