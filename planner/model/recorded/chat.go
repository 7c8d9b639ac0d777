package recorded

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

func openaiFail(w http.ResponseWriter, status int, kind, message string) {
	fail(w, status, obj{{"error", obj{{"message", message}, {"type", kind}, {"param", nil}, {"code", nil}}}})
}

// chatWire is the Chat Completions API's streaming format
// (https://platform.openai.com/docs/api-reference/chat-streaming).
type chatWire struct{}

func (chatWire) fail(w http.ResponseWriter, status int, kind, message string) {
	openaiFail(w, status, kind, message)
}

func (chatWire) broken(s *stream) {
	s.event("", obj{{"error", obj{{"message", "The server is overloaded"}, {"type", "server_error"}, {"param", nil}, {"code", nil}}}})
}

func (chatWire) check(body []byte) error {
	var r struct {
		Model    string
		Messages []struct {
			Role       string
			Content    json.RawMessage
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	if r.Model == "" || len(r.Messages) == 0 {
		return errors.New("model and messages are needed")
	}
	open, used := map[string]bool{}, map[string]bool{}
	for i, m := range r.Messages {
		if i > 0 && m.Role == r.Messages[i-1].Role && m.Role != "tool" { // strict templates of local servers
			return fmt.Errorf("messages.[%d]: roles must alternate", i)
		}
		full, err := parts(m.Content)
		if err != nil || !full && len(m.ToolCalls) == 0 {
			return fmt.Errorf("messages.[%d]: content is empty, or %v", i, err)
		}
		if m.Role != "user" && strings.Contains(string(m.Content), "image_url") {
			return fmt.Errorf("messages.[%d]: an image in a message of role %s", i, m.Role)
		}
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
			if c.ID == "" || used[c.ID] || c.Function.Arguments != "" && !json.Valid([]byte(c.Function.Arguments)) || !plain(c.Function.Name) {
				return fmt.Errorf("messages.[%d]: tool call %q %q", i, c.ID, c.Function.Name)
			}
			open[c.ID], used[c.ID] = true, true
		}
	}
	if len(open) > 0 {
		return errors.New("the last tool calls have no messages")
	}
	return nil
}

func (chatWire) reply(s *stream, n int, r Reply) {
	chunk := func(delta any, finish any) {
		s.event("", obj{{"id", fmt.Sprintf("chatcmpl-%04d", n)}, {"object", "chat.completion.chunk"}, {"created", 1764547200}, {"model", "recorded"},
			{"choices", []any{obj{{"index", 0}, {"delta", delta}, {"logprobs", nil}, {"finish_reason", finish}}}}, {"usage", nil}})
	}
	chunk(obj{{"role", "assistant"}, {"content", ""}}, nil)
	field := "content"
	if r.Fault == "refusal" {
		field = "refusal"
	}
	s.text(r.Text, func(p string) { chunk(obj{{field, p}}, nil) })
	for i, c := range r.Calls {
		chunk(obj{{"tool_calls", []any{obj{{"index", i}, {"id", fmt.Sprintf("call_%04d_%d", n, i)}, {"type", "function"}, {"function", obj{{"name", c.Name}, {"arguments", ""}}}}}}}, nil)
		s.args(arguments(c.Args), func(p string) {
			chunk(obj{{"tool_calls", []any{obj{{"index", i}, {"function", obj{{"arguments", p}}}}}}}, nil)
		})
	}
	finish := "stop"
	switch {
	case r.Fault == "max_tokens":
		finish = "length"
	case r.Fault == "filter":
		finish = "content_filter"
	case len(r.Calls) > 0:
		finish = "tool_calls"
	}
	chunk(obj{}, finish)
	s.event("", obj{{"id", fmt.Sprintf("chatcmpl-%04d", n)}, {"object", "chat.completion.chunk"}, {"created", 1764547200}, {"model", "recorded"}, {"choices", []any{}},
		{"usage", obj{{"prompt_tokens", r.Usage.InputTokens}, {"completion_tokens", r.Usage.OutputTokens}, {"total_tokens", r.Usage.InputTokens + r.Usage.OutputTokens},
			{"prompt_tokens_details", obj{{"cached_tokens", r.Usage.CachedInputTokens}}}}}})
	s.raw("", "[DONE]")
}
