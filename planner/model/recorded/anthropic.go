package recorded

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// anthropicWire is the Messages API's streaming format
// (https://docs.anthropic.com/en/api/messages-streaming).
type anthropicWire struct{}

// plain says whether the providers take a name of a tool or a call.
func plain(name string) bool {
	const bytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	return len(name) > 0 && len(name) <= 64 && strings.Trim(name, bytes) == ""
}

func (anthropicWire) check(body []byte) error {
	var r struct {
		Model    string
		Stream   bool
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		MaxTokens int `json:"max_tokens"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	if r.Model == "" || r.MaxTokens < 1 || len(r.Messages) == 0 || !r.Stream {
		return errors.New("model, max_tokens, messages and stream are needed")
	}
	open, used := map[string]bool{}, map[string]bool{}
	for i, m := range r.Messages {
		if i > 0 && m.Role == r.Messages[i-1].Role {
			return fmt.Errorf("messages.%d: roles must alternate", i)
		}
		var blocks []struct {
			Type, ID, Name, Text string
			Input                map[string]any // no other kind of JSON
			ToolUseID            string         `json:"tool_use_id"`
			IsError              bool           `json:"is_error"`
			Content              []anthropicPart
			Source               anthropicSource
		}
		if err := json.Unmarshal(m.Content, &blocks); err != nil || len(blocks) == 0 {
			return fmt.Errorf("messages.%d: content is empty", i)
		}
		if m.Role != "user" && m.Role != "assistant" || i == 0 && m.Role != "user" {
			return fmt.Errorf("messages.%d: role %q", i, m.Role)
		}
		answered := map[string]bool{}
		for _, b := range blocks {
			switch b.Type {
			case "text":
				if strings.TrimSpace(b.Text) == "" {
					return fmt.Errorf("messages.%d: text content blocks must contain non-whitespace text", i)
				}
			case "image":
				if err := b.Source.check(); err != nil || m.Role != "user" {
					return fmt.Errorf("messages.%d: image of %s: %v", i, m.Role, err)
				}
			case "tool_use":
				if !plain(b.ID) || !plain(b.Name) {
					return fmt.Errorf("messages.%d: tool_use %q %q: should match pattern '^[a-zA-Z0-9_-]+$'", i, b.ID, b.Name)
				}
				if used[b.ID] {
					return fmt.Errorf("messages.%d: `tool_use` ids must be unique: %s", i, b.ID)
				}
				used[b.ID] = true
			case "tool_result":
				if answered[b.ToolUseID] {
					return fmt.Errorf("messages.%d: each tool_use must have a single result: %s", i, b.ToolUseID)
				}
				if !open[b.ToolUseID] {
					return fmt.Errorf("messages.%d: tool_result %q has no tool_use in the previous message", i, b.ToolUseID)
				}
				answered[b.ToolUseID] = true
				for _, part := range b.Content {
					if err := part.check(b.IsError); err != nil {
						return fmt.Errorf("messages.%d: tool_result: %w", i, err)
					}
				}
			}
		}
		if len(answered) != len(open) {
			return fmt.Errorf("messages.%d: %d tool_use ids are without tool_result", i, len(open)-len(answered))
		}
		clear(open)
		for _, b := range blocks {
			if b.Type == "tool_use" {
				open[b.ID] = true
			}
		}
	}
	if len(open) > 0 {
		return errors.New("the last tool_use has no tool_result")
	}
	return nil
}

type anthropicSource struct {
	Type, Data string
	MediaType  string `json:"media_type"`
}

func (s anthropicSource) check() error {
	if s.Type != "base64" {
		return fmt.Errorf("a source of type %q", s.Type)
	}
	return checkImage(s.MediaType, s.Data)
}

type anthropicPart struct {
	Type, Text string
	Source     anthropicSource
}

// check of a part of a result: an error has words only.
func (p anthropicPart) check(isError bool) error {
	switch {
	case p.Type == "text" && strings.TrimSpace(p.Text) != "":
		return nil
	case p.Type == "image" && !isError:
		return p.Source.check()
	}
	return fmt.Errorf("a part of type %q", p.Type)
}

func (anthropicWire) fail(w http.ResponseWriter, status int, kind, message string) {
	fail(w, status, obj{{"type", "error"}, {"error", obj{{"type", kind}, {"message", message}}}, {"request_id", "req_recorded"}})
}

func (anthropicWire) broken(s *stream) {
	s.event("error", obj{{"type", "error"}, {"error", obj{{"type", "overloaded_error"}, {"message", "Overloaded"}}}})
}

func fail(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

func (anthropicWire) reply(s *stream, n int, r Reply) {
	s.event("message_start", obj{{"type", "message_start"}, {"message", obj{{"id", fmt.Sprintf("msg_%04d", n)}, {"type", "message"}, {"role", "assistant"},
		{"model", "recorded"}, {"content", []any{}}, {"stop_reason", nil}, {"stop_sequence", nil},
		{"usage", obj{{"input_tokens", r.Usage.InputTokens - r.Usage.CachedInputTokens}, {"cache_creation_input_tokens", 0},
			{"cache_read_input_tokens", r.Usage.CachedInputTokens}, {"output_tokens", 1}}}}}})
	index := 0
	if r.Text != "" {
		s.event("content_block_start", obj{{"type", "content_block_start"}, {"index", 0}, {"content_block", obj{{"type", "text"}, {"text", ""}}}})
		s.event("ping", obj{{"type", "ping"}})
		s.text(r.Text, func(p string) {
			s.event("content_block_delta", obj{{"type", "content_block_delta"}, {"index", 0}, {"delta", obj{{"type", "text_delta"}, {"text", p}}}})
		})
		s.event("content_block_stop", obj{{"type", "content_block_stop"}, {"index", 0}})
		index++
	}
	for i, c := range r.Calls {
		s.event("content_block_start", obj{{"type", "content_block_start"}, {"index", index},
			{"content_block", obj{{"type", "tool_use"}, {"id", fmt.Sprintf("toolu_%04d_%d", n, i)}, {"name", c.Name}, {"input", obj{}}}}})
		s.args(arguments(c.Args), func(p string) {
			s.event("content_block_delta", obj{{"type", "content_block_delta"}, {"index", index}, {"delta", obj{{"type", "input_json_delta"}, {"partial_json", p}}}})
		})
		s.event("content_block_stop", obj{{"type", "content_block_stop"}, {"index", index}})
		index++
	}
	stop := "end_turn"
	switch {
	case r.Fault == "max_tokens":
		stop = "max_tokens"
	case r.Fault == "refusal" || r.Fault == "filter":
		stop = "refusal"
	case len(r.Calls) > 0:
		stop = "tool_use"
	}
	s.event("message_delta", obj{{"type", "message_delta"}, {"delta", obj{{"stop_reason", stop}, {"stop_sequence", nil}}}, {"usage", obj{{"output_tokens", r.Usage.OutputTokens}}}})
	s.event("message_stop", obj{{"type", "message_stop"}})
}
