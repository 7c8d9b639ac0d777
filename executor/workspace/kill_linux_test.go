//go:build linux

package workspace

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	manySetup = `mkdir -p d/e whole/sub f2 ro; echo 1 > mod; echo 1 > del; echo 1 > d/e/f; echo 1 > whole/a; echo 1 > whole/sub/b
echo 1 > d2f; echo 1 > f2/x; ln -s mod l; echo 1 > h1; ln h1 h2; echo 1 > ro/a; chmod 555 ro; echo 1 > priv; chmod 600 priv`
	manyStep = `echo 2 > mod; rm del; rm -r whole; mkdir -p new/deep; echo n > new/deep/n; rm d2f; mkdir d2f; echo 2 > d2f/in
rm -r f2; echo 2 > f2; rm l; mkdir l; echo 2 > l/x; echo 2 > h1; chmod 700 d; rm -r d/e; mkdir d/e; echo 3 > d/e/g
chmod 755 ro; echo 2 > ro/a; chmod 555 ro; echo 2 > priv`
)

var every = flag.Int("every", 13, "cut at each so many system calls")

func killChild() {
	root, state, what := os.Args[1], os.Args[2], os.Args[3]
	n, at := 0, 0
	fmt.Sscan(os.Args[4], &at)
	w, err := opened(root, state)
	if err != nil {
		panic(err)
	}
	boundary = func(string) {
		if n++; n == at {
			unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
	}
	switch what {
	case "land":
		err = tryStep(w, "s", manyStep)
	case "undo":
		_, _, err = w.Restore(Restore{All: true})
	case "redo":
		_, _, err = w.Restore(Restore{Redo: true})
	}
	if err != nil {
		panic(err)
	}
}

func TestKills(t *testing.T) {
	needOverlay(t)
	for _, what := range []string{"land", "undo", "redo"} {
		for _, committed := range []bool{true, false} {
			t.Run(fmt.Sprint(what, committed), func(t *testing.T) {
				n := 1
				for ; killAt(t, atBoundary, what, committed, n); n++ {
				}
				if n < 10 {
					t.Fatalf("only %d cuts", n)
				}
				t.Logf("%d cuts", n-1)
			})
		}
	}
}

// cutter runs the child with some arguments, kills it at a point that n names,
// and says whether it got there.
type cutter func(t testing.TB, n int, args ...string) bool

// atBoundary cuts at the n-th boundary that the code itself names.
func atBoundary(t testing.TB, n int, args ...string) bool {
	c := exec.Command("/proc/self/exe", append(args, fmt.Sprint(n))...)
	c.Env = append(os.Environ(), "WORKSPACE_CHILD=kill")
	out, err := c.CombinedOutput()
	st, ok := c.ProcessState.Sys().(syscall.WaitStatus)
	killed := ok && st.Signaled()
	if err != nil && !killed {
		t.Fatalf("%v: %s", err, out)
	}
	return killed
}

// atSyscall cuts at the n-th system call that changes a file.
func atSyscall(t testing.TB, n int, args ...string) bool {
	return runCut(t, n, "WORKSPACE_CHILD=kill", append(args, "0")...)
}

// TestKillsAtSystemCalls cuts at system calls rather than where the code has a
// boundary: at all of them with -every 1.
func TestKillsAtSystemCalls(t *testing.T) {
	needOverlay(t)
	for _, what := range []string{"land", "undo"} {
		t.Run(what, func(t *testing.T) {
			n := 1
			for ; killAt(t, atSyscall, what, n%2 == 0, n); n += *every {
			}
			if n < 60 {
				t.Fatalf("only %d system calls", n)
			}
			t.Logf("%d system calls", n-1)
		})
	}
}

// killAt cuts at the n-th boundary, recovers and compares. It says whether
// there was a cut.
func killAt(t *testing.T, cut cutter, what string, committed bool, n int) bool {
	root, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	sh(t, root, manySetup)
	defer exec.Command("chmod", "-R", "u+rwx", root, state).Run()
	before := tree(t, root)
	w, err := opened(root, state)
	if err != nil {
		t.Fatal(err)
	}
	start, end := before, before // of an undo or redo
	if what != "land" {
		step(t, w, "s", manyStep)
		step(t, w, "s2", "echo 3 > mod; rm -r new; echo 3 > del")
		start = tree(t, root)
	}
	if what == "redo" {
		if _, _, err := w.Restore(Restore{All: true}); err != nil {
			t.Fatal(err)
		}
		same(t, "undo", before, tree(t, root))
		start, end = before, start
	}
	killed := cut(t, n, root, state, what)
	if w, err = Open(root, state); err != nil {
		t.Fatal(err)
	}
	plans, _ := filepath.Glob(filepath.Join(state, "layers", "*", "plan.json"))
	planned := len(plans) > 0
	if err := w.Recover(func(string) bool { return committed }); err != nil {
		t.Fatalf("cut %d: %v", n, err)
	}
	now := tree(t, root)
	after := differences(start, now) != nil
	if what == "undo" && after {
		same(t, fmt.Sprintf("%s, cut %d", what, n), end, now)
	}
	if what == "land" && committed && !after && planned && !inTree {
		t.Fatalf("cut %d: a committed step is lost", n)
	}
	if _, _, err := w.Restore(Restore{All: true}); err == nil {
		same(t, fmt.Sprintf("%s, cut %d, then undo", what, n), before, tree(t, root))
	} else if differences(before, now) != nil {
		t.Fatalf("%s, cut %d: neither before nor undoable: %v %v", what, n, err, differences(before, now))
	}
	left, _ := filepath.Glob(filepath.Join(state, "active", "*"))
	stray, _ := filepath.Glob(filepath.Join(state, "layers", "drop-*"))
	if len(left)+len(stray) > 0 || strings.Contains(fmt.Sprint(now), ".harness-tmp") {
		t.Fatalf("cut %d left %v %v", n, left, stray)
	}
	return killed
}
