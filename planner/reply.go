package planner

import (
	"strings"

	"harness/planner/model"
)

// maxOdd is how many replies in a row may be empty or cut by the token limit.
const maxOdd = 3

// What the model is told of a reply that it should not have given.
const (
	toldCut   = "Your reply was cut off by the output limit. Go on exactly where it stopped; keep what is left short, and write large files in several smaller edits."
	toldEmpty = "Your reply was empty. Go on with the task; when it is done, say in a few sentences what you changed."
	toldCall  = "not run: your reply was cut off by the output limit inside this call, so its arguments are not whole; send the call again, in smaller parts"
)

// accept puts a reply into the log, counts it, and heeds why it ended. It gives
// nil where the model was told to try again.
func (r *run) accept(reply *model.Reply) (*model.Reply, error) {
	r.spent.Turns++
	r.spent.Add(reply.Usage, r.Model.Info())
	r.view.Measure(reply.Usage.InputTokens)
	if noted, ok := r.Model.(interface{ Notes() []string }); ok { // a recording's
		for _, n := range noted.Notes() {
			if err := r.emit("warning", map[string]any{"message": n}); err != nil {
				return nil, err
			}
		}
	}
	m := &reply.Message
	refused := reply.Stop == model.Refusal || reply.Stop == model.Filtered
	if refused {
		m.Calls = nil // of a reply that the provider took back nothing is run
	}
	for i := range m.Calls {
		m.Calls[i].Args = whole(m.Calls[i].Args)
	}
	blank := strings.TrimSpace(m.Text) == ""
	if !blank || len(m.Calls) > 0 {
		if err := r.say(*m); err != nil {
			return nil, err
		}
	}
	if !blank {
		if err := r.emit("item.completed", map[string]any{"item": map[string]any{"type": "agent_message", "text": m.Text}}); err != nil {
			return nil, err
		}
	}
	if err := r.emit("turn.completed", map[string]any{"usage": map[string]any{"input_tokens": reply.Usage.InputTokens,
		"cached_input_tokens": reply.Usage.CachedInputTokens, "output_tokens": reply.Usage.OutputTokens,
		"cache_write_tokens": reply.Usage.CacheWriteTokens, "reasoning_tokens": reply.Usage.ReasoningTokens, "cost_usd": r.Model.Info().Cost(reply.Usage)},
		"stop": reply.Stop, "stop_reason": reply.Reason}); err != nil {
		return nil, err
	}
	if refused {
		return nil, refusal(reply)
	}
	return r.heed(reply, blank)
}

// heed asks again after a reply without use, a bounded number of times.
func (r *run) heed(reply *model.Reply, blank bool) (*model.Reply, error) {
	cut := reply.Stop == model.MaxTokens
	empty := blank && len(reply.Message.Calls) == 0
	if !cut && !empty {
		r.odd = 0
		return reply, nil
	}
	r.odd++
	switch {
	case r.odd > maxOdd && cut:
		return nil, &stop{"max_tokens", 1, "the model's replies were cut off by the output limit several times in a row"}
	case r.odd > maxOdd:
		return nil, &stop{"empty_reply", 1, "the model's replies were empty several times in a row"}
	case len(reply.Message.Calls) > 0: // act tells of the call that was cut
		return reply, nil
	case cut:
		return nil, r.tell(toldCut)
	}
	return nil, r.tell(toldEmpty)
}

// refusal ends the run with the model's own words, if it gave any.
func refusal(reply *model.Reply) *stop {
	text := strings.TrimSpace(reply.Message.Text)
	if reply.Stop == model.Filtered {
		return &stop{"content_filter", 1, strings.TrimSpace("the provider's content filter ended the reply. " + text)}
	}
	return &stop{"refusal", 1, strings.TrimSpace("the model refused. " + text)}
}
