package model

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"
)

// Tidy makes messages that every provider takes: the first and the last are not
// the assistant's, none is empty or blank, roles alternate, names and ids have
// the form that they need, no id is there twice, arguments are an object, every
// call has a result and no result is without its call.
func Tidy(messages []Message) []Message {
	t := tidier{ids: map[string]bool{}}
	for _, m := range messages {
		t.add(m)
	}
	t.close()
	if n := len(t.out); n == 0 || t.out[n-1].Role == Assistant {
		t.words("(go on)")
	}
	return t.out
}

// tidier has the messages so far; open are the calls of the last one as they
// were before they got their new ids.
type tidier struct {
	out  []Message
	open []ToolCall
	ids  map[string]bool
}

func (t *tidier) add(m Message) {
	if strings.TrimSpace(m.Text) == "" {
		m.Text = ""
	}
	if m.Role == ToolRole {
		t.answer(m.Results)
		return
	}
	if m.Text == "" && len(m.Calls) == 0 && (m.Role == Assistant || len(m.Images) == 0) {
		return
	}
	t.close()
	if m.Role != Assistant {
		t.words(m.Text, m.Images...)
		return
	}
	m.Images = nil
	if len(t.out) == 0 {
		t.words("(the beginning is left out)")
	}
	m.Calls, t.open = t.named(m.Calls), m.Calls
	if last := &t.out[len(t.out)-1]; last.Role == Assistant { // it has no calls
		m.Text = strings.Trim(last.Text+"\n\n"+m.Text, "\n")
		*last = m
		return
	}
	t.out = append(t.out, m)
}

// words are a message of the user, or more of the last one where that is the user's too.
func (t *tidier) words(text string, images ...Image) {
	if n := len(t.out); n > 0 && t.out[n-1].Role == User {
		last := &t.out[n-1]
		last.Text = strings.Trim(last.Text+"\n\n"+text, "\n")
		last.Images = append(last.Images[:len(last.Images):len(last.Images)], images...)
		return
	}
	t.out = append(t.out, Message{Role: User, Text: text, Images: images})
}

// close gives calls that have no results yet some.
func (t *tidier) close() {
	if len(t.open) > 0 {
		t.answer(nil)
	}
}

// answer puts a result for each open call; others have no place.
func (t *tidier) answer(results []ToolResult) {
	if len(t.open) == 0 {
		return
	}
	calls := t.out[len(t.out)-1].Calls
	list := make([]ToolResult, len(calls))
	taken := make([]bool, len(results))
	for i, c := range calls {
		list[i] = ToolResult{Text: "no result", IsError: true}
		for j, r := range results {
			if !taken[j] && r.CallID == t.open[i].ID {
				list[i], taken[j] = r, true
				break
			}
		}
		list[i].CallID, list[i].Name = c.ID, c.Name
		if strings.TrimSpace(list[i].Text) == "" {
			list[i].Text = "(empty)"
		}
		if list[i].IsError {
			list[i].Images = nil // errors are words only
		}
	}
	t.out = append(t.out, Message{Role: ToolRole, Results: list})
	t.open = nil
}

// named is calls with arguments, names and ids that a provider takes back; a
// model or another provider may have made up others.
func (t *tidier) named(calls []ToolCall) []ToolCall {
	out := make([]ToolCall, len(calls))
	for i, c := range calls {
		c.Name, c.ID = Plain(c.Name), Plain(c.ID)
		for n, id := 2, c.ID; t.ids[c.ID]; n++ {
			c.ID = id[:min(len(id), 56)] + "_" + strconv.Itoa(n)
		}
		t.ids[c.ID] = true
		if !object(c.Args) {
			c.Args = json.RawMessage("{}")
		}
		out[i] = c
	}
	return out
}

func object(args json.RawMessage) bool {
	trimmed := bytes.TrimSpace(args)
	return len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed)
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
