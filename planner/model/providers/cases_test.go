package providers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"harness/planner/model"
	"harness/planner/model/recorded"
)

// elsewhere are the cases of the file that the loop decides, not the wires: e2e has them.
var elsewhere = []string{"S-prv-014", "S-prv-017", "S-prv-019", "S-prv-020", "S-prv-021", "S-prv-022", "S-prv-023", "S-prv-024"}

var cases = map[string]func(t *testing.T, wire string){
	"S-prv-001": func(t *testing.T, wire string) { // a date three seconds ahead
		first := time.Now()
		tries, waited := 0, time.Duration(0)
		m := client(wire, func(req *http.Request) (*http.Response, error) {
			if tries++; tries > 1 {
				return response(req, 200, strings.NewReader(string(good[wire]))), nil
			}
			return limited(req, time.Now().Add(3*time.Second).UTC().Format(http.TimeFormat)), nil
		})
		_, err := model.Complete(t.Context(), m, ask(hello), func(model.Delta) {}, func(_ *model.Error, d time.Duration, _ int) { waited += d })
		if err != nil || waited != 3*time.Second || time.Since(first) != waited {
			t.Errorf("waited %v, %v", waited, err)
		}
	},
	"S-prv-002": func(t *testing.T, wire string) { // a day
		m := client(wire, func(req *http.Request) (*http.Response, error) { return limited(req, "86400"), nil })
		_, err := model.Complete(t.Context(), m, ask(hello), func(model.Delta) {}, func(*model.Error, time.Duration, int) { t.Error("waits") })
		if err == nil || !strings.Contains(err.Error(), "24h0m0s") {
			t.Errorf("%v", err)
		}
	},
	"S-prv-003": func(t *testing.T, wire string) { // for ever
		tries := 0
		m := client(wire, func(req *http.Request) (*http.Response, error) { tries++; return limited(req, ""), nil })
		_, err := model.Complete(t.Context(), m, ask(hello), func(model.Delta) {}, func(*model.Error, time.Duration, int) {})
		if err == nil || tries != 7 || !strings.Contains(err.Error(), "given up after 7 tries") {
			t.Errorf("%d tries, %v", tries, err)
		}
	},
	"S-prv-004": func(t *testing.T, wire string) {
		again(t, wire, recorded.Reply{Fault: "overload", Text: "half of a text that has no end"})
	},
	"S-prv-005": func(t *testing.T, wire string) { stops(t, wire, "refused", "the request is refused") },
	"S-prv-006": func(t *testing.T, wire string) {
		r := one(t, wire, recorded.Reply{Fault: "max_tokens", Calls: []recorded.Call{{Name: "read_file", Args: json.RawMessage(`{"path":"a preview"}`)}}})
		if json.Valid(r.Message.Calls[0].Args) || r.Stop != model.MaxTokens {
			t.Errorf("%+v", r)
		}
	},
	"S-prv-007": func(t *testing.T, wire string) {
		again(t, wire, recorded.Reply{Fault: "cut", Text: "half of a text that has no end"})
		text := good[wire][:strings.Index(string(good[wire]), "read_file")]
		at := strings.LastIndex(string(text), "\n\n") + 2
		if r, err := stream(wire, text[:at], io.EOF).Complete(t.Context(), ask(hello), func(model.Delta) {}); err == nil {
			t.Errorf("a connection that just closes is an answer: %+v", r)
		}
	},
	"S-prv-008": func(t *testing.T, wire string) {
		start := time.Now()
		m := client(wire, func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		})
		_, err := m.Complete(t.Context(), ask(hello), func(model.Delta) {})
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != model.Network || time.Since(start) != model.IdleTimeout {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Complete(ctx, ask(hello), func(model.Delta) {}); err != context.DeadlineExceeded {
			t.Errorf("interrupted: %v", err)
		}
	},
	"S-prv-009": func(t *testing.T, wire string) { asWritten(t, wire, `{}""`) },
	"S-prv-010": func(t *testing.T, wire string) {
		r := one(t, wire, recorded.Reply{Calls: []recorded.Call{{Name: "read_file"}}})
		if string(r.Message.Calls[0].Args) != "{}" {
			t.Errorf("%+v", r)
		}
	},
	"S-prv-011": func(t *testing.T, wire string) { asWritten(t, wire, `{"command":"echo a","command":"rm x"}`) },
	"S-prv-012": func(t *testing.T, wire string) {
		asWritten(t, wire, `{"command":"echo a","approved":true,"sandbox":"off"}`)
	},
	"S-prv-013": func(t *testing.T, wire string) { // the name as written, and a form of it that goes back
		s := serve(t, recorded.Reply{Calls: []recorded.Call{{Name: "Shell"}, {Name: "shell.rm"}}}, recorded.Reply{Text: "ok"})
		m := over(wire, s)
		r, err := m.Complete(t.Context(), ask(hello), func(model.Delta) {})
		if err != nil || r.Message.Calls[0].Name != "Shell" || r.Message.Calls[1].Name != "shell.rm" {
			t.Fatalf("%+v, %v", r, err)
		}
		if _, err = m.Complete(t.Context(), ask(hello, r.Message), func(model.Delta) {}); err != nil {
			t.Errorf("sent back: %v", err)
		}
	},
	"S-prv-015": func(t *testing.T, wire string) {
		body := strings.NewReplacer(`"tool_use","stop_sequence"`, `"eos","stop_sequence"`, `"finish_reason":"tool_calls"`, `"finish_reason":"eos"`,
			`"status":"completed","error"`, `"status":"eos","error"`).Replace(string(good[wire]))
		if body == string(good[wire]) {
			t.Fatal("the end reason is not changed")
		}
		r, err := stream(wire, []byte(body), io.EOF).Complete(t.Context(), ask(hello), func(model.Delta) {})
		if err != nil || r.Message.Text == "" || len(r.Message.Calls) != 2 {
			t.Errorf("%+v, %v", r, err)
		}
	},
	"S-prv-016": func(t *testing.T, wire string) {
		body := strings.NewReplacer("toolu_0000_1", "toolu_0000_0", "call_0000_1", "call_0000_0").Replace(string(good[wire]))
		r, err := stream(wire, []byte(body), io.EOF).Complete(t.Context(), ask(hello), func(model.Delta) {})
		if err != nil || len(r.Message.Calls) != 2 || r.Message.Calls[0].ID == r.Message.Calls[1].ID {
			t.Errorf("%+v, %v", r, err)
		}
	},
	"S-prv-018": func(t *testing.T, wire string) { stops(t, wire, "context", "too long") },
}

