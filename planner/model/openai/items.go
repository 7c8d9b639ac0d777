package openai

import (
	"encoding/json"
	"strings"

	sdk "github.com/openai/openai-go/v3/responses"

	"harness/planner/model"
)

// opaque is the reasoning items of a message, which must go back, to the model
// that had them, before the calls that they led to.
type opaque struct {
	Model string
	Items []reasoning
}

type reasoning struct {
	ID, Encrypted string
	At            int // how many calls came before it
}

func thoughts(m model.Message, name string) []reasoning {
	var o opaque
	if raw := m.Opaque["openai"]; raw == nil || json.Unmarshal(raw, &o) != nil || o.Model != name {
		return nil
	}
	return o.Items
}

func response(done *sdk.Response, name string, before []model.Message) *model.Reply {
	m := model.Message{Role: model.Assistant}
	var kept []reasoning
	refused := false
	for _, item := range done.Output {
		switch item.Type {
		case "message":
			for _, part := range item.Content {
				m.Text += part.Text + part.Refusal
				refused = refused || part.Type == "refusal"
			}
		case "function_call":
			f := item.AsFunctionCall()
			m.Calls = append(m.Calls, model.ToolCall{ID: f.CallID, Name: f.Name, Args: json.RawMessage(f.Arguments)})
		case "reasoning":
			if item.EncryptedContent != "" {
				kept = append(kept, reasoning{item.ID, item.EncryptedContent, len(m.Calls)})
			}
		}
	}
	m.Calls = model.Unique(m.Calls, before)
	if raw, err := json.Marshal(opaque{name, kept}); err == nil && len(kept) > 0 {
		m.Opaque = map[string]json.RawMessage{"openai": raw}
	}
	u := done.Usage
	r := &model.Reply{Message: m, Stop: model.EndTurn, Reason: strings.TrimSpace(string(done.Status) + " " + done.IncompleteDetails.Reason), Usage: model.Usage{InputTokens: int(u.InputTokens),
		CachedInputTokens: int(u.InputTokensDetails.CachedTokens), OutputTokens: int(u.OutputTokens), ReasoningTokens: int(u.OutputTokensDetails.ReasoningTokens)}}
	switch why := done.IncompleteDetails.Reason; {
	case why == "content_filter":
		r.Stop = model.Filtered
	case refused:
		r.Stop = model.Refusal
	case done.Status == "incomplete":
		r.Stop = model.MaxTokens
	case len(m.Calls) > 0:
		r.Stop = model.ToolUse
	}
	return r
}
