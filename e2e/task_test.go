package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "harness/contract/harness/v1"
	"harness/planner"
	"harness/planner/budget"
	"harness/planner/judge"
	"harness/planner/model"
	"harness/planner/model/anthropic"
	"harness/planner/model/recorded"
	"harness/planner/session"
)

// nobody is a surface that nobody looks at.
type nobody struct{}

var errNobody = errors.New("nobody is here")

func (nobody) Event(session.Event)   {}
func (nobody) Delta(string, string)  {}
func (nobody) Output(string, string) {}
func (nobody) Question(context.Context, string) (string, error) {
	return "", errNobody
}
func (nobody) Ask(context.Context, *v1.Approval) (*v1.DecideRequest, error) {
	return nil, errNobody
}

// ran is what came of a task.
type ran struct {
	planner.Report
	statuses []string // of the steps, in order
	results  []model.ToolResult
	requests [][]byte
}

// task runs the whole loop on the bed with a recorded model, over HTTP.
func (b *bed) task(replies ...recorded.Reply) ran {
	b.t.Helper()
	s, err := recorded.Serve(replies)
	if err != nil {
		b.t.Fatal(err)
	}
	defer s.Close()
	store, err := session.Open(b.t.TempDir())
	if err != nil {
		b.t.Fatal(err)
	}
	defer store.Close()
	x, err := store.Create(session.Meta{ID: b.id})
	if err != nil {
		b.t.Fatal(err)
	}
	defer x.Close()
	m := anthropic.New(anthropic.Config{Model: "recorded", APIKey: "none", BaseURL: s.URL()})
	var r ran
	if r.Report, err = planner.Run(b.t.Context(), planner.Config{Executor: b.x, Model: m, Session: x, Surface: nobody{}, Workspace: b.dir, Task: "do it",
		Limits: budget.Limits{MaxTurns: 40}, Check: judge.Spec{Off: true}}); err != nil {
		b.t.Fatal(err)
	}
	for _, step := range session.Steps(x.Events()) {
		r.statuses = append(r.statuses, step.Result.GetStatus().String())
	}
	for _, e := range x.Events() {
		var m model.Message
		if e.Type == "message.tool" && json.Unmarshal(e.Data, &m) == nil {
			r.results = append(r.results, m.Results...)
		}
	}
	r.requests = s.Requests()
	return r
}

// calls is a reply with one call.
func calls(name string, args map[string]any) recorded.Reply {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return recorded.Reply{Calls: []recorded.Call{{Name: name, Args: raw}}}
}

func runs(cmd string) recorded.Reply   { return calls("run_command", map[string]any{"cmd": cmd}) }
func looks(path string) recorded.Reply { return calls("read_file", map[string]any{"path": path}) }

var ends = recorded.Reply{Text: "I am done."}

func (b *bed) absent(paths ...string) {
	b.t.Helper()
	for _, p := range paths {
		if _, err := os.Lstat(filepath.Join(b.dir, p)); err == nil {
			b.t.Errorf("%s is there", p)
		}
	}
}

// caseLine is a line of a file of cases.
type caseLine struct {
	ID, Kind, Why string
	Setup         struct {
		Files, Env map[string]string
		Bash       string
	}
	Expect struct {
		Absent, Present []string
		Fact            string
	}
}

func caseLines(t *testing.T, path string) (list []caseLine) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var c caseLine
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

// blocks is every block of the request's messages, as "role type: text".
func blocks(t *testing.T, body []byte) (list []string) {
	var r struct {
		Messages []struct {
			Role    string
			Content []struct {
				Type, Text string
				Content    json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	for _, m := range r.Messages {
		for _, b := range m.Content {
			list = append(list, strings.Join([]string{m.Role, b.Type + ":", b.Text, string(b.Content)}, " "))
		}
	}
	return list
}
