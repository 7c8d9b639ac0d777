package planner

import (
	"strings"
	"testing"
)

// The prompt says what the rest of the program counts on, in few words.
func TestPrompt(t *testing.T) {
	r := &run{}
	text := r.prompt()
	for _, want := range []string{dataRule, "A denied step is final", "Never weaken, skip or delete a test", "update_plan", "no network", "the check"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(text, "version") || r.promptVersion() != "2" {
		t.Errorf("version %q of %q", r.promptVersion(), text[:40])
	}
	if tokens := (len(text) + sizeOf(tools())) / 4; tokens > 1300 {
		t.Errorf("prompt and tools are about %d tokens", tokens)
	}
}

func TestOwnPrompt(t *testing.T) {
	r := &run{Config: Config{System: "Speak like a poet.\n"}}
	if text := r.prompt(); !strings.HasPrefix(text, "Speak like a poet.\n") || !strings.Contains(text, dataRule) || r.promptVersion() == "2" {
		t.Errorf("%q, version %s", text, r.promptVersion())
	}
}
