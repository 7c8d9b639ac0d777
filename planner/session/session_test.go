package session

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLogSurvivesReopening(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a?b#c%20")
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	x, err := s.Create(Meta{Workspace: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Append("turn.started", map[string]any{"turn": 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resume(x.ID()); err == nil {
		t.Error("two writers of one session")
	}
	x.Close()
	s.Close()
	if _, err := os.Stat(filepath.Join(dir, "sessions.db")); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	y, err := s.Resume(x.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	if e := y.Events(); len(e) != 1 || e[0].Type != "turn.started" {
		t.Errorf("events %v", e)
	}
	if m, err := s.Latest("/w"); err != nil || m.ID != x.ID() {
		t.Errorf("latest %v, %v", m, err)
	}
}

func TestDamagedIsKept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sessions.db")
	if err := os.WriteFile(path, []byte("this is no database, but it may matter to somebody: keep it whole"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if kept, _ := filepath.Glob(path + ".damaged-*"); len(kept) != 1 {
		t.Errorf("kept %v", kept)
	}
}
