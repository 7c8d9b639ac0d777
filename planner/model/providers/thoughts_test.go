package providers

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"harness/planner/model"
)

// events is a body of server-sent events from their data.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		var e struct{ Type string }
		if err := json.Unmarshal([]byte(d), &e); err != nil {
			panic(err)
		}
		b.WriteString("event: " + e.Type + "\ndata: " + d + "\n\n")
	}
	return b.String()
}

// Thoughts go back unchanged before the calls that they led to, and only to the
// model that had them.
func TestThoughtsGoBack(t *testing.T) {
	for wire, c := range map[string]struct{ body, want string }{
		"anthropic": {events(
			`{"type":"message_start","message":{"usage":{"input_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"SIG"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"RED"}}`,
			`{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c1","name":"read_file","input":{}}}`,
			`{"type":"content_block_stop","index":2}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}`,
			`{"type":"message_stop"}`),
			`[{"signature":"SIG","thinking":"hm","type":"thinking"},{"data":"RED","type":"redacted_thinking"},{"id":"c1","input":{},"name":"read_file","type":"tool_use"}]`},
		"responses": {events(
			`{"type":"response.reasoning_summary_text.delta","delta":"hm"}`,
			`{"type":"response.completed","response":{"status":"completed","output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"SIG"},{"type":"function_call","id":"fc_1","call_id":"c1","name":"read_file","arguments":"{}"},{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"RED"},{"type":"function_call","id":"fc_2","call_id":"c2","name":"read_file","arguments":"{}"}]}}`),
			`rs_1 SIG, c1, rs_2 RED, c2`},
	} {
		t.Run(wire, func(t *testing.T) {
			var sent []byte
			play := func(req *http.Request) (*http.Response, error) {
				return response(req, 200, strings.NewReader(c.body)), nil
			}
			thought := ""
			r, err := client(wire, play).Complete(t.Context(), ask(hello), func(d model.Delta) { thought += d.Reasoning })
			if err != nil || thought != "hm" {
				t.Fatalf("%v, thought %q", err, thought)
			}
			logged, err := json.Marshal(r.Message) // as the session keeps it
			if err != nil {
				t.Fatal(err)
			}
			var back model.Message
			if err := json.Unmarshal(logged, &back); err != nil {
				t.Fatal(err)
			}
			for _, other := range []bool{false, true} {
				m := named(wire, map[bool]string{false: "m", true: "other"}[other], func(body []byte) { sent = body })
				m.Complete(t.Context(), ask(hello, back), func(model.Delta) {})
				got := assistant(t, wire, sent)
				if !other && got != c.want {
					t.Errorf("sent back\n%s, want\n%s", got, c.want)
				}
				if other && (strings.Contains(string(sent), "SIG") || strings.Contains(string(sent), "RED") || !strings.Contains(got, "c1")) {
					t.Errorf("to another model: %s", got)
				}
			}
		})
	}
}

// assistant is what a request has of the assistant, in canonical form.
func assistant(t *testing.T, wire string, body []byte) string {
	var r struct {
		Messages []struct {
			Role    string
			Content any
		}
		Input []struct {
			Type, ID         string
			CallID           string `json:"call_id"`
			EncryptedContent string `json:"encrypted_content"`
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	if wire == "anthropic" {
		b, _ := json.Marshal(r.Messages[1].Content)
		return string(b)
	}
	var items []string
	for _, i := range r.Input {
		switch i.Type {
		case "reasoning":
			items = append(items, i.ID+" "+i.EncryptedContent)
		case "function_call":
			items = append(items, i.CallID)
		}
	}
	return strings.Join(items, ", ")
}

// The cache points are behind what never changes and at the end.
func TestCachePoints(t *testing.T) {
	for _, system := range []string{"be good", ""} {
		var sent []byte
		req := ask(hello, model.Message{Role: model.Assistant, Calls: []model.ToolCall{{ID: "a", Name: "read_file", Args: json.RawMessage(`{}`)}}},
			model.Message{Role: model.ToolRole, Results: []model.ToolResult{{CallID: "a", Text: "x"}}}, hello)
		req.System = system
		named("anthropic", "m", func(body []byte) { sent = body }).Complete(t.Context(), req, func(model.Delta) {})
		var r struct {
			System, Tools []struct {
				CacheControl any `json:"cache_control"`
			}
			Messages []struct {
				Role    string
				Content []struct {
					Type         string
					CacheControl any `json:"cache_control"`
				}
			}
		}
		if err := json.Unmarshal(sent, &r); err != nil {
			t.Fatal(err)
		}
		last := r.Messages[len(r.Messages)-1]
		if len(r.Messages) != 3 || len(last.Content) != 2 || last.Content[0].Type != "tool_result" || last.Content[1].CacheControl == nil {
			t.Errorf("the end: %s", sent)
		}
		if points := strings.Count(string(sent), "cache_control"); points != 2 {
			t.Errorf("%d points", points)
		}
		if system == "" && r.Tools[0].CacheControl == nil || system != "" && r.System[0].CacheControl == nil {
			t.Errorf("the beginning: %s", sent)
		}
	}
}

// The schema of a tool arrives whole.
func TestSchema(t *testing.T) {
	req := ask(hello)
	req.Tools = []model.Tool{{Name: "x", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"required":["a"],"additionalProperties":false,"$defs":{"b":{"type":"string"}}}`)}}
	for _, wire := range wires {
		named(wire, "m", func(body []byte) {
			for _, part := range []string{`"additionalProperties":false`, `"$defs":{"b":{"type":"string"}}`, `"required":["a"]`, `"$ref":"#/$defs/b"`, `"type":"object"`} {
				if !strings.Contains(string(body), part) {
					t.Errorf("%s: no %s in %s", wire, part, body)
				}
			}
		}).Complete(t.Context(), req, func(model.Delta) {})
	}
	req.Tools[0].Schema = json.RawMessage(`{`)
	for _, wire := range wires {
		if _, err := named(wire, "m", func([]byte) { t.Error("sent") }).Complete(t.Context(), req, func(model.Delta) {}); err == nil {
			t.Errorf("%s: a broken schema", wire)
		}
	}
}
