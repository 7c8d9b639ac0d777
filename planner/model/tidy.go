package model

import (
	"crypto/rand"
	"encoding/json"
	"strings"
)

// Tidy makes messages that every provider takes: the first is the user's, none
// is empty or blank, no two of the user in a row, names have the form that
// names of tools have, every call has a result and no result is without its call.
func Tidy(messages []Message) []Message {
	var out []Message
	for i, m := range messages {
		if strings.TrimSpace(m.Text) == "" {
			m.Text = ""
		}
		if m.Role == ToolRole {
			if len(out) == 0 || len(out[len(out)-1].Calls) == 0 {
				continue
			}
			m.Results = matching(out[len(out)-1].Calls, m.Results)
		}
		if m.Text == "" && len(m.Calls) == 0 && len(m.Results) == 0 {
			continue
		}
		if len(out) == 0 && m.Role != User {
			out = append(out, Message{Role: User, Text: "(the beginning is left out)"})
		}
		if n := len(out); n > 0 && m.Role == User && out[n-1].Role == User {
			out[n-1].Text += "\n\n" + m.Text
			continue
		}
		m.Calls = named(m.Calls)
		out = append(out, m)
		if len(m.Calls) > 0 && (i+1 == len(messages) || messages[i+1].Role != ToolRole) {
			out = append(out, Message{Role: ToolRole, Results: matching(m.Calls, nil)})
		}
	}
	return out
}

func matching(calls []ToolCall, results []ToolResult) []ToolResult {
	list := make([]ToolResult, len(calls))
	for i, c := range calls {
		list[i] = ToolResult{CallID: c.ID, Name: c.Name, Text: "no result", IsError: true}
		for _, r := range results {
			if r.CallID == c.ID {
				list[i] = r
			}
		}
		if strings.TrimSpace(list[i].Text) == "" {
			list[i].Text = "(empty)"
		}
	}
	return list
}

// named is calls with arguments that are JSON and names that a provider takes
// back; a model may have made up others.
func named(calls []ToolCall) []ToolCall {
	out := make([]ToolCall, len(calls))
	for i, c := range calls {
		c.Name = Plain(c.Name)
		if !json.Valid(c.Args) {
			c.Args = json.RawMessage("{}")
		}
		out[i] = c
	}
	return out
}

// Plain is a name or id of at most 64 letters, digits, _ and -.
func Plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, s)
	if s == "" {
		return "unnamed"
	}
	return s[:min(len(s), 64)]
}

// Unique gives every call of a reply an id that no call of the conversation
// has had, and an empty argument list its form.
func Unique(calls []ToolCall, before []Message) []ToolCall {
	seen := map[string]bool{}
	for _, m := range before {
		for _, c := range m.Calls {
			seen[c.ID] = true
		}
	}
	for i := range calls {
		c := &calls[i]
		if c.ID == "" || seen[c.ID] {
			c.ID = "call_" + rand.Text()
		}
		seen[c.ID] = true
		if len(c.Args) == 0 {
			c.Args = json.RawMessage("{}")
		}
	}
	return calls
}
