// Package view is what the model sees of the log. The log is whole and never
// rewritten; the view folds old results to a line and drops old turns behind a
// note when it grows over its budget. It folds in batches, so that its beginning
// stays the same from turn to turn and the provider's cache holds, and it never
// parts a call from its result.
package view

import (
	"fmt"
	"strings"

	"harness/planner/model"
)

// Sizes, in bytes of text; a token is about four.
const (
	bytesPerToken = 4
	keepLast      = 8 // messages that are never folded
)

// View holds the messages of one conversation.
type View struct {
	budget   int // bytes
	messages []model.Message
	size     int
	folded   int // messages before this one have folded results
	dropped  int // messages left out so far
}

// New makes a view for a context of so many tokens.
func New(tokens int) *View {
	v := &View{}
	v.Fit(tokens)
	return v
}

// Fit folds to a context of so many tokens, 128,000 where it is not known.
func (v *View) Fit(tokens int) {
	if tokens <= 0 {
		tokens = 128_000
	}
	v.budget = tokens * bytesPerToken * 6 / 10
	if v.size > v.budget {
		v.Fold(v.budget * 6 / 10)
	}
}

// Add puts a message at the end.
func (v *View) Add(m model.Message) {
	v.messages = append(v.messages, m)
	v.size += sizeOf(m)
	if v.size > v.budget {
		v.Fold(v.budget * 6 / 10)
	}
}

// Shrink halves the budget: the provider says that the conversation is too long.
func (v *View) Shrink() bool {
	if len(v.messages) <= keepLast/2 || v.budget < 8000 {
		return false
	}
	v.budget /= 2
	v.Fold(v.budget * 6 / 10)
	return true
}

func sizeOf(m model.Message) int {
	n := len(m.Text)
	for _, c := range m.Calls {
		n += len(c.Name) + len(c.Args)
	}
	for _, r := range m.Results {
		n += len(r.Text)
	}
	for _, o := range m.Opaque {
		n += len(o)
	}
	return n + 16
}

// Fold makes the view at most target bytes where it can: old results become a
// line, then old turns a note. The first message, the task, stays.
func (v *View) Fold(target int) {
	for ; v.folded < len(v.messages)-keepLast && v.size > target; v.folded++ {
		m := &v.messages[v.folded]
		if len(m.Results) == 0 {
			continue
		}
		was := sizeOf(*m)
		results := make([]model.ToolResult, len(m.Results))
		for i, r := range m.Results {
			results[i] = r
			if len(r.Text) > 200 {
				first, _, _ := strings.Cut(r.Text, "\n")
				results[i].Text = fmt.Sprintf("%.160s\n[folded: %d bytes; run the tool again to see it]", first, len(r.Text))
			}
		}
		m.Results = results
		v.size += sizeOf(*m) - was
	}
	for v.size > target && len(v.messages) > keepLast+2 {
		// A turn is a reply and the results of its calls.
		n := 1
		if len(v.messages[1].Calls) > 0 && len(v.messages) > 2 && v.messages[2].Role == model.ToolRole {
			n = 2
		}
		for _, m := range v.messages[1 : 1+n] {
			v.size -= sizeOf(m)
		}
		v.messages = append(v.messages[:1], v.messages[1+n:]...)
		v.dropped += n
		v.folded = max(0, v.folded-n)
	}
}

// Messages is the conversation as the model gets it; always-true text, such as
// rules and the state of the check, belongs into the system prompt.
func (v *View) Messages() []model.Message {
	if v.dropped == 0 || len(v.messages) == 0 {
		return v.messages
	}
	first := v.messages[0]
	first.Text += fmt.Sprintf("\n\n[%d earlier messages of this conversation are left out here. The files are as they were left; read them again where you need them.]", v.dropped)
	return append([]model.Message{first}, v.messages[1:]...)
}
