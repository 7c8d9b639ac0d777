// Package view is what the model sees of the log. The log is whole and never
// rewritten; the view folds old results to a line and leaves old turns out
// behind a note when it grows over its budget. Each folding is decided once,
// logged, and applied, so that the same log gives the same view. Between two
// foldings the view only grows at its end, so that the provider's cache holds.
// A call is never parted from its result, and the task stays as it was given.
package view

import (
	"fmt"
	"strings"

	"harness/planner/model"
)

const (
	firstRatio = 4.0  // bytes of text a token, until the provider's usage says better
	share      = 0.6  // of the context that the conversation may fill: the rest is for tools, notes and the reply
	after      = 0.55 // of that, what is left after a folding
)

// View holds the messages of one conversation.
type View struct {
	tokens   int // of the context
	ratio    float64
	overhead int             // bytes of each request that are no messages
	out      []model.Message // task, note if there is one, the rest
	head     int             // how many of out are task and note
	size     int             // bytes of out
	pictures int             // images in out
	folded   int             // results of the messages before this number are folded; the task is number 0
	dropped  int             // messages after the task that are left out
	said     []string        // what a person said in those
	reads    map[string]read
}

// New makes a view for a context of so many tokens, 0 where it is not known.
// overhead is the size of what goes with every request: system prompt and tools.
func New(tokens, overhead int) *View {
	v := &View{ratio: firstRatio, overhead: overhead, reads: map[string]read{}}
	v.Fit(tokens)
	return v
}

// Fit is for another model: a context of so many tokens.
func (v *View) Fit(tokens int) {
	if tokens <= 0 {
		tokens = 128_000
	}
	v.tokens = tokens
}

// Measure learns from the usage of a request how many bytes a token has.
func (v *View) Measure(inputTokens int) {
	if inputTokens > 500 {
		v.ratio = min(max(float64(v.size+v.overhead)/float64(inputTokens), 1), 6)
	}
}

// Tokens is about how many the next request has.
func (v *View) Tokens() int { return int(float64(v.size+v.overhead) / v.ratio) }

// budget is how many bytes the messages may have; some even where the rest is too large.
func (v *View) budget() int {
	return max(int(float64(v.tokens)*share*v.ratio)-v.overhead, int(float64(v.tokens)*v.ratio/8))
}

// Add puts a message at the end. What was read before and is the same is a note.
func (v *View) Add(m model.Message) {
	if len(m.Results) > 0 {
		m.Results = v.results(m.Results)
	}
	v.out = append(v.out, m)
	v.size += sizeOf(m)
	v.pictures += m.Pictures()
	v.head = max(v.head, 1)
}

// Messages is the conversation as the model gets it; it must not be changed.
func (v *View) Messages() []model.Message { return v.out[:len(v.out):len(v.out)] }

// number of the message at a place of out, and back.
func (v *View) number(at int) int { return at - v.head + 1 + v.dropped }
func (v *View) place(number int) int {
	return number - 1 - v.dropped + v.head
}

func sizeOf(m model.Message) int {
	n := len(m.Text)
	for _, c := range m.Calls {
		n += len(c.Name) + len(c.Args)
	}
	for _, i := range m.Images {
		n += pictureSize(i)
	}
	for _, r := range m.Results {
		n += len(r.Text)
		for _, i := range r.Images {
			n += pictureSize(i)
		}
	}
	for _, o := range m.Opaque {
		n += len(o)
	}
	return n + 16
}

// pictureSize is what an image fills, as bytes of text do.
func pictureSize(i model.Image) int { return int(float64(i.Tokens()) * firstRatio) }

// note is what stands in the place of the messages that are left out.
func note(f Fold, said []string) model.Message {
	var b strings.Builder
	fmt.Fprintf(&b, "[Note of the harness: %d earlier messages of this conversation are left out here. The files are as they were left; read them again where you need them.]", f.Dropped)
	for _, part := range []struct{ title, text string }{
		{"What the user said in them", strings.Join(said, "\n")}, {"How things stand", f.State}, {"Summary of them", f.Summary},
	} {
		if part.text != "" {
			fmt.Fprintf(&b, "\n\n%s:\n%s", part.title, part.text)
		}
	}
	return model.Message{Role: model.User, Text: b.String(), Harness: true}
}