// real are the cases that need a real connection, and so real time.
var real = []string{"S-prv-004", "S-prv-005", "S-prv-006", "S-prv-007", "S-prv-009", "S-prv-010", "S-prv-011", "S-prv-012", "S-prv-013", "S-prv-018"}

var good map[string][]byte

func TestCases(t *testing.T) {
	good = capture(t)
	f, err := os.Open("testdata/provider.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for sc := bufio.NewScanner(f); sc.Scan(); n++ {
		var c struct{ ID, Why string }
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		test := cases[c.ID]
		if (test == nil) != slices.Contains(elsewhere, c.ID) {
			t.Errorf("%s (%s) is no case here", c.ID, c.Why)
		}
		for _, wire := range wires {
			switch {
			case test == nil:
			case slices.Contains(real, c.ID):
				t.Run(c.ID+"/"+wire, func(t *testing.T) { test(t, wire) })
			default:
				t.Run(c.ID+"/"+wire, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, wire) }) })
			}
		}
	}
	if n != len(cases)+len(elsewhere) {
		t.Errorf("%d cases in the file", n)
	}
}

func limited(req *http.Request, after string) *http.Response {
	res := response(req, 429, strings.NewReader(`{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`))
	res.Header.Set("Retry-After", after)
	return res
}

func serve(t *testing.T, replies ...recorded.Reply) *recorded.Server {
	s, err := recorded.Serve(replies)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func over(wire string, s *recorded.Server) model.Model {
	m, err := speak(nil, s, "recorded", wire)
	if err != nil {
		panic(err)
	}
	return m
}

// one is the client's reading of one reply.
func one(t *testing.T, wire string, reply recorded.Reply) *model.Reply {
	t.Helper()
	r, err := over(wire, serve(t, reply)).Complete(t.Context(), ask(hello), func(model.Delta) {})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// asWritten: the arguments of a call come as the model wrote them.
func asWritten(t *testing.T, wire, args string) {
	t.Helper()
	if r := one(t, wire, recorded.Reply{Calls: []recorded.Call{{Name: "read_file", Args: json.RawMessage(args)}}}); string(r.Message.Calls[0].Args) != args {
		t.Errorf("%s, want %s", r.Message.Calls[0].Args, args)
	}
}

// again: after the fault the request is sent again, and only its answer is kept.
func again(t *testing.T, wire string, fault recorded.Reply) {
	t.Helper()
	waits := 0
	r, err := model.Complete(t.Context(), over(wire, serve(t, fault, recorded.Reply{Text: "good"})), ask(hello), func(model.Delta) {},
		func(*model.Error, time.Duration, int) { waits++ })
	if err != nil || r.Message.Text != "good" || waits != 1 {
		t.Errorf("%+v, %v, %d waits", r, err, waits)
	}
}

// stops: the fault is not tried again, and its reason is shown.
func stops(t *testing.T, wire, fault, reason string) {
	t.Helper()
	s := serve(t, recorded.Reply{Fault: fault}, recorded.Reply{Text: "good"})
	_, err := model.Complete(t.Context(), over(wire, s), ask(hello), func(model.Delta) {}, func(*model.Error, time.Duration, int) { t.Error("waits") })
	if err == nil || !strings.Contains(err.Error(), reason) || len(s.Requests()) != 1 {
		t.Errorf("%v after %d requests", err, len(s.Requests()))
	}
}
