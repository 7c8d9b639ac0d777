// Package anthropic speaks the Messages API through the provider's SDK.
package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"harness/planner/model"
)

// Config names a model and the way to it.
type Config struct {
	Model, APIKey, BaseURL string
	HTTPClient             *http.Client
	Info                   model.Info
}

type client struct {
	cfg Config
	sdk sdk.Client
}

// New is a model of Anthropic's, or of a server that speaks as they do.
func New(c Config) model.Model {
	opts := []option.RequestOption{option.WithAPIKey(c.APIKey), option.WithMaxRetries(0)}
	if c.BaseURL != "" {
		opts = append(opts, option.WithBaseURL(c.BaseURL))
	}
	if c.HTTPClient != nil {
		opts = append(opts, option.WithHTTPClient(c.HTTPClient))
	}
	return &client{c, sdk.NewClient(opts...)}
}

func (c *client) Name() string     { return "anthropic/" + c.cfg.Model }
func (c *client) Info() model.Info { return c.cfg.Info }

const defaultMaxTokens = 16_000

func (c *client) Complete(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	ctx, alive, stop := model.Idle(ctx)
	defer stop()
	stream := c.sdk.Messages.NewStreaming(ctx, c.params(req))
	defer stream.Close()
	var msg sdk.Message
	ended := false
	for stream.Next() {
		alive()
		ev := stream.Current()
		if err := msg.Accumulate(ev); err != nil {
			return nil, &model.Error{Kind: model.Network, Message: "the stream is damaged: " + err.Error()}
		}
		switch ev.Type {
		case "content_block_start":
			if ev.ContentBlock.Type == "tool_use" {
				emit(model.Delta{CallName: ev.ContentBlock.Name})
			}
		case "content_block_delta":
			emit(model.Delta{Text: ev.Delta.Text, Reasoning: ev.Delta.Thinking})
		case "message_stop":
			ended = true
		}
	}
	if err := stream.Err(); err != nil {
		return nil, convert(ctx, err)
	}
	if !ended {
		return nil, &model.Error{Kind: model.Network, Message: "the stream ended before the reply did"}
	}
	return reply(&msg), nil
}

func (c *client) params(req *model.Request) sdk.MessageNewParams {
	p := sdk.MessageNewParams{Model: sdk.Model(c.cfg.Model), MaxTokens: int64(req.MaxTokens)}
	if p.MaxTokens == 0 {
		p.MaxTokens = defaultMaxTokens
		if c.cfg.Info.MaxOutput > 0 {
			p.MaxTokens = min(p.MaxTokens, int64(c.cfg.Info.MaxOutput))
		}
	}
	cache := sdk.NewCacheControlEphemeralParam()
	if req.System != "" {
		p.System = []sdk.TextBlockParam{{Text: req.System, CacheControl: cache}}
	}
	for _, t := range req.Tools {
		p.Tools = append(p.Tools, sdk.ToolUnionParam{OfTool: &sdk.ToolParam{Name: t.Name, Description: param.NewOpt(t.Description),
			InputSchema: schema(t.Schema)}})
	}
	for _, m := range model.Tidy(req.Messages) {
		p.Messages = append(p.Messages, message(m))
	}
	if n := len(p.Messages); n > 0 { // the conversation up to here is the prefix of the next request
		blocks := content(p.Messages[n-1])
		if cc := blocks[len(blocks)-1].GetCacheControl(); cc != nil {
			*cc = cache
		}
	}
	return p
}

func content(m sdk.MessageParam) []sdk.ContentBlockParamUnion {
	if m.OfAssistant != nil {
		return m.OfAssistant.Content
	}
	return m.OfUser.Content
}

func schema(raw json.RawMessage) sdk.ToolInputSchemaParam {
	var s struct {
		Properties any
		Required   []string
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		panic("anthropic: a tool's schema: " + err.Error())
	}
	return sdk.ToolInputSchemaParam{Properties: s.Properties, Required: s.Required}
}

// thinking is a block that must go back unchanged with the calls that it led to.
type thinking struct{ Thinking, Signature, Redacted string }

func message(m model.Message) sdk.MessageParam {
	var blocks []sdk.ContentBlockParamUnion
	switch m.Role {
	case model.ToolRole:
		for _, r := range m.Results {
			blocks = append(blocks, sdk.NewToolResultBlock(r.CallID, r.Text, r.IsError))
		}
		return sdk.NewUserMessage(blocks...)
	case model.Assistant:
		var kept []thinking
		if raw := m.Opaque["anthropic"]; raw != nil && json.Unmarshal(raw, &kept) == nil {
			for _, t := range kept {
				if t.Redacted != "" {
					blocks = append(blocks, sdk.NewRedactedThinkingBlock(t.Redacted))
				} else {
					blocks = append(blocks, sdk.NewThinkingBlock(t.Signature, t.Thinking))
				}
			}
		}
		if m.Text != "" {
			blocks = append(blocks, sdk.NewTextBlock(m.Text))
		}
		for _, c := range m.Calls {
			args := c.Args
			if !json.Valid(args) {
				args = json.RawMessage("{}")
			}
			blocks = append(blocks, sdk.NewToolUseBlock(c.ID, args, c.Name))
		}
		return sdk.NewAssistantMessage(blocks...)
	}
	return sdk.NewUserMessage(sdk.NewTextBlock(m.Text))
}

func reply(msg *sdk.Message) *model.Reply {
	m := model.Message{Role: model.Assistant}
	var kept []thinking
	for _, b := range msg.Content {
		switch b.Type {
		case "text":
			m.Text += b.Text
		case "tool_use":
			m.Calls = append(m.Calls, model.ToolCall{ID: b.ID, Name: b.Name, Args: json.RawMessage(b.Input)})
		case "thinking":
			kept = append(kept, thinking{Thinking: b.Thinking, Signature: b.Signature})
		case "redacted_thinking":
			kept = append(kept, thinking{Redacted: b.Data})
		}
	}
	if len(kept) > 0 {
		if raw, err := json.Marshal(kept); err == nil {
			m.Opaque = map[string]json.RawMessage{"anthropic": raw}
		}
	}
	u := msg.Usage
	r := &model.Reply{Message: m, Stop: model.EndTurn, Usage: model.Usage{
		InputTokens:       int(u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens),
		CachedInputTokens: int(u.CacheReadInputTokens), OutputTokens: int(u.OutputTokens)}}
	switch msg.StopReason {
	case "tool_use":
		r.Stop = model.ToolUse
	case "max_tokens":
		r.Stop = model.MaxTokens
	case "refusal":
		r.Stop = model.Refusal
	}
	return r
}

func convert(ctx context.Context, err error) error {
	var me *model.Error
	if errors.As(context.Cause(ctx), &me) {
		return me
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var api *sdk.Error
	if errors.As(err, &api) {
		var header http.Header
		if api.Response != nil {
			header = api.Response.Header
		}
		var body struct {
			Error struct{ Type, Message string }
		}
		text := api.RawJSON()
		if json.Unmarshal([]byte(text), &body) == nil && body.Error.Message != "" {
			text = body.Error.Message
		}
		if api.StatusCode == http.StatusOK && body.Error.Type == "overloaded_error" {
			return &model.Error{Kind: model.Overload, Message: text}
		}
		return model.FromHTTP(api.StatusCode, header, text)
	}
	return &model.Error{Kind: model.Network, Message: err.Error()}
}
