package providers

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"harness/planner/model"
	"harness/planner/model/recorded"
)

// What is recorded of a conversation with faults plays back as it was, in its
// wire, and says where a later conversation is another one.
func TestRecordAndPlay(t *testing.T) {
	script := []recorded.Reply{{Fault: "429"}, {Fault: "cut"}, {Fault: "reset"}, {Text: "I look — é.", Calls: []recorded.Call{{Name: "read_file", Args: json.RawMessage(`{"path":"a"}`)}}}, {Text: "Done."}}
	for _, wire := range wires {
		t.Run(wire, func(t *testing.T) {
			var file bytes.Buffer
			rec := &recorded.Recorder{To: &file, Secrets: []string{"k-secret-of-the-run"}, Via: http.DefaultTransport}
			client := *model.Client(nil)
			client.Transport = rec
			m, err := playVia(&client, script, "test", wire)
			if err != nil {
				t.Fatal(err)
			}
			first := converse(t, m, "be good, k-secret-of-the-run", "the text of a")
			m.(*played).Close()
			if err := rec.Err(); err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"k-secret-of-the-run", "Authorization", "X-Api-Key"} {
				if strings.Contains(file.String(), key) {
					t.Errorf("%s is in the recording", key)
				}
			}
			replies, err := recorded.Load(&file)
			if err != nil || len(replies) != len(script) {
				t.Fatalf("%d exchanges, %v", len(replies), err)
			}
			again := func(system, result string) (outcome, []string) {
				m, err := Play(replies, "test", "")
				if err != nil {
					t.Fatal(err)
				}
				defer m.(*played).Close()
				o := converse(t, m, system, result)
				return o, m.(*played).Notes()
			}
			if o, notes := again("be good, [key]", "the text of a"); !reflect.DeepEqual(o, first) || len(notes) > 0 {
				t.Errorf("played: %+v, recorded: %+v, notes %v", o, first, notes)
			}
			if _, notes := again("be good, [key]", "the text of b"); len(notes) != 1 || !strings.Contains(notes[0], "text of a") || !strings.Contains(notes[0], "text of b") {
				t.Errorf("another result: %v", notes)
			}
			m, err = Play(replies[3:], "test", "")
			if err != nil {
				t.Fatal(err)
			}
			defer m.(*played).Close()
			_, err = m.Complete(t.Context(), ask(hello, model.Message{Role: model.Assistant, Text: "x"}, hello), func(model.Delta) {})
			if err == nil || !strings.Contains(err.Error(), "entries") {
				t.Errorf("another conversation: %v", err)
			}
		})
	}
}

type outcome struct {
	errs  []model.Kind
	first model.Message
	usage model.Usage
	last  string
}

// converse has one call answered; what fails is asked again at once.
func converse(t *testing.T, m model.Model, system, result string) (o outcome) {
	t.Helper()
	next := func(messages ...model.Message) *model.Reply {
		for range 5 {
			q := ask(messages...)
			q.System = system
			r, err := m.Complete(t.Context(), q, func(model.Delta) {})
			if err == nil {
				return r
			}
			var e *model.Error
			if !errors.As(err, &e) || !e.Retryable() {
				t.Fatal(err)
			}
			o.errs = append(o.errs, e.Kind)
		}
		t.Fatal("it fails for ever")
		return nil
	}
	r := next(hello)
	o.first, o.usage = r.Message, r.Usage
	o.last = next(hello, r.Message, model.Message{Role: model.ToolRole, Results: []model.ToolResult{{CallID: r.Message.Calls[0].ID, Name: "read_file", Text: result}}}).Message.Text
	return o
}
