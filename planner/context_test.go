package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	v1 "harness/contract/harness/v1"
	"harness/planner/budget"
	"harness/planner/judge"
	"harness/planner/model"
	"harness/planner/session"
	"harness/planner/view"
)

// looker is a model with a small context that reads file after file.
type looker struct {
	turns int
	last  []model.Message
	sums  int
}

func (*looker) Name() string     { return "test/looker" }
func (*looker) Info() model.Info { return model.Info{ContextWindow: 32_000} }
func (m *looker) Complete(_ context.Context, q *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	if strings.HasPrefix(q.Messages[0].Text, askSummary) {
		m.sums++
		return &model.Reply{Message: model.Message{Role: model.Assistant, Text: fmt.Sprintf("summary %d", m.sums)}}, nil
	}
	m.turns++
	m.last = append([]model.Message{}, q.Messages...)
	return &model.Reply{Message: model.Message{Role: model.Assistant, Calls: []model.ToolCall{{ID: fmt.Sprint("c", m.turns), Name: "read_file",
		Args: json.RawMessage(fmt.Sprintf(`{"path":"f%d"}`, m.turns))}}}}, nil
}

// A run folds what its model sees, keeps what must not be lost, and a run that
// goes on sees the same.
func TestRunFolds(t *testing.T) {
	f, x, m := &fake{done: map[string]*v1.StepResult{}, text: strings.Repeat("0123456789", 700)}, begin(t), &looker{}
	for _, e := range []struct {
		typ  string
		data any
	}{
		{"message.user", model.Message{Role: model.User, Text: "the task"}},
		{"item.completed", map[string]any{"item": map[string]any{"type": "plan", "plan": []planItem{{"look", "done"}, {"mend", "in_progress"}}}}},
	} {
		if _, err := x.Append(e.typ, e.data); err != nil {
			t.Fatal(err)
		}
	}
	c := Config{Executor: f, Model: m, Session: x, Surface: quiet{}, Check: judge.Spec{Off: true}, Limits: budget.Limits{MaxTurns: 120}}
	if r, err := Run(t.Context(), c); err != nil || r.StopReason != string(budget.TurnLimit) {
		t.Fatalf("%+v, %v", r, err)
	}
	folds := 0
	for _, e := range x.Events() {
		if e.Type == contextFolded {
			folds++
		}
	}
	if folds < 5 || m.sums < 3 || m.last[0].Text != "the task" {
		t.Fatalf("%d foldings, %d summaries, the first message %q", folds, m.sums, m.last[0].Text)
	}
	for _, want := range []string{fmt.Sprintf("summary %d", m.sums), "[>] mend"} {
		if !strings.Contains(m.last[1].Text, want) {
			t.Errorf("no %q in the note: %s", want, m.last[1].Text)
		}
	}
	before := m.last
	c.Limits.MaxTurns = 1
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if n := len(before); len(m.last) < n || !reflect.DeepEqual(asJSON(t, m.last[:n]), asJSON(t, before)) {
		t.Error("the run that goes on sees another conversation")
	}
}

func asJSON(t *testing.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Denials and the changed files are known after a folding.
func TestFacts(t *testing.T) {
	f := &fake{done: map[string]*v1.StepResult{}, denying: true}
	x := begin(t)
	if _, err := Run(t.Context(), Config{Executor: f, Session: x, Surface: quiet{}, Task: "t", Model: &script{[]model.Message{asks("write_file", `{"path":"a","content":"x"}`),
		{Role: model.Assistant, Text: "no way"}}}, Check: judge.Spec{Off: true}}); err != nil {
		t.Fatal(err)
	}
	r := &run{Config: Config{Session: x, Executor: f}, ctx: t.Context(), facts: facts{files: map[string]string{"b": "modified"}}, made: map[string]bool{}, tests: map[string]string{}}
	r.view = view.New(0, 0)
	if err := r.resume(); err != nil {
		t.Fatal(err)
	}
	if s := r.facts.state("make test"); !strings.Contains(s, "write_file") || !strings.Contains(s, "modified b") || !strings.Contains(s, `"make test": `+judge.Unproven) {
		t.Error(s)
	}
}

// What a turn costs beside the model and the tool, early and late in a session.
func BenchmarkTurn(b *testing.B) {
	for _, at := range []int{20, 2000} {
		b.Run(fmt.Sprint("step ", at), func(b *testing.B) {
			store, err := session.Open(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			x, err := store.Create(session.Meta{})
			if err != nil {
				b.Fatal(err)
			}
			defer x.Close()
			m := &looker{}
			c := Config{Executor: &fake{done: map[string]*v1.StepResult{}, text: strings.Repeat("0123456789", 100)}, Model: m, Session: x, Surface: quiet{}, Task: "t",
				Check: judge.Spec{Off: true}, Limits: budget.Limits{MaxTurns: at}}
			if _, err := Run(b.Context(), c); err != nil {
				b.Fatal(err)
			}
			c.Limits.MaxTurns = b.N
			b.ResetTimer()
			if _, err := Run(b.Context(), c); err != nil {
				b.Fatal(err)
			}
		})
	}
}
