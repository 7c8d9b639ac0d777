package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"harness/planner"
)

// schema is what the last answer of a run must fit.
type schema struct {
	file, text string
	resolved   *jsonschema.Resolved
}

func loadSchema(file string) (*schema, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, &exit{42, err}
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, &exit{42, fmt.Errorf("%s is no JSON Schema: %w", file, err)}
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, &exit{42, fmt.Errorf("%s is no JSON Schema: %w", file, err)}
	}
	return &schema{file, string(data), r}, nil
}

// ask is a task with what its last answer must be.
func (s *schema) ask(task string) string {
	if s == nil {
		return task
	}
	return task + "\n\nYour last message must be one JSON value and nothing else, which fits this JSON Schema:\n" + s.text
}

// answer is the JSON value of a message, without a fence around it; an error says what does not fit.
func (s *schema) answer(message string) (string, error) {
	text := strings.TrimSpace(message)
	if inner, ok := strings.CutPrefix(text, "```"); ok {
		inner = strings.TrimPrefix(inner, "json")
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(inner), "```"))
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return "", fmt.Errorf("it is no JSON value: %w", err)
	}
	return text, s.resolved.Validate(v)
}

const schemaTries = 2

// fit has the last answer said again, a bounded number of times, until it fits.
func (t *seat) fit(ctx context.Context, cancel func(), s *schema, report planner.Report) (planner.Report, error) {
	for try := 0; ; try++ {
		text, err := s.answer(report.Message)
		if err == nil {
			report.Message = text
			return report, nil
		}
		if try == schemaTries {
			return report, fmt.Errorf("the last answer does not fit %s: %w", s.file, err)
		}
		if err := t.take(ctx); err != nil {
			return report, err
		}
		again, rerr := t.run(ctx, cancel, fmt.Sprintf("Your last message does not fit the schema: %v. Say it again: only the JSON value.", err), nil)
		if rerr != nil {
			return report, rerr
		}
		report.Message, report.Turns, report.CostUSD = again.Message, report.Turns+again.Turns, report.CostUSD+again.CostUSD
	}
}
