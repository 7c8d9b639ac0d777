package providers

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"harness/planner/model"
	"harness/planner/model/recorded"
)

var wires = []string{"anthropic", "responses", "chat"}

// each plays the replies over every wire, through the real client.
func each(t *testing.T, replies []recorded.Reply, test func(t *testing.T, m model.Model, s *recorded.Server)) {
	for _, wire := range wires {
		t.Run(wire, func(t *testing.T) {
			m, err := Play(replies, "test", wire)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { m.(io.Closer).Close() })
			test(t, m, m.(*played).server)
		})
	}
}

var tool = model.Tool{Name: "read_file", Description: "reads", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}

func ask(messages ...model.Message) *model.Request {
	return &model.Request{System: "be good", Tools: []model.Tool{tool}, Messages: messages}
}

var hello = model.Message{Role: model.User, Text: "hello"}

func TestConversation(t *testing.T) {
	args := json.RawMessage(`{"path":"a \"quoted\" näme.go"}`)
	each(t, []recorded.Reply{
		{Text: "I read three files — ünïcode.", Calls: []recorded.Call{{Name: "read_file", Args: args}, {Name: "read_file", Args: args}, {Name: "read_file", Args: args}},
			Usage: model.Usage{InputTokens: 100, CachedInputTokens: 40, OutputTokens: 20}},
		{Text: "Done."},
	}, func(t *testing.T, m model.Model, s *recorded.Server) {
		var streamed strings.Builder
		calls := 0
		r, err := m.Complete(t.Context(), ask(hello), func(d model.Delta) {
			streamed.WriteString(d.Text)
			if d.CallName != "" {
				calls++
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if streamed.String() != "I read three files — ünïcode." || r.Message.Text != streamed.String() || calls != 3 || len(r.Message.Calls) != 3 || r.Stop != model.ToolUse {
			t.Errorf("streamed %q, %d calls, %+v", streamed.String(), calls, r)
		}
		if r.Usage != (model.Usage{InputTokens: 100, CachedInputTokens: 40, OutputTokens: 20}) {
			t.Errorf("usage %+v", r.Usage)
		}
		ids := map[string]bool{}
		results := model.Message{Role: model.ToolRole}
		for _, c := range r.Message.Calls {
			if string(c.Args) != string(args) || c.Name != "read_file" {
				t.Errorf("call %+v", c)
			}
			ids[c.ID] = true
			results.Results = append(results.Results, model.ToolResult{CallID: c.ID, Name: c.Name})
		}
		if len(ids) != 3 {
			t.Errorf("ids %v", ids)
		}
		// An empty result, two messages of the user in a row: still a form that the server takes.
		r, err = m.Complete(t.Context(), ask(hello, r.Message, results, hello, hello), func(model.Delta) {})
		if err != nil || r.Message.Text != "Done." || r.Stop != model.EndTurn {
			t.Errorf("%+v, %v", r, err)
		}
		if n := len(s.Requests()); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

// A call without its result, a result without its call: neither reaches the provider.
func TestOrphansAreTidied(t *testing.T) {
	each(t, []recorded.Reply{{Text: "ok"}}, func(t *testing.T, m model.Model, _ *recorded.Server) {
		_, err := m.Complete(t.Context(), ask(
			model.Message{Role: model.ToolRole, Results: []model.ToolResult{{CallID: "ghost", Text: "x"}}}, hello, model.Message{Role: model.Assistant},
			model.Message{Role: model.Assistant, Calls: []model.ToolCall{{ID: "c1", Name: "read_file", Args: json.RawMessage(`{"path":`)}}},
			hello), func(model.Delta) {})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestFaults(t *testing.T) {
	for fault, kind := range map[string]model.Kind{"429": model.RateLimit, "529": model.Overload, "500": model.Overload, "auth": model.Auth,
		"context": model.Context, "refused": model.Invalid, "reset": model.Network, "cut": model.Network, "cut_call": model.Network, "overload": model.Overload} {
		t.Run(fault, func(t *testing.T) {
			each(t, []recorded.Reply{{Fault: fault}, {Text: "again"}}, func(t *testing.T, m model.Model, _ *recorded.Server) {
				streamed := ""
				_, err := m.Complete(t.Context(), ask(hello), func(d model.Delta) { streamed += d.Text })
				var e *model.Error
				if !errors.As(err, &e) || e.Kind != kind {
					t.Fatalf("%v, want %v", err, kind)
				}
				if fault == "429" && e.RetryAfter != 50*time.Millisecond {
					t.Errorf("retry after %v", e.RetryAfter)
				}
				if inText := fault == "cut" || fault == "overload"; (streamed != "") != inText {
					t.Errorf("streamed %q", streamed)
				}
				r, err := m.Complete(t.Context(), ask(hello), func(model.Delta) {})
				if err != nil || r.Message.Text != "again" {
					t.Errorf("the retry: %+v, %v", r, err)
				}
			})
		})
	}
}

// What a model has written wrong comes as it is, and can be sent back.
func TestDamagedCalls(t *testing.T) {
	calls := []recorded.Call{{Name: "read_file", Args: json.RawMessage(`{"path":"whole"}`)}, {Name: "read_file", Args: json.RawMessage(`{"path":"cut"}`)}}
	for fault, want := range map[string]struct {
		args string
		stop model.Stop
	}{
		"bad_json":   {`{"path":`, model.ToolUse},
		"max_tokens": {`{"path":"whole"}`, model.MaxTokens},
	} {
		each(t, []recorded.Reply{{Fault: fault, Calls: calls}, {Text: "ok"}}, func(t *testing.T, m model.Model, _ *recorded.Server) {
			r, err := m.Complete(t.Context(), ask(hello), func(model.Delta) {})
			if err != nil || len(r.Message.Calls) != 2 || string(r.Message.Calls[0].Args) != want.args || string(r.Message.Calls[1].Args) != `{"path"` || r.Stop != want.stop {
				t.Fatalf("%s: %+v, %v", fault, r, err)
			}
			if _, err = m.Complete(t.Context(), ask(hello, r.Message), func(model.Delta) {}); err != nil {
				t.Errorf("%s, sent back: %v", fault, err)
			}
		})
	}
}

func TestInterruptInTheMiddle(t *testing.T) {
	each(t, []recorded.Reply{{Fault: "stall", Text: "words that come and then no more of them"}}, func(t *testing.T, m model.Model, _ *recorded.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := m.Complete(ctx, ask(hello), func(d model.Delta) {
			if d.Text != "" {
				cancel()
			}
		})
		if err != context.Canceled {
			t.Errorf("%v", err)
		}
	})
}

func TestNoMoreReplies(t *testing.T) {
	each(t, nil, func(t *testing.T, m model.Model, _ *recorded.Server) {
		_, err := model.Complete(t.Context(), m, ask(hello), func(model.Delta) {}, func(*model.Error, time.Duration, int) { t.Error("waits") })
		if err == nil || !strings.Contains(err.Error(), "0 replies") {
			t.Errorf("%v", err)
		}
	})
}

func TestRetriesAreShownAndInterruptible(t *testing.T) {
	each(t, []recorded.Reply{{Fault: "429"}, {Fault: "429"}, {Text: "at last"}}, func(t *testing.T, m model.Model, _ *recorded.Server) {
		waits := 0
		r, err := model.Complete(t.Context(), m, ask(hello), func(model.Delta) {}, func(*model.Error, time.Duration, int) { waits++ })
		if err != nil || r.Message.Text != "at last" || waits != 2 {
			t.Errorf("%+v, %v, %d waits", r, err, waits)
		}
	})
	each(t, []recorded.Reply{{Fault: "529"}}, func(t *testing.T, m model.Model, _ *recorded.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := model.Complete(ctx, m, ask(hello), func(model.Delta) {}, func(*model.Error, time.Duration, int) { cancel() })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		want string
		kind model.Kind
	}{
		{"", nil, "", model.Auth},
		{"", map[string]string{"ANTHROPIC_API_KEY": "k"}, "anthropic/" + defaultAnthropic, ""},
		{"", map[string]string{"OPENAI_API_KEY": "k"}, "openai/" + defaultOpenAI, ""},
		{"", map[string]string{"OPENAI_API_KEY": "k", "HARNESS_MODEL": "ollama/qwen"}, "ollama/qwen", ""},
		{"", map[string]string{"OPENROUTER_API_KEY": "k"}, "openrouter/" + defaultRouted, ""},
		{"", map[string]string{"GEMINI_API_KEY": "k"}, "gemini/" + defaultGemini, ""},
		{"azure/x", map[string]string{"AZURE_OPENAI_API_KEY": "k"}, "", model.Auth},
		{"azure/x", map[string]string{"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_BASE_URL": "https://n.openai.azure.com/openai/v1"}, "azure/x", ""},
		{"bedrock/a.b", map[string]string{"AWS_BEARER_TOKEN_BEDROCK": "k", "AWS_REGION": "eu-west-1"}, "bedrock/a.b", ""},
		{"bedrock/a.b", map[string]string{"AWS_REGION": "eu-west-1"}, "", model.Auth},
		{"anthropic/x", nil, "", model.Auth},
		{"openai-chat/x", map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "openai-chat/x", ""},
		{"ollama/x", nil, "ollama/x", ""},
		{"openrouter/a/b", map[string]string{"OPENROUTER_API_KEY": "k"}, "openrouter/a/b", ""},
		{"nobody/x", nil, "", model.Invalid},
		{"x", nil, "", model.Invalid},
		{"recorded:/none", nil, "", model.Invalid},
	} {
		m, err := Resolve(c.name, func(k string) string { return c.env[k] })
		if c.kind != "" {
			var e *model.Error
			if !errors.As(err, &e) || e.Kind != c.kind {
				t.Errorf("%s %v: %v, want %v", c.name, c.env, err, c.kind)
			}
			continue
		}
		if err != nil || m.Name() != c.want {
			t.Errorf("%s %v: %v %v", c.name, c.env, m, err)
		}
	}
}
