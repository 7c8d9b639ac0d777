package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Going on with a log of 50 MB: 2,500 steps of 20 kB.
func BenchmarkResume50MB(b *testing.B) {
	dir := b.TempDir()
	s, err := Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	x, err := s.Create(Meta{Workspace: "/w"})
	if err != nil {
		b.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{"text": strings.Repeat("a line of output\n", 1200)})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 2500 {
		if _, err := x.Append(fmt.Sprint("kind", i%7), json.RawMessage(text)); err != nil {
			b.Fatal(err)
		}
	}
	x.Close()
	for b.Loop() {
		y, err := s.Resume(x.ID())
		if err != nil {
			b.Fatal(err)
		}
		Line(y.Events())
		y.Close()
	}
}
