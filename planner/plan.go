package planner

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"harness/planner/model"
)

// updatePlan is the one tool that is no step: it changes nothing but what the
// person sees of the intent.
const updatePlan = "update_plan"

var planTool = model.Tool{Name: updatePlan,
	Description: "Show the user your plan: the whole list each time, one item in_progress at most. For work of three steps or more.",
	Schema: json.RawMessage(`{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{` +
		`"text":{"type":"string"},"status":{"type":"string","enum":["pending","in_progress","done"]}},"required":["text","status"],"additionalProperties":false}}},` +
		`"required":["items"],"additionalProperties":false}`)}

type planItem struct {
	Text   string `json:"text"`
	Status string `json:"status"`
}

const maxPlan = 50

var planMarks = map[string]string{"pending": "[ ]", "in_progress": "[>]", "done": "[x]"}

// planned takes a new plan and shows it. What is wrong with it is told to the model.
func (r *run) planned(args json.RawMessage) (string, error) {
	var p struct{ Items []planItem }
	if err := json.Unmarshal(args, &p); err != nil {
		return "", fmt.Errorf("items: %w", err)
	}
	if len(p.Items) > maxPlan {
		return "", fmt.Errorf("items: at most %d", maxPlan)
	}
	for _, i := range p.Items {
		if planMarks[i.Status] == "" || strings.TrimSpace(i.Text) == "" {
			return "", errors.New("items: each has a text and a status, which is pending, in_progress or done")
		}
	}
	r.facts.plan = p.Items
	return "ok", nil
}

// planText is the plan as lines.
func planText(items []planItem) string {
	var b strings.Builder
	for _, i := range items {
		fmt.Fprintf(&b, "%s %s\n", planMarks[i.Status], i.Text)
	}
	return b.String()
}
