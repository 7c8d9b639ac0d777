//go:build linux

package workspace

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The test binary is also the child that runs a command in an overlay, and the
// one that is killed.
func TestMain(m *testing.M) {
	switch os.Getenv("WORKSPACE_CHILD") {
	case "overlay":
		fmt.Fprintln(os.Stderr, overlayChild(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]))
		os.Exit(125)
	case "full":
		fullChild(os.Args[1], os.Args[2])
	case "kill":
		killChild()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func overlayChild(root, lower, upper, work, cmd string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	opts := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,userxattr", lower, upper, work)
	if err := unix.Mount("overlay", root, "overlay", 0, opts); err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	return unix.Exec("/bin/sh", []string{"sh", "-ec", cmd}, append(os.Environ(), "WORKSPACE_CHILD="))
}

// shell runs a command as a step would: in an overlay over the root.
func shell(w *Workspace, x *Tx, cmd string) error {
	if w.direct != nil {
		if err := x.Expose(context.Background()); err != nil {
			return err
		}
		c := exec.Command("/bin/sh", "-ec", cmd)
		c.Dir = w.Root()
		out, err := c.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s: %w: %s", cmd, err, out)
		}
		return errors.Join(err, x.Gather())
	}
	out, err := namespaced("overlay", w.Root(), strings.Join(append(x.Lower(), w.Root()), ":"), x.Upper(), x.Work(), cmd)
	if err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	return nil
}

// namespaced runs this binary as a child in user and mount namespaces of its own.
func namespaced(what string, args ...string) ([]byte, error) {
	c := exec.Command("/proc/self/exe", args...)
	c.Env = append(os.Environ(), "WORKSPACE_CHILD="+what)
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	return c.CombinedOutput()
}

func needOverlay(t testing.TB) {
	t.Helper()
	w := open(t)
	x, err := w.Begin("probe")
	if err != nil {
		t.Fatal(err)
	}
	defer x.Discard()
	if err := shell(w, x, "true"); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() != 125 {
			t.Fatal(err)
		}
		t.Skip("no overlay in a user namespace here: ", err)
	}
}

func open(t testing.TB) *Workspace {
	t.Helper()
	w, err := opened(t.TempDir(), filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// step runs one whole step, a command's or, where edits are given, a file action's.
func step(t testing.TB, w *Workspace, id, cmd string, edits ...Edit) {
	t.Helper()
	if err := tryStep(w, id, cmd, edits...); err != nil {
		t.Fatal(err)
	}
}

func tryStep(w *Workspace, id, cmd string, edits ...Edit) error {
	x, err := w.Begin(id)
	if err != nil {
		return err
	}
	if cmd != "" {
		err = shell(w, x, cmd)
	} else {
		err = x.Stage(edits)
	}
	if err == nil {
		_, err = x.Changes()
	}
	if err != nil {
		x.Discard()
		return err
	}
	return x.Land()
}

// tree is all that is under a folder: type, mode, content.
func tree(t testing.TB, root string) map[string]string {
	t.Helper()
	m := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		s := info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if len(data) > 60 {
				data = fmt.Appendf(nil, "%x", sha256.Sum256(data))
			}
			s += " " + strconv.Quote(string(data))
		} else if info.Mode()&fs.ModeSymlink != 0 {
			to, _ := os.Readlink(path)
			s += " -> " + to
		}
		rel, _ := filepath.Rel(root, path)
		m[rel] = s
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func differences(a, b map[string]string) (d []string) {
	for p, x := range a {
		if b[p] != x {
			d = append(d, fmt.Sprintf("%s: %s, now %s", p, x, b[p]))
		}
	}
	for p, y := range b {
		if _, ok := a[p]; !ok {
			d = append(d, p+": new "+y)
		}
	}
	return d
}

func same(t testing.TB, what string, want, got map[string]string) {
	t.Helper()
	if d := differences(want, got); d != nil {
		t.Fatalf("%s: %v", what, d)
	}
}

func sh(t testing.TB, dir, cmd string) {
	t.Helper()
	c := exec.Command("/bin/bash", "-ec", cmd)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", cmd, err, out)
	}
}

func execCommand(dir, cmd string) *exec.Cmd {
	c := exec.Command("/bin/sh", "-ec", cmd)
	c.Dir = dir
	return c
}
