//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/policy"
)

// The executor's disk is full, then it has room again; it is read-only, then it
// is not. What cannot be recorded does not happen and says so, and the rest is whole.
func TestDiskFullAndReadOnly(t *testing.T) {
	if os.Getenv("E2E_DISK") == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestDiskFullAndReadOnly$", "-test.v")
		cmd.Env = append(os.Environ(), "E2E_DISK=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.EPERM) {
			t.Skip("no namespaces here: ", err)
		}
		if err != nil || !bytes.Contains(out, []byte("--- PASS")) {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	state := t.TempDir()
	if err := unix.Mount("tmpfs", state, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(state, unix.MNT_DETACH)
	remount := func(flags uintptr) error { return unix.Mount("", state, "", unix.MS_REMOUNT|flags, "size=4m") }
	b := &bed{t: t, dir: t.TempDir(), id: "x1"}
	b.x = newExecutor(t, b.dir, state, policy.Options{})
	if _, err := b.x.Open(t.Context(), &v1.OpenRequest{SessionId: b.id}); err != nil {
		t.Fatal(err)
	}
	n, heads := 0, []string{}
	given := map[*v1.Step]*v1.StepResult{}
	write := func() (*v1.StepResult, string, error) {
		n++
		name := fmt.Sprintf("f%d", n)
		step := b.step(contract.WriteFile, map[string]any{"path": name, "content": strings.Repeat("x", 100)})
		step.StepId = fmt.Sprintf("s%d", n)
		r, err := b.x.Submit(t.Context(), step)
		if err == nil && r.Status == v1.Status_ok {
			given[step], heads = r, append(heads, r.AuditHead)
		}
		_, lerr := os.Lstat(filepath.Join(b.dir, name))
		if there := lerr == nil; there != (err == nil && r.Status == v1.Status_ok) {
			t.Errorf("%s: there %v, but %v %v", name, there, r, err)
		}
		return r, name, err
	}
	works := func() {
		t.Helper()
		if r, name, err := write(); err != nil || r.Status != v1.Status_ok || b.read(name) == "" {
			t.Fatalf("%v %v", r, err)
		}
	}
	fails := func() {
		t.Helper()
		r, _, err := write()
		if err == nil && r.Status == v1.Status_ok {
			t.Fatalf("it went well: %v", r)
		}
		if err == nil {
			err = contract.FromProto(r.Error)
		}
		if contract.AsError(err).Kind != v1.Error_unavailable {
			t.Errorf("not a clear error: %v", err)
		}
	}
	works()
	filler := filepath.Join(state, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for chunk := 1 << 20; chunk > 0; chunk /= 16 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, chunk))
		}
	}
	f.Close()
	for range 3 {
		fails()
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	works()
	for range 50 { // room for less and less
		f, err := os.OpenFile(filler, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			break
		}
		f.Write(make([]byte, 100<<10))
		f.Close()
		write()
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	works()
	for step, was := range given {
		if r, err := b.x.Submit(t.Context(), step); err != nil || !proto.Equal(r, was) {
			t.Errorf("%s: %v %v, was %v", step.StepId, r, err, was)
		}
	}
	if f := verified(t, state, heads...); len(f) > 0 {
		t.Errorf("%v", f)
	}
	if err := errors.Join(b.x.Close(t.Context(), &v1.CloseRequest{SessionId: b.id}), remount(unix.MS_RDONLY)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.x.Open(t.Context(), &v1.OpenRequest{SessionId: b.id}); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("opened on a read-only disk: %v", err)
	}
	if err := remount(0); err != nil {
		t.Fatal(err)
	}
	if _, err := b.x.Open(t.Context(), &v1.OpenRequest{SessionId: b.id}); err != nil {
		t.Fatal(err)
	}
	works()
}
