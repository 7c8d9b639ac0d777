package session

import (
	"encoding/json"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"

	v1 "harness/contract/harness/v1"
)

// Rewound is the event that takes the conversation back: what lies between
// ToSeq and it stays in the log and is no part of the conversation any more.
const Rewound = "session.rewound"

// RewoundData is that event's data. Note is what the model is told of it.
type RewoundData struct {
	ToSeq int64  `json:"to_seq"`
	Step  string `json:"step,omitempty"`
	Note  string `json:"note,omitempty"`
}

// Line is the events that the conversation is made of: those that no later
// rewind took back.
func Line(log []Event) []Event {
	line := make([]Event, 0, len(log))
	for _, e := range log {
		var r RewoundData
		if e.Type == Rewound && json.Unmarshal(e.Data, &r) == nil {
			for len(line) > 0 && line[len(line)-1].Seq > r.ToSeq {
				line = line[:len(line)-1]
			}
		}
		line = append(line, e)
	}
	return line
}

// Step is one step as the log has it.
type Step struct {
	*v1.Step
	Result *v1.StepResult // nil: it has not ended
	Began  int64          // the number of the event that it began with
	Ended  int64          // and of the one with its result
}

// Steps is the steps of a log, in the order in which they began.
func Steps(log []Event) []*Step {
	var steps []*Step
	byID := map[string]*Step{}
	for _, e := range log {
		if e.Type != "item.started" && e.Type != "item.completed" {
			continue
		}
		var d struct {
			Item struct{ Step, Result json.RawMessage }
		}
		if json.Unmarshal(e.Data, &d) != nil || d.Item.Step == nil {
			continue
		}
		step := new(v1.Step)
		if protojson.Unmarshal(d.Item.Step, step) != nil {
			continue
		}
		s := byID[step.StepId]
		if s == nil {
			s = &Step{Step: step, Began: e.Seq}
			byID[step.StepId] = s
			steps = append(steps, s)
		}
		result := new(v1.StepResult)
		if d.Item.Result != nil && protojson.Unmarshal(d.Item.Result, result) == nil {
			s.Result, s.Ended = result, e.Seq
		}
	}
	return slices.Clip(steps)
}
