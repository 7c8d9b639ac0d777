package session

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A large event lies beside the database, once, comes back as it was, and is
// not given when it was altered.
func TestLargeBodies(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x, err := s.Create(Meta{Workspace: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	large := strings.Repeat("thém ", maxInline)
	for _, text := range []string{"small", large, large, "\x00sha256:" + strings.Repeat("0", 64)} {
		if _, err := x.Append("n", text); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "bodies", "*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	events, err := s.Read(x.ID())
	if err != nil || len(events) != 4 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for i, e := range x.Events() {
		if string(events[i].Data) != string(e.Data) {
			t.Errorf("event %d is another", i+1)
		}
	}
	if err := os.WriteFile(files[0], []byte(`"other"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(x.ID()); err == nil || !strings.Contains(err.Error(), "altered") {
		t.Errorf("%v", err)
	}
	x.Close()
	if err := os.WriteFile(files[0], []byte(mustJSON(t, large)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(x.ID(), func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "bodies", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func mustJSON(t *testing.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
