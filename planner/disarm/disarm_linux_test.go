package disarm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("DISARM_TEST_DIR"); dir != "" {
		if err := disarmed(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("disarmed")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// disarmed is the child's part: it starts threads, disarms, and tries on old and new threads.
func disarmed(dir string) error {
	execRefused, writeRefused := Probe()
	if execRefused || writeRefused {
		return fmt.Errorf("refused before: exec %v, write %v", execRefused, writeRefused)
	}
	begin, results := make(chan struct{}), make(chan error)
	try := func() {
		runtime.LockOSThread()
		<-begin
		results <- attempts(dir)
	}
	for range 4 {
		go try()
	}
	runtime.Gosched()
	if err := Disarm(filepath.Join(dir, "mine")); err != nil {
		return err
	}
	for range 4 {
		go try()
	}
	close(begin)
	for range 8 {
		if err := <-results; err != nil {
			return err
		}
	}
	execRefused, writeRefused = Probe()
	if !execRefused || !writeRefused {
		return fmt.Errorf("after: exec refused %v, write refused %v", execRefused, writeRefused)
	}
	return nil
}

func attempts(dir string) error {
	if err := exec.Command("/bin/true").Run(); !errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("exec: %v", err)
	}
	for _, op := range map[string]func() error{
		"create":   func() error { return os.WriteFile(filepath.Join(dir, "new"), nil, 0o600) },
		"write":    func() error { return os.WriteFile(filepath.Join(dir, "there"), []byte("x"), 0o600) },
		"truncate": func() error { return os.Truncate(filepath.Join(dir, "there"), 0) },
		"mkdir":    func() error { return os.Mkdir(filepath.Join(dir, "d"), 0o700) },
		"remove":   func() error { return os.Remove(filepath.Join(dir, "there")) },
		"move out": func() error { return os.Rename(filepath.Join(dir, "mine", "f"), filepath.Join(dir, "f")) },
	} {
		if err := op(); !errors.Is(err, syscall.EACCES) && !errors.Is(err, syscall.EXDEV) {
			return fmt.Errorf("a write outside: %v", err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "there")); string(b) != "kept" {
		return fmt.Errorf("reading: %q, %v", b, err)
	}
	f, err := os.CreateTemp(filepath.Join(dir, "mine"), "x")
	if err != nil {
		return err
	}
	return f.Close()
}

func TestDisarm(t *testing.T) {
	for name, credential := range map[string]*syscall.Credential{"as we are": nil, "normal user": {Uid: 65534, Gid: 65534}} {
		t.Run(name, func(t *testing.T) {
			if credential != nil && os.Getuid() != 0 {
				t.Skip("only root can become somebody else")
			}
			dir, err := os.MkdirTemp("/var/tmp", "disarm-")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			self, err := os.ReadFile("/proc/self/exe")
			if err != nil {
				t.Fatal(err)
			}
			for path, data := range map[string][]byte{"self": self, "there": []byte("kept"), "mine/f": nil} {
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, data, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if credential != nil {
				for _, p := range []string{"", "there", "mine", "mine/f"} {
					if err := os.Chown(filepath.Join(dir, p), 65534, 65534); err != nil {
						t.Fatal(err)
					}
				}
			}
			cmd := exec.Command(filepath.Join(dir, "self"))
			cmd.Dir, cmd.Env = dir, []string{"DISARM_TEST_DIR=" + dir}
			if credential != nil {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
			}
			out, err := cmd.CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != "disarmed" {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
