package planner

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	v1 "harness/contract/harness/v1"
	"harness/planner/model"
	"harness/planner/session"
	"harness/planner/view"
)

// Going on with a log of 50 MB: reading it, and making the view and the facts of it.
func BenchmarkResume50MB(b *testing.B) {
	store, err := session.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	x, err := store.Create(session.Meta{})
	if err != nil {
		b.Fatal(err)
	}
	append := func(typ string, data any) {
		if _, err := x.Append(typ, data); err != nil {
			b.Fatal(err)
		}
	}
	r := &run{Config: Config{Session: x}, ctx: b.Context()}
	text := strings.Repeat("a line of output\n", 600)
	append("message.user", model.Message{Role: model.User, Text: "t"})
	for i := range 2300 { // each output is there twice: in the result and in the message
		id := fmt.Sprint("c", i)
		append("message.assistant", model.Message{Role: model.Assistant, Calls: []model.ToolCall{{ID: id, Name: "read_file", Args: json.RawMessage(`{"path":"f"}`)}}})
		step := r.step("read_file", map[string]any{"path": "f"})
		append("item.started", map[string]any{"item": item(step, nil), "call_id": id})
		append("item.completed", map[string]any{"item": item(step, &v1.StepResult{StepId: step.StepId, Output: &v1.Output{Text: text}}), "call_id": id})
		append("message.tool", model.Message{Role: model.ToolRole, Results: []model.ToolResult{{CallID: id, Name: "read_file", Text: fmt.Sprint(i, text)}}})
	}
	id := x.ID()
	x.Close()
	for b.Loop() {
		x, err := store.Resume(id)
		if err != nil {
			b.Fatal(err)
		}
		r := &run{Config: Config{Session: x, Surface: quiet{}}, ctx: b.Context(), facts: facts{files: map[string]string{}}, view: view.New(0, 0)}
		if err := r.resume(); err != nil {
			b.Fatal(err)
		}
		x.Close()
	}
}
