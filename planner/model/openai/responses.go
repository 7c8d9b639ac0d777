package openai

import (
	"context"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	sdk "github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"harness/planner/model"
)

type responses struct {
	client
	sdk sdk.ResponseService
}

// NewResponses is a model behind the Responses API. Nothing is stored there.
func NewResponses(c Config) model.Model {
	x := newClient(c)
	return &responses{x, sdk.NewResponseService(x.opts...)}
}

func (c *responses) Complete(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	p, err := c.params(req)
	if err != nil {
		return nil, err
	}
	ctx, alive, stop := model.Idle(ctx)
	defer stop()
	stream := c.sdk.NewStreaming(ctx, p, option.WithMiddleware(model.Heard(alive)))
	defer stream.Close()
	var done *sdk.Response
	var items []sdk.ResponseOutputItemUnion
	for stream.Next() {
		ev := stream.Current()
		switch ev.Type {
		case "response.output_text.delta", "response.refusal.delta":
			emit(model.Delta{Text: ev.Delta})
		case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
			emit(model.Delta{Reasoning: ev.Delta})
		case "response.output_item.added":
			if ev.Item.Type == "function_call" {
				emit(model.Delta{CallName: ev.Item.Name})
			}
		case "response.output_item.done":
			items = append(items, ev.Item)
		case "response.completed", "response.incomplete":
			done = &ev.Response
		case "response.failed":
			e := ev.Response.Error
			return nil, model.Failure(ctx, nil, model.FromStream(string(e.Code), e.Message), c.cfg.APIKey)
		case "error":
			return nil, model.Failure(ctx, nil, model.FromStream(ev.Code, ev.Message), c.cfg.APIKey)
		}
	}
	if err := stream.Err(); err != nil {
		return nil, model.Failure(ctx, err, given(err), c.cfg.APIKey)
	}
	if done == nil {
		return nil, model.Failure(ctx, nil, model.Unfinished(), "")
	}
	if len(done.Output) == 0 { // some servers do not say it again
		done.Output = items
	}
	return response(done, c.cfg.Model, req.Messages), nil
}

func (c *responses) params(req *model.Request) (sdk.ResponseNewParams, error) {
	p := sdk.ResponseNewParams{Model: shared.ResponsesModel(c.cfg.Model), Store: param.NewOpt(false),
		Include: []sdk.ResponseIncludable{sdk.ResponseIncludableReasoningEncryptedContent}}
	if req.System != "" {
		p.Instructions = param.NewOpt(req.System)
	}
	if req.MaxTokens > 0 {
		p.MaxOutputTokens = param.NewOpt(int64(req.MaxTokens))
	}
	for _, t := range req.Tools {
		schema, err := parameters(t)
		if err != nil {
			return p, err
		}
		p.Tools = append(p.Tools, sdk.ToolUnionParam{OfFunction: &sdk.FunctionToolParam{Name: t.Name, Description: param.NewOpt(t.Description),
			Parameters: schema, Strict: param.NewOpt(false)}})
	}
	var items sdk.ResponseInputParam
	for _, m := range model.Tidy(req.Messages) {
		kept := thoughts(m, c.cfg.Model)
		think := func(at int) {
			for _, k := range kept {
				if k.At == at {
					items = append(items, sdk.ResponseInputItemUnionParam{OfReasoning: &sdk.ResponseReasoningItemParam{ID: k.ID,
						Summary: []sdk.ResponseReasoningItemSummaryParam{}, EncryptedContent: param.NewOpt(k.Encrypted)}})
				}
			}
		}
		think(0)
		if len(m.Images) > 0 {
			var parts sdk.ResponseInputMessageContentListParam
			for _, i := range m.Images {
				parts = append(parts, sdk.ResponseInputContentUnionParam{OfInputImage: &sdk.ResponseInputImageParam{
					ImageURL: param.NewOpt(i.URL()), Detail: sdk.ResponseInputImageDetailAuto}})
			}
			if m.Text != "" {
				parts = append(parts, sdk.ResponseInputContentParamOfInputText(m.Text))
			}
			items = append(items, sdk.ResponseInputItemParamOfMessage(parts, sdk.EasyInputMessageRoleUser))
		} else if m.Text != "" {
			role := sdk.EasyInputMessageRoleUser
			if m.Role == model.Assistant {
				role = sdk.EasyInputMessageRoleAssistant
			}
			items = append(items, sdk.ResponseInputItemParamOfMessage(m.Text, role))
		}
		for i, call := range m.Calls {
			if i > 0 {
				think(i)
			}
			items = append(items, sdk.ResponseInputItemParamOfFunctionCall(string(call.Args), callID(call.ID), call.Name))
		}
		for _, r := range m.Results {
			item := sdk.ResponseInputItemParamOfFunctionCallOutput(r.Text)
			item.OfFunctionCallOutput.CallID = param.NewOpt(callID(r.CallID))
			if len(r.Images) > 0 {
				item.OfFunctionCallOutput.Output.OfString = param.Opt[string]{}
				item.OfFunctionCallOutput.Output.OfResponseFunctionCallOutputItemArray = seen(r)
			}
			items = append(items, item)
		}
	}
	p.Input.OfInputItemList = items
	return p, nil
}

// callID is at most as long as the provider takes; another one's may be longer.
func callID(id string) string { return id[:min(len(id), 64)] }

// seen is a result with its images.
func seen(r model.ToolResult) sdk.ResponseFunctionCallOutputItemListParam {
	parts := sdk.ResponseFunctionCallOutputItemListParam{{OfInputText: &sdk.ResponseInputTextContentParam{Text: r.Text}}}
	for _, i := range r.Images {
		parts = append(parts, sdk.ResponseFunctionCallOutputItemUnionParam{OfInputImage: &sdk.ResponseInputImageContentParam{
			ImageURL: param.NewOpt(i.URL()), Detail: sdk.ResponseInputImageContentDetailAuto}})
	}
	return parts
}
