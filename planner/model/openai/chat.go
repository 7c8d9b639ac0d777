package openai

import (
	"context"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"harness/planner/model"
)

type chat struct {
	client
	sdk sdk.ChatCompletionService
}

// NewChat is a model behind the Chat Completions API.
func NewChat(c Config) model.Model {
	x := newClient(c)
	return &chat{x, sdk.NewChatCompletionService(x.opts...)}
}

func (c *chat) Complete(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	p, err := c.params(req)
	if err != nil {
		return nil, err
	}
	ctx, alive, stop := model.Idle(ctx)
	defer stop()
	stream := c.sdk.NewStreaming(ctx, p, option.WithMiddleware(model.Heard(alive)))
	defer stream.Close()
	got := collected{emit: emit}
	for stream.Next() {
		got.add(stream.Current())
	}
	if err := stream.Err(); err != nil {
		return nil, model.Failure(ctx, err, given(err), c.cfg.APIKey)
	}
	if got.finish == "" {
		return nil, model.Failure(ctx, nil, model.Unfinished(), "")
	}
	return got.reply(c.cfg.Model, req.Messages), nil
}

func (c *chat) params(req *model.Request) (sdk.ChatCompletionNewParams, error) {
	p := sdk.ChatCompletionNewParams{Model: shared.ChatModel(c.cfg.Model),
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)}}
	if req.MaxTokens > 0 {
		p.MaxCompletionTokens = param.NewOpt(int64(req.MaxTokens))
	}
	if req.System != "" {
		p.Messages = append(p.Messages, sdk.SystemMessage(req.System))
	}
	for _, t := range req.Tools {
		schema, err := parameters(t)
		if err != nil {
			return p, err
		}
		p.Tools = append(p.Tools, sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: t.Name,
			Description: param.NewOpt(t.Description), Parameters: schema}))
	}
	for _, m := range showLater(model.Tidy(req.Messages)) {
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
			extra := extraOf(m, c.cfg.Model)
			for i, call := range m.Calls {
				f := &sdk.ChatCompletionMessageFunctionToolCallParam{ID: call.ID,
					Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: call.Name, Arguments: string(call.Args)}}
				if raw := extra[i]; raw != nil {
					f.SetExtraFields(map[string]any{"extra_content": raw})
				}
				a.ToolCalls = append(a.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: f})
			}
			p.Messages = append(p.Messages, sdk.ChatCompletionMessageParamUnion{OfAssistant: &a})
		default:
			p.Messages = append(p.Messages, user(m))
		}
	}
	return p, nil
}

// showLater puts the images of results, whose messages are words only here,
// into a message of the user behind them.
func showLater(messages []model.Message) (out []model.Message) {
	var images []model.Image
	for _, m := range messages {
		if len(images) > 0 && m.Role == model.User {
			m.Images = append(images, m.Images...)
			images = nil
		} else if len(images) > 0 {
			out = append(out, model.Message{Role: model.User, Text: shownHere, Images: images})
			images = nil
		}
		for _, r := range m.Results {
			images = append(images, r.Images...)
		}
		out = append(out, m)
	}
	if len(images) > 0 {
		out = append(out, model.Message{Role: model.User, Text: shownHere, Images: images})
	}
	return out
}

const shownHere = "[the images of the results above]"

func user(m model.Message) sdk.ChatCompletionMessageParamUnion {
	if len(m.Images) == 0 {
		return sdk.UserMessage(m.Text)
	}
	var parts []sdk.ChatCompletionContentPartUnionParam
	for _, i := range m.Images {
		parts = append(parts, sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: i.URL()}))
	}
	if m.Text != "" {
		parts = append(parts, sdk.TextContentPart(m.Text))
	}
	return sdk.UserMessage(parts)
}
