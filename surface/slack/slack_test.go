package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "harness/contract/harness/v1"
)

// workspace is a local server that speaks as much of Slack's protocol as the
// bridge uses: the Web API, and Socket Mode with its envelopes and acknowledgements.
type workspace struct {
	t     *testing.T
	url   string
	calls chan call // of the Web API
	acks  chan string
	mu    sync.Mutex
	conn  *websocket.Conn
	conns int
	group []string // who is in the user group S1; there is no other
	up    chan struct{}
}

type call struct {
	method string
	form   map[string]string
}

func newWorkspace(t *testing.T) *workspace {
	w := &workspace{t: t, calls: make(chan call, 100), acks: make(chan string, 100), up: make(chan struct{}, 10)}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/apps.connections.open", func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer xapp-1" {
			fmt.Fprint(rw, `{"ok":false,"error":"invalid_auth"}`)
			return
		}
		fmt.Fprintf(rw, `{"ok":true,"url":"ws%s/link"}`, strings.TrimPrefix(w.url, "http"))
	})
	mux.HandleFunc("/api/usergroups.users.list", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		if r.FormValue("token") != "xoxb-1" && r.Header.Get("Authorization") != "Bearer xoxb-1" {
			fmt.Fprint(rw, `{"ok":false,"error":"invalid_auth"}`)
			return
		}
		if r.FormValue("usergroup") != "S1" {
			fmt.Fprint(rw, `{"ok":false,"error":"no_such_subteam"}`)
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		json.NewEncoder(rw).Encode(map[string]any{"ok": true, "users": w.group})
	})
	mux.HandleFunc("/api/", func(rw http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		form := map[string]string{}
		for k := range r.Form {
			form[k] = r.Form.Get(k)
		}
		rw.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(rw, `{"ok":true,"channel":"C1","ts":"1700000000.%06d"}`, len(w.calls)+1)
		w.calls <- call{strings.TrimPrefix(r.URL.Path, "/api/"), form}
	})
	mux.HandleFunc("/link", w.link)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	w.url = srv.URL
	return w
}

func (w *workspace) link(rw http.ResponseWriter, r *http.Request) {
	conn, err := (&websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}).Upgrade(rw, r, nil)
	if err != nil {
		w.t.Error(err)
		return
	}
	defer conn.Close()
	w.mu.Lock()
	w.conn = conn
	w.conns++
	w.mu.Unlock()
	w.send(map[string]any{"type": "hello", "num_connections": 1})
	w.up <- struct{}{}
	for {
		var ack struct {
			EnvelopeID string `json:"envelope_id"`
		}
		if conn.ReadJSON(&ack) != nil {
			return
		}
		w.acks <- ack.EnvelopeID
	}
}

func (w *workspace) send(v any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.conn.WriteJSON(v); err != nil {
		w.t.Error(err)
	}
}

// press is somebody pressing a button of a message.
func (w *workspace) press(envelope, user, action, value string) {
	w.t.Helper()
	w.send(map[string]any{"type": "interactive", "envelope_id": envelope, "accepts_response_payload": true, "payload": map[string]any{
		"type": "block_actions", "user": map[string]string{"id": user}, "channel": map[string]string{"id": "C1"},
		"actions": []map[string]string{{"type": "button", "block_id": "harness", "action_id": action, "value": value}}}})
	if got := <-w.acks; got != envelope {
		w.t.Errorf("acknowledged %q, want %q", got, envelope)
	}
}

// expect is the next call of the Web API.
func (w *workspace) expect(method string) map[string]string {
	w.t.Helper()
	select {
	case c := <-w.calls:
		if c.method != method {
			w.t.Fatalf("called %s, want %s: %v", c.method, method, c.form)
		}
		return c.form
	case <-time.After(30 * time.Second):
		w.t.Fatalf("%s was not called", method)
		return nil
	}
}

// queue is the questions of an executor.
type queue struct {
	mu      sync.Mutex
	open    []*v1.Approval
	answers []*v1.DecideRequest
}

func (q *queue) waiting(context.Context) ([]*v1.Approval, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]*v1.Approval{}, q.open...), nil
}

func (q *queue) take(id string) bool {
	for i, a := range q.open {
		if a.ApprovalId == id {
			q.open = append(q.open[:i:i], q.open[i+1:]...)
			return true
		}
	}
	return false
}

