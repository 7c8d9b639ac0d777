package recorded

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

func TestLoad(t *testing.T) {
	replies, err := Load(strings.NewReader("# a comment\n\n{\"text\": \"a\", \"calls\": [{\"name\": \"x\", \"args\": {\"b\": 1}}]}\n{\"fault\": \"429\"}\n"))
	if err != nil || len(replies) != 2 || replies[0].Text != "a" || string(replies[0].Calls[0].Args) != `{"b": 1}` || replies[1].Fault != "429" {
		t.Errorf("%+v, %v", replies, err)
	}
	for text, want := range map[string]string{
		"{\"text\": \"a\"}\n{":                "line 2",
		`{"txt": "a"}`:                        "txt",
		`{"fault": "flood"}`:                  `"flood"`,
		`{"usage": {"input_tokens": "many"}}`: "line 1",
	} {
		if _, err := Load(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func post(t *testing.T, s *Server, path, body string) (int, string) {
	res, err := http.Post(s.URL()+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// What the providers refuse is refused here, and takes no reply.
func TestRefusals(t *testing.T) {
	s, err := Serve([]Reply{{Text: "a"}, {Text: "b"}, {Text: "c"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct{ path, body, want string }{
		{"/v1/messages", `{`, "unexpected"},
		{"/v1/messages", `{"messages":[]}`, "needed"},
		{"/v1/messages", messages(`{"role":"user","content":[]}`), "empty"},
		{"/v1/messages", messages(`{"role":"assistant","content":[{"type":"text","text":"a"}]}`), "role"},
		{"/v1/messages", messages(`{"role":"user","content":[{"type":"text","text":" \n"}]}`), "non-whitespace"},
		{"/v1/messages", messages(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"}]}`), "no tool_use"},
		{"/v1/messages", messages(asks, `{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"a.b"}]}`), "pattern"},
		{"/v1/messages", messages(asks, `{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"a"}]}`, asks), "without tool_result"},
		{"/v1/messages", messages(asks, `{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"a"}]}`), "no tool_result"},
		{"/v1/responses", `{"model":"m"}`, "needed"},
		{"/v1/responses", `{"model":"m","input":[{"role":"user","content":""}]}`, "empty"},
		{"/v1/responses", `{"model":"m","input":[{"type":"function_call","call_id":"x","name":"a"}]}`, "no tool output"},
		{"/v1/responses", `{"model":"m","input":[{"type":"function_call_output","call_id":"x"}]}`, "no tool call"},
		{"/v1/chat/completions", `{"model":"m"}`, "needed"},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":""}]}`, "empty"},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"tool","tool_call_id":"x","content":"a"}]}`, "no tool call"},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"a"}}]},{"role":"user","content":"a"}]}`, "without their messages"},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"a"}}]}]}`, "have no messages"},
	} {
		if status, body := post(t, s, c.path, c.body); status != 400 || !strings.Contains(body, c.want) || !strings.Contains(body, "invalid_request_error") {
			t.Errorf("%s: %d %s, want %s", c.body, status, body, c.want)
		}
	}
	if len(s.Requests()) != 0 {
		t.Errorf("%d requests are counted", len(s.Requests()))
	}
}

const asks = `{"role":"user","content":[{"type":"text","text":"a"}]}`

func messages(list ...string) string {
	return `{"model":"m","max_tokens":9,"stream":true,"messages":[` + strings.Join(list, ",") + `]}`
}

// The events of a reply, in the order and with the first fields that the providers have.
func TestEvents(t *testing.T) {
	reply := Reply{Text: "one two three four", Calls: []Call{{Name: "x", Args: []byte(`{"a":1}`)}}}
	s, err := Serve([]Reply{reply, reply, reply})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	name := regexp.MustCompile(`(?m)^(?:event: (.+)\n)?data: (.{0,24})`)
	for _, c := range []struct{ path, body, want string }{
		{"/v1/messages", messages(asks), "message_start content_block_start ping content_block_delta content_block_delta content_block_stop " +
			"content_block_start content_block_delta content_block_stop message_delta message_stop"},
		{"/v1/responses", `{"model":"m","input":[{"role":"user","content":"a"}]}`, "response.created response.in_progress response.output_item.added response.content_part.added " +
			"response.output_text.delta response.output_text.delta response.output_text.done response.content_part.done response.output_item.done response.output_item.added " +
			"response.function_call_arguments.delta response.function_call_arguments.done response.output_item.done response.completed"},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"a"}]}`, strings.TrimSpace(strings.Repeat("chunk ", 7)) + " [DONE]"},
	} {
		_, body := post(t, s, c.path, c.body)
		var names []string
		for _, m := range name.FindAllStringSubmatch(body, -1) {
			switch {
			case m[1] != "" && strings.HasPrefix(m[2], `{"type":"`+m[1][:min(len(m[1]), 15)]):
				names = append(names, m[1])
			case m[1] == "" && strings.HasPrefix(m[2], `{"id":"chatcmpl-`):
				names = append(names, "chunk")
			default:
				names = append(names, m[2])
			}
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.path, got, c.want)
		}
	}
}
