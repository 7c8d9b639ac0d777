package terminal

import (
	"bufio"
	"context"
	"errors"
	"io"
	"testing"

	v1 "harness/contract/harness/v1"
)

// An interrupt ends a question that nobody answers, and the next one still gets its answer.
func TestQuestionsEndWithTheirContext(t *testing.T) {
	in, keys := io.Pipe()
	s := &Surface{W: io.Discard, In: bufio.NewReader(in)}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Question(ended, "?"); !errors.Is(err, context.Canceled) {
		t.Fatalf("an interrupted question gave %v", err)
	}
	d, err := s.Ask(ended, &v1.Approval{Summary: "touch f"})
	if err != nil || d.Answer != v1.DecideRequest_deny {
		t.Fatalf("an interrupted approval gave %v, %v; want a denial", d, err)
	}
	go io.WriteString(keys, "blue\n")
	if got, err := s.Question(t.Context(), "?"); got != "blue" || err != nil {
		t.Fatalf("the next question got %q, %v", got, err)
	}
	keys.Close()
	if d, err := s.Ask(t.Context(), &v1.Approval{}); err != nil || d.Answer != v1.DecideRequest_deny {
		t.Fatalf("a closed terminal gave %v, %v; want a denial", d, err)
	}
}