func (q *queue) decide(_ context.Context, d *v1.DecideRequest) (*v1.DecideResponse, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.take(d.ApprovalId) {
		return &v1.DecideResponse{Decided: &v1.DecideRequest{Answer: v1.DecideRequest_deny, Approver: "bob", Surface: "terminal"}}, nil
	}
	q.answers = append(q.answers, d)
	return &v1.DecideResponse{Accepted: true, Decided: d}, nil
}

func (q *queue) ask(id, summary string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = append(q.open, &v1.Approval{ApprovalId: id, SessionId: "x1", Digest: "sha256:" + id, Summary: summary,
		Decision: &v1.Decision{Reason: "it reaches the network"}, Expires: timestamppb.New(time.Now().Add(time.Hour))})
}

func start(t *testing.T) (*workspace, *queue) {
	w, q := newWorkspace(t), &queue{}
	b := &Bridge{API: slack.New("xoxb-1", slack.OptionAppLevelToken("xapp-1"), slack.OptionAPIURL(w.url+"/api/")), Channel: "C1", Users: []string{"U1"},
		Groups: []string{"S9", "S1"}, Every: 5 * time.Millisecond, Waiting: q.waiting, Decide: q.decide}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the bridge ended with %v", err)
		}
	})
	<-w.up
	return w, q
}

func TestQuestionAndAnswer(t *testing.T) {
	w, q := start(t)
	q.ask("a1", "curl http://x <!channel> ```")
	m := w.expect("chat.postMessage")
	if b := m["blocks"]; m["channel"] != "C1" || !strings.Contains(b, "it reaches the network") || !strings.Contains(b, approve) || !strings.Contains(b, deny) ||
		strings.Contains(b, "<!channel>") || strings.Contains(b, "u003c!channel") {
		t.Errorf("%v", m)
	}
	w.press("e1", "U2", approve, "a1")
	if m := w.expect("chat.postEphemeral"); m["user"] != "U2" {
		t.Errorf("%v", m)
	}
	w.press("e2", "U1", approve, "a1")
	m = w.expect("chat.update")
	var blocks []map[string]any
	if err := json.Unmarshal([]byte(m["blocks"]), &blocks); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(m["blocks"], approve) || !strings.Contains(m["text"], "allow by") {
		t.Errorf("%v", m)
	}
	w.press("e3", "U1", deny, "a1") // an old message
	if len(q.answers) != 1 || q.answers[0].Answer != v1.DecideRequest_allow || q.answers[0].Digest != "sha256:a1" || !strings.Contains(q.answers[0].Surface, "U1") {
		t.Errorf("%v", q.answers)
	}
}

// Members of a listed group may answer as long as they are in it; a group that
// Slack does not know lets nobody in and keeps nobody out.
func TestGroups(t *testing.T) {
	w, q := start(t)
	join := func(users ...string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.group = users
	}
	join("U3", "U4")
	q.ask("a1", "make")
	w.expect("chat.postMessage")
	w.press("e1", "U2", approve, "a1")
	if m := w.expect("chat.postEphemeral"); m["user"] != "U2" {
		t.Errorf("%v", m)
	}
	w.press("e2", "U3", approve, "a1")
	w.expect("chat.update")
	q.ask("a2", "make install")
	w.expect("chat.postMessage")
	join("U4")
	w.press("e3", "U3", approve, "a2")
	if m := w.expect("chat.postEphemeral"); m["user"] != "U3" {
		t.Errorf("%v", m)
	}
	w.press("e4", "U4", deny, "a2")
	w.expect("chat.update")
	if len(q.answers) != 2 || q.answers[0].Approver != "U3" || q.answers[1].Approver != "U4" || q.answers[1].Answer != v1.DecideRequest_deny {
		t.Errorf("%v", q.answers)
	}
}

func TestAnsweredElsewhere(t *testing.T) {
	w, q := start(t)
	q.ask("a1", "make")
	w.expect("chat.postMessage")
	q.mu.Lock()
	q.take("a1")
	q.mu.Unlock()
	if m := w.expect("chat.update"); !strings.Contains(m["text"], "answered elsewhere") || strings.Contains(m["blocks"], deny) {
		t.Errorf("%v", m)
	}
}

// Slack asks every client to connect anew from time to time.
func TestConnectsAgain(t *testing.T) {
	w, q := start(t)
	w.send(map[string]any{"type": "disconnect", "reason": "refresh_requested"})
	<-w.up
	q.ask("a1", "make")
	w.expect("chat.postMessage")
	w.press("e1", "U1", deny, "a1")
	w.expect("chat.update")
	if len(q.answers) != 1 || q.answers[0].Answer != v1.DecideRequest_deny {
		t.Errorf("%v", q.answers)
	}
}
