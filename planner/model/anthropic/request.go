package anthropic

import (
	"encoding/json"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"harness/planner/model"
)

const defaultMaxTokens = 16_000

// params has two cache points: after the tools and the system prompt, which
// never change, and at the end, where the next request goes on.
func (c *client) params(req *model.Request) (sdk.MessageNewParams, error) {
	most := defaultMaxTokens
	for _, n := range []int{req.MaxTokens, c.cfg.Info.MaxOutput} {
		if n > 0 {
			most = min(most, n)
		}
	}
	p := sdk.MessageNewParams{Model: sdk.Model(c.cfg.Model), MaxTokens: int64(most)}
	for _, t := range req.Tools {
		s, err := schema(t)
		if err != nil {
			return p, err
		}
		p.Tools = append(p.Tools, sdk.ToolUnionParam{OfTool: &sdk.ToolParam{Name: t.Name, Description: param.NewOpt(t.Description), InputSchema: s}})
	}
	cache := sdk.NewCacheControlEphemeralParam()
	if req.System != "" {
		p.System = []sdk.TextBlockParam{{Text: req.System, CacheControl: cache}}
	} else if n := len(p.Tools); n > 0 {
		p.Tools[n-1].OfTool.CacheControl = cache
	}
	for _, m := range model.Tidy(req.Messages) {
		blocks := c.blocks(m)
		n := len(p.Messages)
		switch {
		case m.Role == model.Assistant:
			p.Messages = append(p.Messages, sdk.NewAssistantMessage(blocks...))
		case n > 0 && p.Messages[n-1].OfUser != nil: // words after results are one message with them
			u := p.Messages[n-1].OfUser
			u.Content = append(u.Content, blocks...)
		default:
			p.Messages = append(p.Messages, sdk.NewUserMessage(blocks...))
		}
	}
	if n := len(p.Messages); n > 0 && p.Messages[n-1].OfUser != nil {
		blocks := p.Messages[n-1].OfUser.Content
		if at := blocks[len(blocks)-1].GetCacheControl(); at != nil {
			*at = cache
		}
	}
	return p, nil
}

func schema(t model.Tool) (s sdk.ToolInputSchemaParam, err error) {
	var all map[string]any
	if err := json.Unmarshal(t.Schema, &all); err != nil {
		return s, &model.Error{Kind: model.Invalid, Message: "the schema of the tool " + t.Name + ": " + err.Error()}
	}
	delete(all, "type") // always object
	s.ExtraFields = all
	return s, nil
}

func (c *client) blocks(m model.Message) (blocks []sdk.ContentBlockParamUnion) {
	for _, r := range m.Results {
		b := sdk.NewToolResultBlock(model.Plain(r.CallID), r.Text, r.IsError)
		for _, i := range r.Images {
			b.OfToolResult.Content = append(b.OfToolResult.Content, sdk.ToolResultBlockParamContentUnion{OfImage: shown(i).OfImage})
		}
		blocks = append(blocks, b)
	}
	for _, i := range m.Images {
		blocks = append(blocks, shown(i))
	}
	for _, t := range thoughts(m, c.cfg.Model) {
		if t.Redacted != "" {
			blocks = append(blocks, sdk.NewRedactedThinkingBlock(t.Redacted))
		} else {
			blocks = append(blocks, sdk.NewThinkingBlock(t.Signature, t.Thinking))
		}
	}
	if m.Text != "" {
		blocks = append(blocks, sdk.NewTextBlock(m.Text))
	}
	for _, call := range m.Calls {
		blocks = append(blocks, sdk.NewToolUseBlock(model.Plain(call.ID), call.Args, call.Name))
	}
	return blocks
}

func shown(i model.Image) sdk.ContentBlockParamUnion {
	return sdk.NewImageBlockBase64(i.MediaType, i.Base64())
}
