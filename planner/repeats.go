package planner

import (
	"fmt"
	"strings"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/planner/model"
)

// repeats counts the same call with the same result.
type repeats struct {
	last string
	n    int
	told bool
}

const (
	maxRepeats = 3
	maxDenials = 5 // since the last change
	maxRefused = 3 // of one and the same call
)

// denied counts denials. Only a change is a way around one: a read or a harmless
// command between two tries is not.
func (r *run) denied(c *call) error {
	if c.result.GetStatus() != v1.Status_denied {
		if len(c.result.GetChanges().GetChanges()) > 0 {
			r.denials = 0
		}
		return nil
	}
	r.denials++
	key := c.Name + string(c.Args)
	r.refused[key]++
	if r.denials >= maxDenials || r.refused[key] >= maxRefused {
		return &stop{"denied", 58, fmt.Sprintf("it kept trying what is denied; the last one: %s", contract.FromProto(c.result.Error))}
	}
	return nil
}

// assess looks for a run that goes in circles or against a wall.
func (r *run) assess(list []*call) error {
	key := ""
	for _, c := range list {
		key += c.Name + string(c.Args) + c.forModel().Text + "\x00"
		if err := r.denied(c); err != nil {
			return err
		}
	}
	if key != r.repeats.last {
		r.repeats = repeats{last: key, n: 1}
		return nil
	}
	if r.repeats.n++; r.repeats.n < maxRepeats {
		return nil
	}
	r.repeats.n = 0
	text, err := r.Surface.Question(r.ctx, fmt.Sprintf("The same call was made %d times with the same result. What should it do?", maxRepeats))
	switch {
	case err == nil && strings.TrimSpace(text) != "":
		return r.say(model.Message{Role: model.User, Text: text})
	case r.repeats.told:
		return &stop{"repeating", 1, "the model keeps making the same call"}
	}
	r.repeats.told = true
	return r.tell(fmt.Sprintf("You made the same call %d times with the same result. Do something else, or say what is missing.", maxRepeats))
}
