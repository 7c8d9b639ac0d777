package openai

import (
	"encoding/json"
	"strings"

	sdk "github.com/openai/openai-go/v3"

	"harness/planner/model"
)

// collected is a reply as its chunks come. Servers differ: deltas of calls may
// lack their index, arguments may be an object, the finish reason may be wrong,
// usage may be missing, thoughts may come between think tags or in a field of
// their own.
type collected struct {
	emit   func(model.Delta)
	text   strings.Builder
	think  thinking
	calls  []model.ToolCall
	index  []int64 // of calls; -1 where the server gives none
	finish string
	refuse bool
	extra  map[int]json.RawMessage // by the place of a call: a signed thought of Gemini's
	usage  model.Usage
}

func (c *collected) add(chunk sdk.ChatCompletionChunk) {
	if u := chunk.Usage; u.TotalTokens > 0 || u.PromptTokens > 0 {
		c.usage = model.Usage{InputTokens: int(u.PromptTokens), CachedInputTokens: int(u.PromptTokensDetails.CachedTokens), OutputTokens: int(u.CompletionTokens),
			ReasoningTokens: int(u.CompletionTokensDetails.ReasoningTokens)}
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue
		}
		d := choice.Delta
		for _, field := range []string{"reasoning_content", "reasoning"} {
			var s string
			if json.Unmarshal([]byte(d.JSON.ExtraFields[field].Raw()), &s) == nil && s != "" {
				c.emit(model.Delta{Reasoning: s})
				break
			}
		}
		c.say(c.think.split(d.Content + d.Refusal))
		c.refuse = c.refuse || d.Refusal != ""
		for _, call := range d.ToolCalls {
			c.call(call)
		}
		if choice.FinishReason != "" {
			c.finish = string(choice.FinishReason)
		}
	}
}

func (c *collected) say(text, reasoning string) {
	c.text.WriteString(text)
	if text != "" || reasoning != "" {
		c.emit(model.Delta{Text: text, Reasoning: reasoning})
	}
}

func (c *collected) call(d sdk.ChatCompletionChunkChoiceDeltaToolCall) {
	index := int64(-1)
	if d.JSON.Index.Valid() {
		index = d.Index
	}
	at := c.find(index, d.ID, d.Function.Name)
	if at < 0 {
		if d.ID == "" && d.Function.Name == "" {
			return
		}
		c.calls = append(c.calls, model.ToolCall{ID: d.ID, Name: d.Function.Name})
		c.index = append(c.index, index)
		at = len(c.calls) - 1
		c.emit(model.Delta{CallName: d.Function.Name})
	}
	if c.calls[at].Name == "" {
		c.calls[at].Name = d.Function.Name
	}
	if raw := d.JSON.ExtraFields["extra_content"].Raw(); strings.HasPrefix(raw, "{") && json.Valid([]byte(raw)) {
		if c.extra == nil {
			c.extra = map[int]json.RawMessage{}
		}
		c.extra[at] = json.RawMessage(raw)
	}
	args := d.Function.Arguments
	if raw := d.Function.JSON.Arguments.Raw(); strings.HasPrefix(raw, "{") {
		args = raw
	}
	c.calls[at].Args = append(c.calls[at].Args, args...)
}

// find is the place of the call that a delta goes on with, -1 for a new one.
// An index that comes again with another id is another call.
func (c *collected) find(index int64, id, name string) int {
	for i := len(c.calls) - 1; i >= 0; i-- {
		switch known := c.calls[i].ID; {
		case index != c.index[i]:
		case index >= 0 && (id == "" || id == known):
			return i
		case index < 0 && id != "" && id == known && (name == "" || name == c.calls[i].Name && !json.Valid(c.calls[i].Args)):
			return i
		case index < 0 && id == "" && name == "":
			return i
		}
	}
	return -1
}

func (c *collected) reply(name string, before []model.Message) *model.Reply {
	c.say(c.think.end())
	text := c.text.String()
	if c.think.found {
		text = strings.TrimLeft(text, "\r\n")
	}
	m := model.Message{Role: model.Assistant, Text: text, Calls: model.Unique(c.calls, before)}
	if raw, err := json.Marshal(extras{name, c.extra}); err == nil && len(c.extra) > 0 {
		m.Opaque = map[string]json.RawMessage{"chat": raw}
	}
	r := &model.Reply{Message: m, Stop: model.EndTurn, Reason: c.finish, Usage: c.usage}
	switch {
	case c.finish == "length":
		r.Stop = model.MaxTokens
	case c.finish == "content_filter":
		r.Stop = model.Filtered
	case c.refuse:
		r.Stop = model.Refusal
	case len(m.Calls) > 0:
		r.Stop = model.ToolUse
	}
	return r
}

// extras is what a server put beside the calls of a message, which must go back
// with them, to the model that gave it.
type extras struct {
	Model string
	Calls map[int]json.RawMessage
}

func extraOf(m model.Message, name string) map[int]json.RawMessage {
	var e extras
	if raw := m.Opaque["chat"]; raw == nil || json.Unmarshal(raw, &e) != nil || e.Model != name {
		return nil
	}
	return e.Calls
}
