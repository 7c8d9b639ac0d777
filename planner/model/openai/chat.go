package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"harness/planner/model"
)

type chat struct{ client }

// NewChat is a model behind the Chat Completions API.
func NewChat(c Config) model.Model { return &chat{newClient(c)} }

func (c *chat) Complete(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	ctx, alive, stop := model.Idle(ctx)
	defer stop()
	stream := c.sdk.Chat.Completions.NewStreaming(ctx, c.params(req))
	defer stream.Close()
	var got collected
	for stream.Next() {
		alive()
		got.add(stream.Current(), emit)
	}
	if err := stream.Err(); err != nil {
		return nil, convert(ctx, err)
	}
	if got.finish == "" {
		return nil, &model.Error{Kind: model.Network, Message: "the stream ended before the reply did"}
	}
	return got.reply(), nil
}

func (c *chat) params(req *model.Request) sdk.ChatCompletionNewParams {
	p := sdk.ChatCompletionNewParams{Model: shared.ChatModel(c.cfg.Model),
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)}}
	if req.MaxTokens > 0 {
		p.MaxCompletionTokens = param.NewOpt(int64(req.MaxTokens))
	}
	if req.System != "" {
		p.Messages = append(p.Messages, sdk.SystemMessage(req.System))
	}
	for _, t := range req.Tools {
		p.Tools = append(p.Tools, sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: t.Name,
			Description: param.NewOpt(t.Description), Parameters: parameters(t.Schema)}))
	}
	for _, m := range model.Tidy(req.Messages) {
		switch m.Role {
		case model.ToolRole:
			for _, r := range m.Results {
				p.Messages = append(p.Messages, sdk.ToolMessage(r.Text, r.CallID))
			}
		case model.Assistant:
			a := sdk.ChatCompletionAssistantMessageParam{}
			if m.Text != "" {
				a.Content.OfString = param.NewOpt(m.Text)
			}
			for _, call := range m.Calls {
				a.ToolCalls = append(a.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
					ID: call.ID, Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: call.Name, Arguments: arguments(call.Args)}}})
			}
			p.Messages = append(p.Messages, sdk.ChatCompletionMessageParamUnion{OfAssistant: &a})
		default:
			p.Messages = append(p.Messages, sdk.UserMessage(m.Text))
		}
	}
	return p
}

func arguments(raw json.RawMessage) string {
	if !json.Valid(raw) {
		return "{}"
	}
	return string(raw)
}

// collected is a reply as its chunks come. Servers differ: deltas of calls may
// lack their index, arguments may be an object, the finish reason may be wrong,
// usage may be missing, thoughts may come between think tags.
type collected struct {
	text   strings.Builder
	calls  []model.ToolCall
	index  []int64
	finish string
	usage  model.Usage
}

func (c *collected) add(chunk sdk.ChatCompletionChunk, emit func(model.Delta)) {
	if u := chunk.Usage; u.TotalTokens > 0 || u.PromptTokens > 0 {
		c.usage = model.Usage{InputTokens: int(u.PromptTokens), CachedInputTokens: int(u.PromptTokensDetails.CachedTokens), OutputTokens: int(u.CompletionTokens)}
	}
	for _, choice := range chunk.Choices {
		if choice.FinishReason != "" {
			c.finish = string(choice.FinishReason)
		}
		if t := choice.Delta.Content; t != "" {
			c.text.WriteString(t)
			emit(model.Delta{Text: t})
		}
		for _, d := range choice.Delta.ToolCalls {
			c.call(d, emit)
		}
	}
}

func (c *collected) call(d sdk.ChatCompletionChunkChoiceDeltaToolCall, emit func(model.Delta)) {
	at := -1
	for i, x := range c.index {
		if d.JSON.Index.Valid() && x == d.Index && (d.ID == "" || d.ID == c.calls[i].ID) {
			at = i
		}
	}
	if at < 0 && !d.JSON.Index.Valid() && d.ID == "" && d.Function.Name == "" {
		at = len(c.calls) - 1 // goes on with the last one
	}
	if at < 0 {
		if d.Function.Name == "" && d.ID == "" {
			return
		}
		c.calls = append(c.calls, model.ToolCall{ID: d.ID, Name: d.Function.Name})
		c.index = append(c.index, d.Index)
		at = len(c.calls) - 1
		emit(model.Delta{CallName: d.Function.Name})
	}
	args := d.Function.Arguments
	if raw := d.Function.JSON.Arguments.Raw(); args == "" && strings.HasPrefix(raw, "{") {
		args = raw
	}
	c.calls[at].Args = append(c.calls[at].Args, args...)
}

func (c *collected) reply() *model.Reply {
	m := model.Message{Role: model.Assistant, Text: withoutThoughts(c.text.String()), Calls: unique(c.calls)}
	r := &model.Reply{Message: m, Stop: model.EndTurn, Usage: c.usage}
	switch {
	case len(m.Calls) > 0:
		r.Stop = model.ToolUse
	case c.finish == "length":
		r.Stop = model.MaxTokens
	case c.finish == "content_filter":
		r.Stop = model.Refusal
	}
	return r
}

// withoutThoughts takes a leading <think>…</think> off.
func withoutThoughts(s string) string {
	t := strings.TrimSpace(s)
	if rest, ok := strings.CutPrefix(t, "<think>"); ok {
		if _, after, ok := strings.Cut(rest, "</think>"); ok {
			return strings.TrimSpace(after)
		}
	}
	return s
}

// unique gives every call an id of its own, and an empty argument list its form.
func unique(calls []model.ToolCall) []model.ToolCall {
	seen := map[string]bool{}
	for i := range calls {
		c := &calls[i]
		for n := i; c.ID == "" || seen[c.ID]; n++ {
			c.ID = fmt.Sprintf("call_%d", n)
		}
		seen[c.ID] = true
		if len(c.Args) == 0 {
			c.Args = json.RawMessage("{}")
		}
	}
	return calls
}
