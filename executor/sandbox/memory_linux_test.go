package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What was found by trying is used again, and never trusted over what the
// hands find when they come up.
func TestMemory(t *testing.T) {
	asUsers(t, func(t *testing.T) {
		b := newBox(t)
		c := b.config
		c.Memory = filepath.Join(b.base, "state", "memory.json")
		start := func() *Sandbox {
			t.Helper()
			s, err := Start(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		}
		run := func(s *Sandbox) error {
			null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer null.Close()
			_, err = s.Run(t.Context(), Command{Argv: []string{"/bin/true"}, Dir: b.ws, Output: null, Limits: testLimits, Timeout: time.Minute})
			return err
		}
		if s := start(); !s.started {
			t.Fatal("nothing was tried the first time")
		}
		s := start()
		if s.started || !s.MeetsMinimum() {
			t.Fatal("tried again, or not remembered")
		}
		if err := run(s); err != nil || !s.started {
			t.Fatal(err)
		}
		text, err := os.ReadFile(c.Memory)
		if err != nil {
			t.Fatal(err)
		}
		more := strings.Replace(string(text), `"Capabilities":[`, `"Capabilities":[{"name":"made_up","enforced":true},`, 1)
		if err := os.WriteFile(c.Memory, []byte(more), 0o600); err != nil {
			t.Fatal(err)
		}
		s = start()
		if err := run(s); err == nil || !strings.Contains(err.Error(), "does not enforce any more") {
			t.Errorf("a command ran with less than was said: %v", err)
		}
		if s := start(); !s.started {
			t.Error("what was wrong is still believed")
		}
		if err := os.WriteFile(c.Memory, []byte(strings.Replace(string(text), `"Here":"`, `"Here":"0`, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if s := start(); !s.started {
			t.Error("what was found elsewhere is believed here")
		}
	})
}
