package model

import (
	"encoding/json"
	"strings"
	"testing"
)

// form is messages in a line: u(text) a(text; calls) t(results).
func form(messages []Message) string {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(string(m.Role[0]) + "(" + m.Text)
		for _, c := range m.Calls {
			b.WriteString(" " + c.Name + "#" + c.ID + string(c.Args))
		}
		for _, r := range m.Results {
			b.WriteString(" #" + r.CallID + "=" + r.Text)
		}
		b.WriteString(")")
	}
	return b.String()
}

func TestTidy(t *testing.T) {
	user := func(s string) Message { return Message{Role: User, Text: s} }
	call := func(name, id, args string) ToolCall { return ToolCall{ID: id, Name: name, Args: json.RawMessage(args)} }
	says := func(s string, calls ...ToolCall) Message { return Message{Role: Assistant, Text: s, Calls: calls} }
	results := func(r ...ToolResult) Message { return Message{Role: ToolRole, Results: r} }
	for _, c := range []struct {
		name string
		in   []Message
		want string
	}{
		{"as it should be", []Message{user("hi"), says("", call("ls", "1", "{}")), results(ToolResult{CallID: "1", Text: "x"}), says("done")},
			"u(hi)a( ls#1{})t( #1=x)a(done)u((go on))"},
		{"two of the user", []Message{user("a"), user("b")}, "u(a\n\nb)"},
		{"an empty reply between", []Message{user("a"), says(" \n"), user("b")}, "u(a\n\nb)"},
		{"blank text beside a call", []Message{user("a"), says("\n\n", call("ls", "1", "{}")), results(ToolResult{CallID: "1", Text: " "})}, "u(a)a( ls#1{})t( #1=(empty))"},
		{"a call without result", []Message{user("a"), says("", call("ls", "1", "{}")), user("b")}, "u(a)a( ls#1{})t( #1=no result)u(b)"},
		{"a call at the end", []Message{user("a"), says("", call("ls", "1", "{}"))}, "u(a)a( ls#1{})t( #1=no result)"},
		{"a result without call", []Message{user("a"), results(ToolResult{CallID: "9", Text: "x"}), says("b")}, "u(a)a(b)u((go on))"},
		{"results in another order", []Message{user("a"), says("", call("x", "1", "{}"), call("y", "2", "{}")), results(ToolResult{CallID: "2", Text: "two"}, ToolResult{CallID: "1", Text: "one"})},
			"u(a)a( x#1{} y#2{})t( #1=one #2=two)"},
		{"a made-up name, cut arguments", []Message{user("a"), says("", call("shell.rm -rf", "1", `{"a`)), results(ToolResult{CallID: "1", Text: "x"})}, "u(a)a( shell_rm_-rf#1{})t( #1=x)"},
		{"the model first", []Message{says("b"), user("c")}, "u((the beginning is left out))a(b)u(c)"},
		{"nothing", []Message{says("")}, "u((go on))"},
		{"two of the model", []Message{user("a"), says("b"), says("c", call("ls", "1", "{}"))}, "u(a)a(b\n\nc ls#1{})t( #1=no result)"},
		{"the same id twice", []Message{user("a"), says("", call("x", "1", "{}"), call("y", "1", "{}")), results(ToolResult{CallID: "1", Text: "one"}, ToolResult{CallID: "1", Text: "two"})},
			"u(a)a( x#1{} y#1_2{})t( #1=one #1_2=two)"},
	} {
		before := form(c.in)
		if got := form(Tidy(c.in)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if form(c.in) != before {
			t.Errorf("%s: changes what it was given", c.name)
		}
	}
}

func TestUnique(t *testing.T) {
	before := []Message{{Role: Assistant, Calls: []ToolCall{{ID: "call_0"}}}}
	calls := Unique([]ToolCall{{ID: "call_0"}, {ID: "a"}, {ID: "a"}, {}, {}}, before)
	seen := map[string]bool{"call_0": true}
	for i, c := range calls {
		if c.ID == "" || seen[c.ID] || string(c.Args) != "{}" {
			t.Errorf("%d: %+v", i, c)
		}
		seen[c.ID] = true
	}
	if calls[1].ID != "a" {
		t.Errorf("a good id is changed: %q", calls[1].ID)
	}
}
