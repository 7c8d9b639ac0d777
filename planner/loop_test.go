package planner

import (
	"io"
	"slices"
	"strings"
	"testing"

	v1 "harness/contract/harness/v1"
	"harness/planner/budget"
	"harness/planner/judge"
	"harness/planner/model"
	"harness/planner/model/providers"
	"harness/planner/model/recorded"
	"harness/planner/session"
)

var wires = []string{"anthropic", "responses", "chat"}

// played is a model that answers with a recording, over HTTP in a provider's format.
func played(t testing.TB, wire string, replies ...recorded.Reply) model.Model {
	t.Helper()
	m, err := providers.Play(replies, "test", wire)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.(io.Closer).Close() })
	return m
}

// begin is a new session of a store of its own.
func begin(t testing.TB) *session.Session {
	t.Helper()
	store, err := session.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	x, err := store.Create(session.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close(); store.Close() })
	return x
}

func calls(name, args string) []recorded.Call {
	return []recorded.Call{{Name: name, Args: []byte(args)}}
}

// Why a reply stopped decides what comes next, in every provider's format.
func TestStopsOfReplies(t *testing.T) {
	write := recorded.Reply{Calls: calls("write_file", `{"path":"a","content":"x"}`)}
	cutWrite, cutText := write, recorded.Reply{Fault: "max_tokens", Text: "The first half"}
	cutWrite.Fault = "max_tokens"
	done, empty := recorded.Reply{Text: "done"}, recorded.Reply{Text: " \n"}
	full := recorded.Reply{Fault: "context"}
	for _, c := range []struct {
		name    string
		replies []recorded.Reply
		reason  string
		exit    int
		writes  int
		turns   int
		told    string // is in what the model was told
	}{
		{"refusal", []recorded.Reply{{Fault: "refusal", Text: "I will not."}}, "refusal", 1, 0, 1, ""},
		{"refusal with a call", []recorded.Reply{{Fault: "refusal", Text: "I will not.", Calls: write.Calls}}, "refusal", 1, 0, 1, ""},
		{"filter", []recorded.Reply{{Fault: "filter", Text: "The be"}}, "content_filter", 1, 0, 1, ""},
		{"text cut once", []recorded.Reply{write, cutText, done}, "done", 0, 1, 3, toldCut},
		{"text cut for ever", slices.Repeat([]recorded.Reply{cutText}, 20), "max_tokens", 1, 0, maxOdd + 1, toldCut},
		{"call cut once", []recorded.Reply{cutWrite, write, done}, "done", 0, 1, 3, toldCall},
		{"call cut for ever", slices.Repeat([]recorded.Reply{cutWrite}, 20), "max_tokens", 1, 0, maxOdd + 1, toldCall},
		{"call cut before its arguments", []recorded.Reply{{Fault: "max_tokens", Calls: calls("list_files", "")}, write, done}, "done", 0, 1, 3, toldCall},
		{"empty once", []recorded.Reply{write, empty, done}, "done", 0, 1, 3, toldEmpty},
		{"nothing at all", []recorded.Reply{write, {}, done}, "done", 0, 1, 3, toldEmpty},
		{"empty for ever", slices.Repeat([]recorded.Reply{empty}, 20), "empty_reply", 1, 0, maxOdd + 1, toldEmpty},
		{"too long for ever", slices.Repeat([]recorded.Reply{full}, 20), "context_length", 1, 0, 0, ""},
	} {
		for _, wire := range wires {
			t.Run(c.name+"/"+wire, func(t *testing.T) {
				f, x := &fake{done: map[string]*v1.StepResult{}}, begin(t)
				r, err := Run(t.Context(), Config{Executor: f, Model: played(t, wire, c.replies...), Session: x, Surface: quiet{}, Task: "t",
					Check: judge.Spec{Cmd: "make test"}, Limits: budget.Limits{MaxTurns: 50}})
				reason := c.reason
				if wire == "anthropic" && reason == "content_filter" {
					reason = "refusal" // that provider has one word for both
				}
				if err != nil || r.StopReason != reason || r.ExitCode != c.exit || r.Turns != c.turns || f.writes != c.writes {
					t.Errorf("%d writes, %+v, %v", f.writes, r, err)
				}
				log := ""
				for _, e := range x.Events() {
					if strings.HasPrefix(e.Type, "message.") {
						log += string(e.Data)
					}
				}
				if !strings.Contains(log, c.told) {
					t.Errorf("the model was not told %q: %s", c.told, log)
				}
			})
		}
	}
}

// A second model goes on where the first is out, with the same conversation.
func TestFallback(t *testing.T) {
	for _, wire := range wires {
		first := played(t, wire, append([]recorded.Reply{{Calls: calls("write_file", `{"path":"a","content":"x"}`)}},
			slices.Repeat([]recorded.Reply{{Fault: "429"}}, 20)...)...)
		f := &fake{done: map[string]*v1.StepResult{}}
		r, err := Run(t.Context(), Config{Executor: f, Model: first, Fallback: played(t, "chat", recorded.Reply{Text: "done by the second"}),
			Session: begin(t), Surface: quiet{}, Task: "t", Check: judge.Spec{Cmd: "make test"}})
		if err != nil || r.Verdict != judge.Proven || r.Message != "done by the second" {
			t.Errorf("%s: %+v, %v", wire, r, err)
		}
	}
}

// A broken connection to the executor is no result for the model: it ends the
// run, and the one that goes on asks for the step again, under its own id.
func TestExecutorLost(t *testing.T) {
	f, x := &fake{done: map[string]*v1.StepResult{}, lost: true}, begin(t)
	c := Config{Executor: f, Session: x, Surface: quiet{}, Task: "t", Check: judge.Spec{Cmd: "make test"},
		Model: played(t, "", recorded.Reply{Calls: calls("write_file", `{"path":"a","content":"x"}`)})}
	r, err := Run(t.Context(), c)
	if err != nil || r.StopReason != executorLost || r.ExitCode != 1 || !strings.Contains(r.Message, "broken pipe") {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, e := range x.Events() {
		if e.Type == "message.tool" {
			t.Errorf("the model is told: %s", e.Data)
		}
	}
	f.lost, c.Task, c.Model = false, "go on", played(t, "", recorded.Reply{Text: "done"})
	if r, err = Run(t.Context(), c); err != nil || r.Verdict != judge.Proven || f.writes != 1 {
		t.Errorf("%d writes, %+v, %v", f.writes, r, err)
	}
}

// Reads between two tries do not make a denied effect less denied.
func TestDenialsWithReadsBetween(t *testing.T) {
	write, look := recorded.Reply{Calls: calls("write_file", `{"path":"a","content":"x"}`)}, recorded.Reply{Calls: calls("list_files", "{}")}
	f := &fake{done: map[string]*v1.StepResult{}, denying: true}
	r, err := Run(t.Context(), Config{Executor: f, Session: begin(t), Surface: quiet{}, Task: "t",
		Model: played(t, "", write, look, write, look, write, look, write)})
	if err != nil || r.ExitCode != 58 || r.Turns != 5 {
		t.Errorf("%+v, %v", r, err)
	}
}
