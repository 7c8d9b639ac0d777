package workspace

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// A command may leave folders and files that their modes close to their owner.
// Root passes through them, so root has a normal user try.
func TestClosedToTheirOwner(t *testing.T) {
	needOverlay(t)
	if os.Geteuid() == 0 {
		dir, err := os.MkdirTemp("", "closed")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestClosedToTheirOwner$")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("as a normal user: %v\n%s", err, out)
		}
		return
	}
	w := open(t)
	sh(t, w.Root(), "mkdir -p old/in; echo 1 > old/in/f; echo 2 > keep")
	before := tree(t, w.Root())
	step(t, w, "s1", "mkdir -p d/x/y e; echo 1 > d/x/f; echo s > secret; chmod 0 secret; chmod 0 d/x/y d/x e; rm keep")
	for range 2 {
		for name, want := range map[string]os.FileMode{"secret": 0, "d/x": os.ModeDir, "e": os.ModeDir} {
			if info, err := os.Lstat(w.at(name)); err != nil || info.Mode() != want {
				t.Errorf("%s: %v %v, want mode %v", name, info, err, want)
			}
		}
		if _, _, err := w.Restore(Restore{}); err != nil {
			t.Fatal(err)
		}
		same(t, "undo", before, tree(t, w.Root()))
		if _, cs, err := w.Restore(Restore{Redo: true}); err != nil || len(cs.Conflicts) > 0 {
			t.Fatal(err, cs)
		}
	}
	if _, _, err := w.Restore(Restore{}); err != nil {
		t.Fatal(err)
	}
	same(t, "the last undo", before, tree(t, w.Root()))
}
