//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor"
	"harness/planner/model/recorded"
)

// undoPlay says how a case is played on the executor: what a person does before,
// the steps, and what holds after them and after the undo, as commands.
type undoPlay struct {
	sub, before string // sub is the workspace, below the folder of the case
	steps       func(b *bed) []*v1.StepResult
	then, fact  string
}

func run(cmds ...string) func(*bed) []*v1.StepResult {
	return func(b *bed) (rs []*v1.StepResult) {
		for _, c := range cmds {
			rs = append(rs, b.want(b.sh(c), v1.Status_ok))
		}
		return rs
	}
}

func writes(path, text string) func(*bed) []*v1.StepResult {
	return func(b *bed) []*v1.StepResult {
		if _, err := os.Lstat(filepath.Join(b.dir, path)); err == nil {
			b.want(b.do(contract.ReadFile, map[string]any{"path": path}), v1.Status_ok)
		}
		return []*v1.StepResult{b.want(b.do(contract.WriteFile, map[string]any{"path": path, "content": text}), v1.Status_ok)}
	}
}

var undoPlays = map[string]undoPlay{
	"S-und-001": {steps: run("echo v2 > new.txt"), then: `[ "$(cat new.txt)" = v2 ]`, fact: `[ "$(cat new.txt)" = v1 ]`},
	"S-und-002": {before: "echo k > x", steps: run("rm x"), then: "! [ -e x ]", fact: `[ "$(cat x)" = k ]`},
	"S-und-003": {steps: writes(".gitignore", "y\n"), then: `[ "$(cat .gitignore)" = y ]`, fact: `[ "$(cat notes.tmp)" = keep ]`},
	"S-und-004": {steps: run("rm -r node_modules"), then: "! [ -e node_modules ]", fact: `[ "$(cat node_modules/m)" = a ]`},
	"S-und-005": {steps: run(`python3 -c "open('f','w').write('2')" || printf 2 > f`), then: `[ "$(cat f)" = 2 ]`, fact: `[ "$(cat f)" = 1 ]`},
	"S-und-006": {steps: writes("a", "b\n"), then: `[ "$(cat a)" = b ]`, fact: `[ "$(git status --porcelain)" = "?? u" ]`},
	"S-und-007": {steps: writes("a", "b\n"), then: "[ -e a ]", fact: "[ -e .git/index.lock ] && ! [ -e a ]"},
	"S-und-010": {steps: run("rm l; echo b > l"), then: "! [ -L l ]", fact: `[ "$(readlink l)" = real ]`},
	"S-und-011": {steps: run("rm dead"), then: "! [ -L dead ]", fact: `[ "$(readlink dead)" = nowhere ]`},
	"S-und-013": {steps: run("echo b > s/a"), then: `[ "$(cat s/a)" = b ]`, fact: `[ "$(cat s/a)" = a ]`},
	"S-und-014": {steps: writes("f", "2\n"), then: `[ "$(cat f)" = 2 ]`, fact: `[ "$(cat f)" = 1 ]`},
	"S-und-015": {steps: writes("f", "2\n"), then: `[ "$(cat f)" = 2 ]`, fact: `[ "$(cat f)" = 1 ]`},
	"S-und-018": {steps: run("echo z > f"), then: `[ "$(cat f)" = z ]`, fact: `printf 'a\r\nb\377\000' | cmp - f`},
	"S-und-019": {sub: "x", steps: writes("f", "2\n"), then: `[ "$(cat f)" = 2 ]`, fact: `[ "$(cat ../y/f)" = mine ]`},
}

// undoTests are the cases that are no steps and an undo.
var undoTests = map[string]func(*testing.T, caseLine){
	"S-und-008": undoBesideAPerson,
	"S-und-009": undoneVersionStays,
	"S-und-012": removesNested,
	"S-und-016": func(t *testing.T, _ caseLine) { killedSnapshots(t) },
	"S-und-017": func(t *testing.T, _ caseLine) { TestDiskFullAndReadOnly(t) },
	"S-und-020": undoOfRetriedRun,
}

