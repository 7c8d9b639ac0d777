package session

import (
	"fmt"
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

func TestForkSharesItsBeginning(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x, err := s.Create(Meta{Workspace: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if _, err := x.Append("n", i); err != nil {
			t.Fatal(err)
		}
	}
	f, err := s.Fork(x.ID(), 2, Meta{Workspace: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	f.Append("n", 12)
	g, err := s.Fork(f.ID(), 9, Meta{Workspace: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	g.Append("n", 13)
	x.Append("n", 4)
	got := ""
	for _, id := range []string{x.ID(), f.ID(), g.ID()} {
		events, err := s.Read(id)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range events {
			if e.Seq != int64(i+1) {
				t.Errorf("%s: event %d has number %d", id, i+1, e.Seq)
			}
			got += string(e.Data) + " "
		}
	}
	if want := "0 1 2 3 4 0 1 12 0 1 12 13 "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLineForgetsWhatWasRewound(t *testing.T) {
	back := func(seq, to int64) Event {
		return Event{Seq: seq, Type: Rewound, Data: []byte(fmt.Sprintf(`{"to_seq":%d}`, to))}
	}
	got := ""
	for _, e := range Line([]Event{{Seq: 1}, {Seq: 2}, {Seq: 3}, back(4, 2), {Seq: 5}, back(6, 1), {Seq: 7}}) {
		got += fmt.Sprint(e.Seq, " ")
	}
	if want := "1 6 7 "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
