package planner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/planner/budget"
	"harness/planner/judge"
	"harness/planner/model"
	"harness/planner/session"
)

// script is a model that answers by the number of replies so far in the conversation.
type script struct{ replies []model.Message }

func (*script) Name() string     { return "test/script" }
func (*script) Info() model.Info { return model.Info{} }
func (m *script) Complete(_ context.Context, q *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	n := 0
	for i, msg := range q.Messages {
		if msg.Role == model.Assistant {
			n++
		}
		if len(msg.Calls) > 0 && (i+1 >= len(q.Messages) || len(q.Messages[i+1].Results) != len(msg.Calls)) {
			return nil, &model.Error{Kind: model.Invalid, Message: "a call without its result"}
		}
	}
	return &model.Reply{Message: m.replies[min(n, len(m.replies)-1)]}, nil
}

func asks(name, args string) model.Message {
	return model.Message{Role: model.Assistant, Calls: []model.ToolCall{{ID: "call_1", Name: name, Args: json.RawMessage(args)}}}
}

// fake is an executor that remembers steps by id, and whose check is green once a file was written.
type fake struct {
	contract.Executor
	mu      sync.Mutex
	done    map[string]*v1.StepResult
	writes  int
	denying bool
	text    string // of what is read
	lost    bool   // the connection ends with the first write
}

func (f *fake) Watch(ctx context.Context, q *v1.WatchRequest, _ func(*v1.Event) error) error {
	return nil
}
func (f *fake) Submit(_ context.Context, s *v1.Step) (*v1.StepResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.done[s.StepId]; r != nil {
		return r, nil
	}
	if f.lost && s.Action == contract.WriteFile {
		return nil, errors.New("write: broken pipe")
	}
	r := &v1.StepResult{StepId: s.StepId, SessionId: s.SessionId, Action: s.Action, Status: v1.Status_ok, Output: &v1.Output{Text: f.text}}
	switch {
	case s.Action == contract.WriteFile && f.denying:
		r.Status, r.Error = v1.Status_denied, &v1.Error{Kind: v1.Error_denied, Message: "no"}
	case s.Action == contract.WriteFile:
		f.writes++
		r.Changes = &v1.ChangeSet{Total: 1, Changes: []*v1.Change{{Kind: v1.Change_modified, Path: "a_test.go"}}}
	case s.Action == contract.RunCommand && f.writes == 0:
		r.Status, r.Error = v1.Status_failed, &v1.Error{Kind: v1.Error_exit, Message: "red"}
	}
	f.done[s.StepId] = r
	return r, nil
}

type quiet struct{}

func (quiet) Event(session.Event) {}
func (quiet) Delta(_, _ string)   {}
func (quiet) Output(_, _ string)  {}
func (quiet) Ask(context.Context, *v1.Approval) (*v1.DecideRequest, error) {
	return nil, errors.New("nobody")
}
func (quiet) Question(context.Context, string) (string, error) { return "", errors.New("nobody") }

func TestStops(t *testing.T) {
	write := asks("write_file", `{"path":"a_test.go","content":"x"}`)
	var denied []model.Message
	for i := range 9 {
		denied = append(denied, asks("write_file", fmt.Sprintf(`{"path":"a","content":"%d"}`, i)))
	}
	says := model.Message{Role: model.Assistant, Text: "done"}
	for _, c := range []struct {
		name    string
		replies []model.Message
		limits  budget.Limits
		deny    bool
		exit    int
		verdict string
	}{
		{"green", []model.Message{write, says}, budget.Limits{}, false, 0, judge.Proven},
		{"nothing changed", []model.Message{says}, budget.Limits{}, false, 54, judge.Red},
		{"turns", []model.Message{write}, budget.Limits{MaxTurns: 2}, false, 53, judge.Unproven},
		{"same again", []model.Message{asks("list_files", `{}`)}, budget.Limits{}, false, 1, judge.Unproven},
		{"bad calls", []model.Message{asks("fly", `{}`), asks("read_file", `{"path`), write, says}, budget.Limits{}, false, 0, judge.Proven},
		{"denials", denied, budget.Limits{}, true, 58, judge.Unproven},
	} {
		t.Run(c.name, func(t *testing.T) {
			store, err := session.Open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			x, err := store.Create(session.Meta{})
			if err != nil {
				t.Fatal(err)
			}
			defer x.Close()
			f := &fake{done: map[string]*v1.StepResult{}, denying: c.deny}
			r, err := Run(t.Context(), Config{Executor: f, Model: &script{c.replies}, Session: x, Surface: quiet{}, Task: "t",
				Limits: c.limits, Check: judge.Spec{Cmd: "make test", Explicit: true}})
			if err != nil || r.ExitCode != c.exit || r.Verdict != c.verdict {
				t.Fatalf("%+v, %v", r, err)
			}
			if c.exit == 0 && len(r.TestChanges) != 1 {
				t.Errorf("the changed test is not named: %v", r.TestChanges)
			}
			resumes(t, store, x.Events(), c.replies, f)
		})
	}
}

// resumes cuts a log at each event: a resumed run gives each call its result and writes nothing twice.
func resumes(t *testing.T, store *session.Store, log []session.Event, replies []model.Message, f *fake) {
	for cut := range log {
		x, err := store.Create(session.Meta{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range log[:cut] {
			if _, err := x.Append(e.Type, e.Data); err != nil {
				t.Fatal(err)
			}
		}
		r, err := Run(t.Context(), Config{Executor: f, Model: &script{replies}, Session: x, Surface: quiet{}, Task: "go on",
			Limits: budget.Limits{MaxTurns: 20}, Check: judge.Spec{Cmd: "make test", Explicit: true}})
		if err != nil || r.StopReason == "model_error" {
			t.Errorf("cut after %d events: %+v, %v", cut, r, err)
		}
		x.Close()
	}
}
