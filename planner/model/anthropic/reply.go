package anthropic

import (
	"encoding/json"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"

	"harness/planner/model"
)

// collected is a reply as its events come. The SDK's own accumulator is not
// used: it makes {} of the arguments of a call that was cut.
type collected struct {
	blocks []block
	stop   sdk.StopReason
	counts [4]int // of input, cache read, cache written, output
	ended  bool
}

type block struct {
	kind, id, name string
	text           []byte // words, thoughts or arguments
	given          string // arguments that came with the start, or a redacted thought
	signature      string
}

func (c *collected) add(ev sdk.MessageStreamEventUnion, emit func(model.Delta)) {
	switch ev.Type {
	case "message_start":
		u := ev.Message.Usage
		c.count(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens)
	case "content_block_start":
		b := ev.ContentBlock
		x := block{kind: b.Type, id: b.ID, name: b.Name, text: []byte(b.Text + b.Thinking), signature: b.Signature, given: b.Data}
		switch b.Type {
		case "tool_use":
			x.given = b.JSON.Input.Raw()
			emit(model.Delta{CallName: b.Name})
		case "text":
			if b.Text != "" {
				emit(model.Delta{Text: b.Text})
			}
		}
		c.blocks = append(c.blocks, x)
	case "content_block_delta":
		if ev.Index < 0 || ev.Index >= int64(len(c.blocks)) {
			return
		}
		b, d := &c.blocks[ev.Index], ev.Delta
		b.text = append(b.text, d.Text+d.Thinking+d.PartialJSON...)
		b.signature += d.Signature
		if d.Text != "" || d.Thinking != "" {
			emit(model.Delta{Text: d.Text, Reasoning: d.Thinking})
		}
	case "message_delta":
		c.stop = ev.Delta.StopReason
		u := ev.Usage
		c.count(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens)
	case "message_stop":
		c.ended = true
	}
}

// count takes the newest totals; what an event leaves out stays.
func (c *collected) count(counts ...int64) {
	for i, n := range counts {
		if n > 0 {
			c.counts[i] = int(n)
		}
	}
}

func (c *collected) reply(name string, before []model.Message) *model.Reply {
	m := model.Message{Role: model.Assistant}
	var kept []thought
	for _, b := range c.blocks {
		switch b.kind {
		case "text":
			m.Text += string(b.text)
		case "tool_use":
			if len(b.text) == 0 {
				b.text = []byte(b.given)
			}
			m.Calls = append(m.Calls, model.ToolCall{ID: b.id, Name: b.name, Args: b.text})
		case "thinking":
			kept = append(kept, thought{Thinking: string(b.text), Signature: b.signature})
		case "redacted_thinking":
			kept = append(kept, thought{Redacted: b.given})
		}
	}
	m.Calls = model.Unique(m.Calls, before)
	if raw, err := json.Marshal(opaque{name, kept}); err == nil && len(kept) > 0 {
		m.Opaque = map[string]json.RawMessage{"anthropic": raw}
	}
	r := &model.Reply{Message: m, Stop: model.EndTurn, Reason: string(c.stop), Usage: model.Usage{
		InputTokens: c.counts[0] + c.counts[1] + c.counts[2], CachedInputTokens: c.counts[1], CacheWriteTokens: c.counts[2], OutputTokens: c.counts[3]}}
	switch {
	case c.stop == "max_tokens" || c.stop == "model_context_window_exceeded":
		r.Stop = model.MaxTokens
	case c.stop == "refusal":
		r.Stop = model.Refusal
	case len(m.Calls) > 0:
		r.Stop = model.ToolUse
	}
	return r
}

// opaque is the thoughts of a message, which must go back unchanged, to the
// model that had them, with the calls that they led to.
type opaque struct {
	Model    string
	Thoughts []thought
}

type thought struct{ Thinking, Signature, Redacted string }

func thoughts(m model.Message, name string) []thought {
	var o opaque
	if raw := m.Opaque["anthropic"]; raw == nil || json.Unmarshal(raw, &o) != nil || o.Model != name {
		return nil
	}
	return o.Thoughts
}