func TestUndoCases(t *testing.T) {
	cases := caseLines(t, "../executor/workspace/testdata/undo.jsonl")
	if len(cases) != 20 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			if own := undoTests[c.ID]; own != nil {
				own(t, c)
				return
			}
			play, ok := undoPlays[c.ID]
			if !ok {
				t.Fatalf("nothing plays %s", c.ID)
			}
			dir := setUp(t, c, play.before)
			if c.ID == "S-und-015" { // no git program, and no other either
				t.Setenv("PATH", t.TempDir())
			}
			b := newBedOn(t, filepath.Join(dir, play.sub), allowAll, direct)
			before := tree(t, dir)
			results := play.steps(b)
			after := tree(t, dir)
			holds(t, b.dir, play.then)
			b.undoes(len(results))
			sameTree(t, c.Why, before, tree(t, dir))
			holds(t, b.dir, play.fact)
			b.want(b.do(contract.Restore, map[string]any{"redo": true}), v1.Status_ok)
			// git status, which a fact asks, may have written the index anew.
			index := filepath.Join(dir, ".git/index")
			redone := tree(t, dir)
			if _, ok := redone[index]; ok {
				redone[index] = after[index]
			}
			sameTree(t, "redo", after, redone)
		})
	}
}

// setUp makes the folder of a case.
func setUp(t *testing.T, c caseLine, more string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range c.Setup.Files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// The case unsets a name that a fresh repository does not have.
	holds(t, dir, strings.Replace(c.Setup.Bash, "git config --unset user.name", "! git config --unset user.name", 1)+"\n"+more)
	return dir
}

// holds runs a command outside of any sandbox, as a person would.
func holds(t *testing.T, dir, cmd string) {
	t.Helper()
	c := exec.Command("/bin/bash", "-ec", cmd)
	c.Dir = dir
	c.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + t.TempDir(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", cmd, err, out)
	}
}

// undoes takes the last n steps back, one by one, all without a conflict.
func (b *bed) undoes(n int) {
	b.t.Helper()
	for range n {
		if r := b.want(b.do(contract.Restore, map[string]any{}), v1.Status_ok); r.GetChanges().GetTotal() == 0 {
			b.t.Errorf("the undo changed nothing: %v", r)
		}
	}
}

// A repository's data is not for a command to take away, not even with leave for
// all commands: nothing is lost that an undo would have to bring back. What is
// removed beside it comes back.
func removesNested(t *testing.T, c caseLine) {
	dir := setUp(t, c, "mkdir inner/src; echo b > inner/src/b")
	b := newBedOn(t, dir, allowAll, direct)
	before := tree(t, dir)
	b.want(b.sh("rm -rf inner"), v1.Status_denied)
	sameTree(t, c.Why, before, tree(t, dir))
	run("rm -r inner/a inner/src")(b)
	b.absent("inner/a", "inner/src")
	b.undoes(1)
	sameTree(t, "undo", before, tree(t, dir))
}

func undoBesideAPerson(t *testing.T, c caseLine) {
	b := newBedOn(t, setUp(t, c, ""), allowAll, direct)
	writes("f", "2\n")(b)
	b.write("h", "3\n")
	b.undoes(1)
	if f, h := b.read("f"), b.read("h"); f != "1\n" || h != "3\n" {
		t.Errorf("f says %q, h says %q", f, h)
	}
	// And in the same file the person's words stay.
	writes("f", "2\n")(b)
	b.write("f", "mine\n")
	r := b.want(b.do(contract.Restore, map[string]any{}), v1.Status_conflict)
	if f := b.read("f"); f != "mine\n" {
		t.Errorf("f says %q", f)
	}
	if len(r.Changes.Conflicts) != 1 || r.Changes.Conflicts[0].Path != "f" {
		t.Fatalf("conflicts: %v", r.Changes)
	}
	if kept, err := os.ReadFile(r.Changes.Conflicts[0].Kept); err != nil || string(kept) != "1\n" {
		t.Errorf("the version before is not kept: %q %v", kept, err)
	}
}

func undoneVersionStays(t *testing.T, c caseLine) {
	b := newBedOn(t, setUp(t, c, ""), allowAll, direct)
	two := writes("f", "2\n")(b)[0]
	b.undoes(1)
	writes("f", "4\n")(b)
	if r := b.do(contract.Restore, map[string]any{"redo": true}); r.Status == v1.Status_ok || b.read("f") != "4\n" {
		t.Errorf("redo went over the newer branch: %v, f says %q", r.Status, b.read("f"))
	}
	r := b.want(b.do(contract.Diff, map[string]any{"step": two.StepId}), v1.Status_ok)
	contains(t, r.GetOutput().GetText(), "+2\n")
}

