package openai

import (
	"context"
	"encoding/json"

	"github.com/openai/openai-go/v3/packages/param"
	sdk "github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"harness/planner/model"
)

type responses struct{ client }

// NewResponses is a model behind the Responses API.
func NewResponses(c Config) model.Model { return &responses{newClient(c)} }

func (c *responses) Complete(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	ctx, alive, stop := model.Idle(ctx)
	defer stop()
	stream := c.sdk.Responses.NewStreaming(ctx, c.params(req))
	defer stream.Close()
	var done *sdk.Response
	for stream.Next() {
		alive()
		ev := stream.Current()
		switch ev.Type {
		case "response.output_text.delta":
			emit(model.Delta{Text: ev.Delta})
		case "response.reasoning_summary_text.delta":
			emit(model.Delta{Reasoning: ev.Delta})
		case "response.output_item.added":
			if ev.Item.Type == "function_call" {
				emit(model.Delta{CallName: ev.Item.Name})
			}
		case "response.completed", "response.incomplete":
			done = &ev.Response
		case "response.failed":
			e := ev.Response.Error
			return nil, model.FromHTTP(500, nil, string(e.Code)+": "+e.Message)
		case "error":
			return nil, model.FromHTTP(500, nil, ev.Code+": "+ev.Message)
		}
	}
	if err := stream.Err(); err != nil {
		return nil, convert(ctx, err)
	}
	if done == nil {
		return nil, &model.Error{Kind: model.Network, Message: "the stream ended before the reply did"}
	}
	return response(done), nil
}

// reasoning is an item that must go back with the calls that it led to.
type reasoning struct{ ID, Encrypted string }

func (c *responses) params(req *model.Request) sdk.ResponseNewParams {
	p := sdk.ResponseNewParams{Model: shared.ResponsesModel(c.cfg.Model), Store: param.NewOpt(false),
		Include: []sdk.ResponseIncludable{sdk.ResponseIncludableReasoningEncryptedContent}}
	if req.System != "" {
		p.Instructions = param.NewOpt(req.System)
	}
	if req.MaxTokens > 0 {
		p.MaxOutputTokens = param.NewOpt(int64(req.MaxTokens))
	}
	for _, t := range req.Tools {
		p.Tools = append(p.Tools, sdk.ToolUnionParam{OfFunction: &sdk.FunctionToolParam{Name: t.Name, Description: param.NewOpt(t.Description),
			Parameters: parameters(t.Schema), Strict: param.NewOpt(false)}})
	}
	var items sdk.ResponseInputParam
	for _, m := range model.Tidy(req.Messages) {
		var kept []reasoning
		if raw := m.Opaque["openai"]; raw != nil && json.Unmarshal(raw, &kept) == nil {
			for _, k := range kept {
				items = append(items, sdk.ResponseInputItemUnionParam{OfReasoning: &sdk.ResponseReasoningItemParam{ID: k.ID,
					Summary: []sdk.ResponseReasoningItemSummaryParam{}, EncryptedContent: param.NewOpt(k.Encrypted)}})
			}
		}
		if m.Text != "" {
			role := sdk.EasyInputMessageRoleUser
			if m.Role == model.Assistant {
				role = sdk.EasyInputMessageRoleAssistant
			}
			items = append(items, sdk.ResponseInputItemParamOfMessage(m.Text, role))
		}
		for _, call := range m.Calls {
			items = append(items, sdk.ResponseInputItemParamOfFunctionCall(arguments(call.Args), call.ID, call.Name))
		}
		for _, r := range m.Results {
			item := sdk.ResponseInputItemParamOfFunctionCallOutput(r.Text)
			item.OfFunctionCallOutput.CallID = param.NewOpt(r.CallID)
			items = append(items, item)
		}
	}
	p.Input.OfInputItemList = items
	return p
}

func response(done *sdk.Response) *model.Reply {
	m := model.Message{Role: model.Assistant}
	var kept []reasoning
	stop := model.EndTurn
	for _, item := range done.Output {
		switch item.Type {
		case "message":
			for _, part := range item.Content {
				switch part.Type {
				case "output_text":
					m.Text += part.Text
				case "refusal":
					m.Text += part.Refusal
					stop = model.Refusal
				}
			}
		case "function_call":
			f := item.AsFunctionCall()
			m.Calls = append(m.Calls, model.ToolCall{ID: f.CallID, Name: f.Name, Args: json.RawMessage(f.Arguments)})
		case "reasoning":
			if item.EncryptedContent != "" {
				kept = append(kept, reasoning{item.ID, item.EncryptedContent})
			}
		}
	}
	m.Calls = unique(m.Calls)
	if len(kept) > 0 {
		if raw, err := json.Marshal(kept); err == nil {
			m.Opaque = map[string]json.RawMessage{"openai": raw}
		}
	}
	switch {
	case len(m.Calls) > 0:
		stop = model.ToolUse
	case done.Status == "incomplete" && done.IncompleteDetails.Reason == "max_output_tokens":
		stop = model.MaxTokens
	}
	u := done.Usage
	return &model.Reply{Message: m, Stop: stop, Usage: model.Usage{InputTokens: int(u.InputTokens),
		CachedInputTokens: int(u.InputTokensDetails.CachedTokens), OutputTokens: int(u.OutputTokens)}}
}
