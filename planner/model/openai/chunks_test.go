package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"harness/planner/model"
)

type streams string

func (s streams) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(strings.NewReader(string(s))), Request: req}, nil
}

// What servers get wrong in a stream of Chat Completions. A chunk is its delta,
// or with a finish reason in front: stop|{…}.
func TestChatServers(t *testing.T) {
	for _, c := range []struct {
		name      string
		chunks    []string
		text      string
		reasoning string
		calls     string // name id args, by bars
		stop      model.Stop
	}{
		{name: "as it should be", chunks: []string{`{"role":"assistant","content":"a"}`, `{"content":"b"}`, `stop|{}`}, text: "ab", stop: model.EndTurn},
		{name: "calls without index", chunks: []string{
			`{"tool_calls":[{"id":"1","function":{"name":"x","arguments":"{}"}},{"id":"2","function":{"name":"y","arguments":"{}"}}]}`, `tool_calls|{}`},
			calls: "x 1 {}|y 2 {}", stop: model.ToolUse},
		{name: "pieces without index", chunks: []string{
			`{"tool_calls":[{"id":"1","function":{"name":"x","arguments":"{\"a\""}}]}`, `{"tool_calls":[{"function":{"arguments":":1}"}}]}`, `stop|{}`},
			calls: `x 1 {"a":1}`, stop: model.ToolUse},
		{name: "pieces without index, id again", chunks: []string{
			`{"tool_calls":[{"id":"1","function":{"name":"x","arguments":"{\"a\""}}]}`, `{"tool_calls":[{"id":"1","function":{"arguments":":1}"}}]}`, `stop|{}`},
			calls: `x 1 {"a":1}`, stop: model.ToolUse},
		{name: "one index for all", chunks: []string{
			`{"tool_calls":[{"index":0,"id":"1","function":{"name":"x","arguments":"{}"}}]}`, `{"tool_calls":[{"index":0,"id":"2","function":{"name":"y","arguments":"{"}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}`, `tool_calls|{}`},
			calls: "x 1 {}|y 2 {}", stop: model.ToolUse},
		{name: "pieces of two, mixed", chunks: []string{
			`{"tool_calls":[{"index":0,"id":"1","function":{"name":"x","arguments":""}}]}`, `{"tool_calls":[{"index":1,"id":"2","function":{"name":"y","arguments":""}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"[0]"}}]}`, `{"tool_calls":[{"index":1,"function":{"arguments":"[1]"}}]}`, `tool_calls|{}`},
			calls: "x 1 [0]|y 2 [1]", stop: model.ToolUse},
		{name: "the name later than the id", chunks: []string{`{"tool_calls":[{"index":0,"id":"1","function":{"arguments":""}}]}`, `{"tool_calls":[{"index":0,"function":{"name":"x","arguments":"{}"}}]}`, `stop|{}`},
			calls: "x 1 {}", stop: model.ToolUse},
		{name: "arguments as an object", chunks: []string{`{"tool_calls":[{"index":0,"id":"1","function":{"name":"x","arguments":{"a":1}}}]}`, `stop|{}`},
			calls: `x 1 {"a":1}`, stop: model.ToolUse},
		{name: "arguments that are empty text", chunks: []string{`{"tool_calls":[{"index":0,"id":"1","function":{"name":"x","arguments":""}}]}`, `stop|{}`},
			calls: "x 1 {}", stop: model.ToolUse},
		{name: "arguments with a stray tail", chunks: []string{`{"tool_calls":[{"index":0,"id":"1","function":{"name":"x","arguments":"{}"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"\"\""}}]}`, `stop|{}`},
			calls: `x 1 {}""`, stop: model.ToolUse},
		{name: "cut by the limit", chunks: []string{`{"tool_calls":[{"index":0,"id":"1","function":{"name":"x","arguments":"{\"a\":\"b"}}]}`, `length|{}`},
			calls: `x 1 {"a":"b`, stop: model.MaxTokens},
		{name: "an end reason never heard of", chunks: []string{`{"content":"good"}`, `eos_token|{}`}, text: "good", stop: model.EndTurn},
		{name: "filtered", chunks: []string{`{"content":"a"}`, `content_filter|{}`}, text: "a", stop: model.Filtered},
		{name: "refused", chunks: []string{`{"refusal":"I will not"}`, `stop|{}`}, text: "I will not", stop: model.Refusal},
		{name: "think tags in pieces", chunks: []string{`{"content":"\n<thi"}`, `{"content":"nk>I won"}`, `{"content":"der</th"}`, `{"content":"at</think>"}`, `{"content":"\n\nyes <think>"}`, `stop|{}`},
			text: "yes <think>", reasoning: "I wonder</that", stop: model.EndTurn},
		{name: "a thought without end", chunks: []string{`{"content":"<think>on and on</thi"}`, `length|{}`}, reasoning: "on and on</thi", stop: model.MaxTokens},
		{name: "nearly a tag", chunks: []string{`{"content":"<"}`, `{"content":"thing>"}`, `stop|{}`}, text: "<thing>", stop: model.EndTurn},
		{name: "the whole is the beginning of a tag", chunks: []string{`{"content":"<th"}`, `stop|{}`}, text: "<th", stop: model.EndTurn},
		{name: "thoughts in a field", chunks: []string{`{"reasoning_content":"hm"}`, `{"reasoning":"!","reasoning_details":[]}`, `{"content":"yes","reasoning_content":null}`, `stop|{}`},
			text: "yes", reasoning: "hm!", stop: model.EndTurn},
	} {
		t.Run(c.name, func(t *testing.T) {
			var body bytes.Buffer
			for _, chunk := range c.chunks {
				finish, delta := "null", chunk
				if before, after, ok := strings.Cut(chunk, "|"); ok {
					finish, delta = `"`+before+`"`, after
				}
				body.WriteString(`data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + "}]}\n\n")
			}
			m := NewChat(Config{Model: "m", HTTPClient: &http.Client{Transport: streams(body.String())}})
			var text, reasoning strings.Builder
			r, err := m.Complete(t.Context(), &model.Request{Messages: []model.Message{{Role: model.User, Text: "hi"}}}, func(d model.Delta) {
				text.WriteString(d.Text)
				reasoning.WriteString(d.Reasoning)
			})
			if err != nil {
				t.Fatal(err)
			}
			var calls []string
			for _, x := range r.Message.Calls {
				calls = append(calls, x.Name+" "+x.ID+" "+string(x.Args))
			}
			if got := strings.Join(calls, "|"); r.Message.Text != c.text || reasoning.String() != c.reasoning || got != c.calls || r.Stop != c.stop {
				t.Errorf("%q, thought %q, calls %s, %s", r.Message.Text, reasoning.String(), got, r.Stop)
			}
			if strings.TrimSpace(text.String()) != c.text {
				t.Errorf("streamed %q", text.String())
			}
		})
	}
}

// Calls without ids, or with one id for two, get ids that their results can have.
func TestIDs(t *testing.T) {
	body := `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"y","arguments":"{}"}},{"index":2,"function":{"name":"z","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\n"
	m := NewChat(Config{Model: "m", HTTPClient: &http.Client{Transport: streams(body)}})
	r, err := m.Complete(t.Context(), &model.Request{Messages: []model.Message{{Role: model.User, Text: "hi"}}}, func(model.Delta) {})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{"": true}
	for _, c := range r.Message.Calls {
		if seen[c.ID] {
			t.Errorf("%+v", r.Message.Calls)
		}
		seen[c.ID] = true
	}
	if len(r.Message.Calls) != 3 {
		t.Errorf("%d calls", len(r.Message.Calls))
	}
}

// What Gemini signs beside a call goes back with it, to it alone.
func TestExtraContent(t *testing.T) {
	body := `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"},"extra_content":{"google":{"thought_signature":"SIG"}}}]},"finish_reason":"tool_calls"}]}` + "\n\n"
	hi := model.Message{Role: model.User, Text: "hi"}
	r, err := NewChat(Config{Model: "m", HTTPClient: &http.Client{Transport: streams(body)}}).Complete(t.Context(), &model.Request{Messages: []model.Message{hi}}, func(model.Delta) {})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"m": true, "other": false} {
		c := &chat{client: newClient(Config{Model: name})}
		p, err := c.params(&model.Request{Messages: []model.Message{hi, r.Message}})
		if err != nil {
			t.Fatal(err)
		}
		sent, err := json.Marshal(p)
		if err != nil || strings.Contains(string(sent), `"extra_content":{"google":{"thought_signature":"SIG"}}`) != want {
			t.Errorf("to %s: %s, %v", name, sent, err)
		}
	}
}