// The provider fails in the middle of a run, which a retry goes on with.
func undoOfRetriedRun(t *testing.T, c caseLine) {
	b := newBedOn(t, setUp(t, c, ""), allowAll, direct)
	r := b.task(runs("echo mid > f"), recorded.Reply{Fault: "529"}, recorded.Reply{Fault: "reset"}, runs("echo after > f"), ends)
	if strings.Join(r.statuses, " ") != "ok ok" || b.read("f") != "after\n" {
		t.Fatalf("%v, f says %q", r.statuses, b.read("f"))
	}
	b.want(b.do(contract.Restore, map[string]any{"all": true}), v1.Status_ok)
	if f := b.read("f"); f != "before\n" {
		t.Errorf("f says %q", f)
	}
}

const undoChild = "E2E_UNDO_CHILD" // workspace and state of an executor that is to be killed

// killedSnapshots kills an executor three times in the middle of a step's
// landing, and looks at what it left when it has begun again.
func killedSnapshots(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	if both := os.Getenv(undoChild); both != "" {
		dir, state, _ = strings.Cut(both, ":")
		b := &bed{t: t, dir: dir, id: "x1", x: newExecutor(t, dir, state, allowAll)}
		if _, err := b.x.Open(t.Context(), &v1.OpenRequest{SessionId: b.id}); err != nil {
			t.Fatal(err)
		}
		r := b.sh("sed -i s/old/new/ many/*/*")
		t.Fatalf("it lived on: %v", r)
	}
	ws := filepath.Join(state, "sessions", "x1", "workspace")
	open := func() (*bed, *executor.Executor) {
		x, err := executor.New(executor.Config{Workspace: dir, State: state, Policy: allowAll, Sandbox: os.Getenv(onRung)})
		if err != nil {
			t.Fatal(err)
		}
		b := &bed{t: t, dir: dir, id: "x1", x: x}
		if _, err := x.Open(t.Context(), &v1.OpenRequest{SessionId: b.id}); err != nil {
			t.Fatal(err)
		}
		return b, x
	}
	holds(t, dir, "for d in $(seq 30); do mkdir -p many/$d; for f in $(seq 60); do echo old > many/$d/$f; done; done; echo 1 > f")
	start := tree(t, dir)
	b, x := open()
	writes("f", "2\n")(b)
	if err := x.Shutdown(); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		before := tree(t, dir)
		c := exec.Command("/proc/self/exe", "-test.run=^TestUndoCases$/^S-und-016$")
		c.Env = append(os.Environ(), undoChild+"="+dir+":"+state)
		c.Stdout, c.Stderr = os.Stderr, os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		cut := func() bool { // the first file has been swapped, or taken out of the tree
			olds, _ := filepath.Glob(filepath.Join(ws, "layers", "*", "old", "1"))
			gathered, _ := filepath.Glob(filepath.Join(ws, "layers", "*", "upper", "many", "1", "1"))
			return len(olds) > 1 || os.Getenv(onRung) != "" && len(gathered) > 0
		}
		for end := time.Now().Add(20 * time.Second); !cut() && time.Now().Before(end); {
			time.Sleep(100 * time.Microsecond)
		}
		c.Process.Kill()
		if err := c.Wait(); err == nil || c.ProcessState.Exited() {
			t.Fatalf("it was not killed in the middle: %v", c.ProcessState)
		}
		b, x = open()
		now := tree(t, dir)
		if whole := strings.Count(fmt.Sprint(now), "new\n"); whole != 0 && whole != 1800 {
			t.Fatalf("kill %d: %d of 1800 files are new", n, whole)
		} else if whole == 0 {
			sameTree(t, "a killed step", before, now)
		} else {
			b.undoes(1)
			sameTree(t, "a killed step, undone", before, tree(t, dir))
		}
		for _, stray := range []string{"active/*", "layers/drop-*", "restore.json", "*.tmp", "layers/*/*.tmp", "layers/*/work"} {
			if left, _ := filepath.Glob(filepath.Join(ws, stray)); len(left) > 0 {
				t.Errorf("kill %d left %v", n, left)
			}
		}
		if n == 2 {
			b.undoes(1)
			sameTree(t, "the undo of the earlier step", start, tree(t, dir))
		}
		if err := x.Shutdown(); err != nil {
			t.Fatal(err)
		}
	}
}
