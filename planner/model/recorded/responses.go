package recorded

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// responsesWire is the Responses API's streaming format
// (https://platform.openai.com/docs/api-reference/responses-streaming).
type responsesWire struct{}

func (responsesWire) fail(w http.ResponseWriter, status int, kind, message string) {
	openaiFail(w, status, kind, message)
}

func (responsesWire) broken(s *stream) {
	s.event("error", obj{{"type", "error"}, {"sequence_number", 9}, {"code", "server_error"}, {"message", "The server is overloaded"}, {"param", nil}})
}

func (responsesWire) check(body []byte) error {
	var r struct {
		Model string
		Input []struct {
			Type, Name string
			Content    json.RawMessage
			Output     json.RawMessage
			CallID     string `json:"call_id"`
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	if r.Model == "" || len(r.Input) == 0 {
		return errors.New("model and input are needed")
	}
	open, used := map[string]bool{}, map[string]bool{}
	for _, item := range r.Input {
		switch item.Type {
		case "", "message":
			if full, err := parts(item.Content); err != nil || !full {
				return fmt.Errorf("an input message is empty, or %v", err)
			}
		case "function_call":
			if item.CallID == "" || len(item.CallID) > 64 || used[item.CallID] || !plain(item.Name) {
				return fmt.Errorf("function call %q %q", item.CallID, item.Name)
			}
			open[item.CallID], used[item.CallID] = true, true
		case "function_call_output":
			if !open[item.CallID] {
				return fmt.Errorf("no tool call found for function call output with call_id %s", item.CallID)
			}
			if full, err := parts(item.Output); err != nil || !full {
				return fmt.Errorf("the output of %s is empty, or %v", item.CallID, err)
			}
			delete(open, item.CallID)
		}
	}
	for id := range open {
		return fmt.Errorf("no tool output found for function call %s", id)
	}
	return nil
}

func (responsesWire) reply(s *stream, n int, r Reply) {
	seq := 0
	event := func(name string, fields obj) {
		s.event(name, append(obj{{"type", name}, {"sequence_number", seq}}, fields...))
		seq++
	}
	response := func(status string, output []any, usage any) obj {
		var incomplete any
		if status == "incomplete" {
			incomplete = obj{{"reason", map[bool]string{true: "content_filter", false: "max_output_tokens"}[r.Fault == "filter"]}}
		}
		return obj{{"id", fmt.Sprintf("resp_%04d", n)}, {"object", "response"}, {"created_at", 1764547200}, {"status", status}, {"error", nil},
			{"incomplete_details", incomplete}, {"model", "recorded"}, {"output", output}, {"parallel_tool_calls", true}, {"usage", usage}}
	}
	event("response.created", obj{{"response", response("in_progress", []any{}, nil)}})
	event("response.in_progress", obj{{"response", response("in_progress", []any{}, nil)}})
	output := []any{}
	if r.Text != "" {
		id := fmt.Sprintf("msg_%04d", n)
		event("response.output_item.added", obj{{"output_index", 0}, {"item", obj{{"id", id}, {"type", "message"}, {"status", "in_progress"}, {"role", "assistant"}, {"content", []any{}}}}})
		event("response.content_part.added", obj{{"item_id", id}, {"output_index", 0}, {"content_index", 0}, {"part", obj{{"type", "output_text"}, {"text", ""}, {"annotations", []any{}}}}})
		s.text(r.Text, func(p string) {
			event("response.output_text.delta", obj{{"item_id", id}, {"output_index", 0}, {"content_index", 0}, {"delta", p}})
		})
		part := obj{{"type", "output_text"}, {"text", r.Text}, {"annotations", []any{}}}
		if r.Fault == "refusal" {
			part = obj{{"type", "refusal"}, {"refusal", r.Text}}
		}
		item := obj{{"id", id}, {"type", "message"}, {"status", "completed"}, {"role", "assistant"}, {"content", []any{part}}}
		event("response.output_text.done", obj{{"item_id", id}, {"output_index", 0}, {"content_index", 0}, {"text", r.Text}})
		event("response.content_part.done", obj{{"item_id", id}, {"output_index", 0}, {"content_index", 0}, {"part", part}})
		event("response.output_item.done", obj{{"output_index", 0}, {"item", item}})
		output = append(output, item)
	}
	for i, c := range r.Calls {
		at := len(output)
		id := fmt.Sprintf("fc_%04d_%d", n, i)
		item := func(status, args string) obj {
			return obj{{"id", id}, {"type", "function_call"}, {"status", status}, {"call_id", fmt.Sprintf("call_%04d_%d", n, i)}, {"name", c.Name}, {"arguments", args}}
		}
		event("response.output_item.added", obj{{"output_index", at}, {"item", item("in_progress", "")}})
		s.args(arguments(c.Args), func(p string) {
			event("response.function_call_arguments.delta", obj{{"item_id", id}, {"output_index", at}, {"delta", p}})
		})
		event("response.function_call_arguments.done", obj{{"item_id", id}, {"output_index", at}, {"arguments", arguments(c.Args)}})
		event("response.output_item.done", obj{{"output_index", at}, {"item", item("completed", arguments(c.Args))}})
		output = append(output, item("completed", arguments(c.Args)))
	}
	usage := obj{{"input_tokens", r.Usage.InputTokens}, {"input_tokens_details", obj{{"cached_tokens", r.Usage.CachedInputTokens}}},
		{"output_tokens", r.Usage.OutputTokens}, {"output_tokens_details", obj{{"reasoning_tokens", 0}}},
		{"total_tokens", r.Usage.InputTokens + r.Usage.OutputTokens}}
	if r.Fault == "max_tokens" || r.Fault == "filter" {
		event("response.incomplete", obj{{"response", response("incomplete", output, usage)}})
		return
	}
	event("response.completed", obj{{"response", response("completed", output, usage)}})
}
