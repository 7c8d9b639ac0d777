package recorded

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

func openaiFail(w http.ResponseWriter, status int, kind, message string) {
	fail(w, status, obj{"error": obj{"message": message, "type": kind, "param": nil, "code": nil}})
}

// chatWire is the Chat Completions API's streaming format
// (https://platform.openai.com/docs/api-reference/chat-streaming).
type chatWire struct{}

func (chatWire) fail(w http.ResponseWriter, status int, kind, message string) {
	openaiFail(w, status, kind, message)
}

func (chatWire) check(body []byte) error {
	var r struct {
		Model    string
		Messages []struct {
			Role       string
			ToolCallID string                `json:"tool_call_id"`
			ToolCalls  []struct{ ID string } `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	if r.Model == "" || len(r.Messages) == 0 {
		return errors.New("model and messages are needed")
	}
	open := map[string]bool{}
	for i, m := range r.Messages {
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return fmt.Errorf("messages.[%d]: no tool call with id %q", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("messages.[%d]: tool calls without their messages", i)
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		return errors.New("the last tool calls have no messages")
	}
	return nil
}

func (chatWire) reply(s *stream, n int, r Reply) {
	chunk := func(delta any, finish any) {
		s.event("", obj{"id": fmt.Sprintf("chatcmpl-%04d", n), "object": "chat.completion.chunk", "created": 1764547200, "model": "recorded",
			"choices": []any{obj{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}, "usage": nil})
	}
	chunk(obj{"role": "assistant", "content": ""}, nil)
	for _, p := range pieces(r.Text, 16) {
		chunk(obj{"content": p}, nil)
	}
	for i, c := range r.Calls {
		chunk(obj{"tool_calls": []any{obj{"index": i, "id": fmt.Sprintf("call_%04d_%d", n, i), "type": "function", "function": obj{"name": c.Name, "arguments": ""}}}}, nil)
		s.args(compact(c.Args), func(p string) {
			chunk(obj{"tool_calls": []any{obj{"index": i, "function": obj{"arguments": p}}}}, nil)
		})
	}
	finish := "stop"
	if len(r.Calls) > 0 {
		finish = "tool_calls"
	}
	chunk(obj{}, finish)
	s.event("", obj{"id": fmt.Sprintf("chatcmpl-%04d", n), "object": "chat.completion.chunk", "created": 1764547200, "model": "recorded", "choices": []any{},
		"usage": obj{"prompt_tokens": r.Usage.InputTokens, "completion_tokens": r.Usage.OutputTokens, "total_tokens": r.Usage.InputTokens + r.Usage.OutputTokens,
			"prompt_tokens_details": obj{"cached_tokens": r.Usage.CachedInputTokens}}})
	if !s.cut {
		fmt.Fprint(s.w, "data: [DONE]\n\n")
	}
}

// responsesWire is the Responses API's streaming format
// (https://platform.openai.com/docs/api-reference/responses-streaming).
type responsesWire struct{}

func (responsesWire) fail(w http.ResponseWriter, status int, kind, message string) {
	openaiFail(w, status, kind, message)
}

func (responsesWire) check(body []byte) error {
	var r struct {
		Model string
		Input []struct {
			Type   string
			CallID string `json:"call_id"`
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	if r.Model == "" || len(r.Input) == 0 {
		return errors.New("model and input are needed")
	}
	open := map[string]bool{}
	for _, item := range r.Input {
		switch item.Type {
		case "function_call":
			open[item.CallID] = true
		case "function_call_output":
			if !open[item.CallID] {
				return fmt.Errorf("no tool call found for function call output with call_id %s", item.CallID)
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
		fields["type"], fields["sequence_number"] = name, seq
		seq++
		s.event(name, fields)
	}
	response := func(status string, output []any, usage any) obj {
		return obj{"id": fmt.Sprintf("resp_%04d", n), "object": "response", "created_at": 1764547200, "status": status, "error": nil,
			"incomplete_details": nil, "model": "recorded", "output": output, "parallel_tool_calls": true, "usage": usage}
	}
	event("response.created", obj{"response": response("in_progress", []any{}, nil)})
	event("response.in_progress", obj{"response": response("in_progress", []any{}, nil)})
	var output []any
	if r.Text != "" {
		id := fmt.Sprintf("msg_%04d", n)
		event("response.output_item.added", obj{"output_index": 0, "item": obj{"id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": []any{}}})
		event("response.content_part.added", obj{"item_id": id, "output_index": 0, "content_index": 0, "part": obj{"type": "output_text", "text": "", "annotations": []any{}}})
		for _, p := range pieces(r.Text, 16) {
			event("response.output_text.delta", obj{"item_id": id, "output_index": 0, "content_index": 0, "delta": p})
		}
		part := obj{"type": "output_text", "text": r.Text, "annotations": []any{}}
		item := obj{"id": id, "type": "message", "status": "completed", "role": "assistant", "content": []any{part}}
		event("response.output_text.done", obj{"item_id": id, "output_index": 0, "content_index": 0, "text": r.Text})
		event("response.content_part.done", obj{"item_id": id, "output_index": 0, "content_index": 0, "part": part})
		event("response.output_item.done", obj{"output_index": 0, "item": item})
		output = append(output, item)
	}
	for i, c := range r.Calls {
		at := len(output)
		id := fmt.Sprintf("fc_%04d_%d", n, i)
		item := func(status, args string) obj {
			return obj{"id": id, "type": "function_call", "status": status, "call_id": fmt.Sprintf("call_%04d_%d", n, i), "name": c.Name, "arguments": args}
		}
		event("response.output_item.added", obj{"output_index": at, "item": item("in_progress", "")})
		s.args(compact(c.Args), func(p string) {
			event("response.function_call_arguments.delta", obj{"item_id": id, "output_index": at, "delta": p})
		})
		event("response.function_call_arguments.done", obj{"item_id": id, "output_index": at, "arguments": compact(c.Args)})
		event("response.output_item.done", obj{"output_index": at, "item": item("completed", compact(c.Args))})
		output = append(output, item("completed", compact(c.Args)))
	}
	event("response.completed", obj{"response": response("completed", output, obj{"input_tokens": r.Usage.InputTokens,
		"input_tokens_details": obj{"cached_tokens": r.Usage.CachedInputTokens}, "output_tokens": r.Usage.OutputTokens,
		"output_tokens_details": obj{"reasoning_tokens": 0}, "total_tokens": r.Usage.InputTokens + r.Usage.OutputTokens})})
}
