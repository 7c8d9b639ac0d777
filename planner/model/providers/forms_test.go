package providers

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"harness/planner/model"
	"harness/planner/model/recorded"
	"harness/planner/view"
)

// Whatever is in a log, no request has a form that a provider refuses: not with
// results without calls, calls without results, the same id twice, empty or
// blank words, a beginning that is not the user's, roles that do not alternate,
// arguments that are no object, names that are none.
func TestForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := drawLog(t)
		if rapid.Bool().Draw(t, "through a view") {
			v := view.New(rapid.IntRange(500, 4000).Draw(t, "tokens"), 0)
			for _, m := range messages {
				if v.Add(m); v.Over() {
					if f, ok := v.Plan(); ok {
						v.Apply(f)
					}
				}
			}
			messages = v.Messages()
		}
		before, _ := json.Marshal(messages)
		for _, wire := range wires {
			sent := false
			named(wire, "m", func(body []byte) {
				sent = true
				if err := recorded.Check(wire, body); err != nil {
					t.Errorf("%s: %v in\n%s\nof\n%s", wire, err, body, before)
				}
			}).Complete(t.Context(), ask(messages...), func(model.Delta) {})
			if !sent {
				t.Errorf("%s: nothing was sent", wire)
			}
		}
		if now, _ := json.Marshal(messages); string(now) != string(before) {
			t.Errorf("the log's messages were changed")
		}
	})
}

// drawLog is messages as they may be in a damaged, cut, merged or foreign log.
func drawLog(t *rapid.T) []model.Message {
	words := rapid.SampledFrom([]string{"", " \n\t", "hello", "thém", "\x00", "\xff\xfe", strings.Repeat("long ", 400)})
	id := rapid.SampledFrom([]string{"", "a", "b", "call.1/x", "call_1_x", strings.Repeat("i", 90), strings.Repeat("i", 90) + "2", "ä"})
	name := rapid.SampledFrom([]string{"read_file", "Shell", "shell.rm", "", strings.Repeat("n", 80)})
	args := rapid.SampledFrom([]string{"", "{}", `{"path":"a"}`, `{"path":`, `[1]`, `null`, `"text"`, `{}""`, `{"a":1,"a":2}`})
	message := rapid.Custom(func(t *rapid.T) model.Message {
		m := model.Message{Text: words.Draw(t, "words"), Role: rapid.SampledFrom([]model.Role{model.User, model.Assistant, model.ToolRole}).Draw(t, "role")}
		n := rapid.IntRange(0, 3).Draw(t, "n")
		switch m.Role {
		case model.Assistant:
			for range n {
				m.Calls = append(m.Calls, model.ToolCall{ID: id.Draw(t, "id"), Name: name.Draw(t, "name"), Args: json.RawMessage(args.Draw(t, "args"))})
			}
		case model.ToolRole:
			m.Text = ""
			for range n {
				r := model.ToolResult{CallID: id.Draw(t, "id"), Name: name.Draw(t, "name"), Text: words.Draw(t, "result"), IsError: rapid.Bool().Draw(t, "error")}
				if rapid.Bool().Draw(t, "image") {
					r.Images = []model.Image{dot}
				}
				m.Results = append(m.Results, r)
			}
		default:
			if rapid.Bool().Draw(t, "image") {
				m.Images = []model.Image{dot, dot}
			}
		}
		return m
	})
	return rapid.SliceOfN(message, 0, 12).Draw(t, "log")
}
