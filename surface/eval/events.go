package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ReadEvents takes what a run says of itself from its events, as harness run
// --json prints them. A run that was cut off has the stop reason "crashed".
func ReadEvents(r io.Reader) (Outcome, error) {
	o := Outcome{StopReason: "crashed"}
	failed := ""
	for d := json.NewDecoder(r); ; {
		var e struct {
			Type, Verdict, Diff, Message, Error string
			StopReason                          string  `json:"stop_reason"`
			CostUSD                             float64 `json:"cost_usd"`
			Usage                               struct {
				Input  int     `json:"input_tokens"`
				Output int     `json:"output_tokens"`
				Cost   float64 `json:"cost_usd"`
			}
			Item struct {
				Type   string
				Result struct{ Status string }
			}
		}
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return o, nil
		} else if err != nil {
			return o, fmt.Errorf("the run's events: %w", err)
		}
		switch e.Type {
		case "turn.started":
			o.Turns++
		case "turn.completed":
			o.Tokens += e.Usage.Input + e.Usage.Output
			o.CostUSD += e.Usage.Cost
		case "item.completed":
			if e.Item.Type != "step" {
				continue
			}
			o.Steps++
			if e.Item.Result.Status == "denied" {
				o.Denied++
			}
		case "turn.failed":
			failed = firstLine(e.Error)
		case "session.completed":
			o.Verdict, o.StopReason, o.Diff, o.Why = e.Verdict, e.StopReason, e.Diff, firstLine(e.Message)
			if o.StopReason != "done" && failed != "" {
				o.Why = failed
			}
			o.CostUSD = e.CostUSD // with summaries
		}
	}
}
