package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor"
	"harness/executor/policy"
)

// asker is an executor whose policy has new domains asked for, and a server on the loopback.
type asker struct {
	*asking
	port string
	user string // the configuration
}

func newAsker(t *testing.T, change func(*executor.Config)) *asker {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl")
	}
	if rung() != "namespaces" {
		t.Skip("this rung has no network at all")
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") }))
	server.Listener.Close()
	var err error
	if server.Listener, err = net.Listen("tcp4", ":0"); err != nil { // at 127.0.0.2 too
		t.Fatal(err)
	}
	server.Start()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	a := &asker{port: port, user: filepath.Join(t.TempDir(), "config.toml")}
	if err := os.WriteFile(a.user, []byte("[permissions]\nnew_domains = \"ask\"\nprivate_networks = [\"127.0.0.0/8\"]\ndeny = [\"WebFetch(domain:127.0.0.9)\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.asking = newAsking(t, func(c *executor.Config) {
		c.Policy = policy.Options{Allow: []string{"Bash(*)"}, UserFile: a.user}
		if change != nil {
			change(c)
		}
	})
	return a
}

// get is a command that asks for a page of each host, and what it prints if all come.
func (a *asker) get(seconds int, hosts ...string) *v1.Step {
	a.t.Helper()
	cmd := ""
	for _, h := range hosts {
		cmd += fmt.Sprintf("curl -s --noproxy '' -o /dev/null -w '%%{http_code} ' http://%s:%s/; ", h, a.port)
	}
	return a.step(contract.RunCommand, map[string]any{"cmd": cmd + "true", "timeout_s": seconds})
}

// A connection to a host that no rule names waits for an answer while its
// command goes on, without its timeout.
func TestConnectionIsAsked(t *testing.T) {
	a := newAsker(t, nil)
	step := a.get(3, "127.0.0.1", "127.0.0.1", "127.0.0.9")
	q := a.want(a.submit(step), v1.Status_awaiting_approval).Approval
	if q.Host != "127.0.0.1" || fmt.Sprint(q.Port) != a.port || q.Rule != "WebFetch(domain:127.0.0.1)" || q.Decision.Verdict != v1.Decision_ask {
		t.Fatalf("asked for %v", q)
	}
	contains(t, q.Summary, "127.0.0.1:"+a.port)
	forged := yes(q)
	forged.Digest = "sha256:0"
	if _, err := a.x.Decide(t.Context(), forged); err == nil {
		t.Error("an answer to something else is taken")
	}
	time.Sleep(4 * time.Second) // longer than the command may run
	if r := a.submit(step); r.Status != v1.Status_awaiting_approval || r.Approval.ApprovalId != q.ApprovalId {
		t.Fatalf("it does not wait any more: %v", r)
	}
	a.decide(yes(q))
	r := a.want(a.submit(step), v1.Status_ok) // the second connection of the step is not asked for again
	contains(t, r.GetOutput().GetText(), "200 200 403")
	if len(r.Connections) != 3 || r.Connections[2].Refused == nil {
		t.Errorf("connections: %v", r.Connections)
	}
	// "once" is for that step.
	q = a.want(a.submit(a.get(5, "127.0.0.1")), v1.Status_awaiting_approval).Approval
	a.decide(no(q))
}

func no(q *v1.Approval) *v1.DecideRequest {
	d := yes(q)
	d.Answer, d.Message, d.Approver, d.Surface = v1.DecideRequest_deny, "nobody is there to be asked", "", "terminal"
	return d
}

// Every end of a question but a yes refuses the connection, and the result says why.
func TestConnectionIsRefused(t *testing.T) {
	a := newAsker(t, nil)
	step := a.get(5, "127.0.0.1", "127.0.0.1")
	a.decide(no(a.want(a.submit(step), v1.Status_awaiting_approval).Approval))
	r := a.want(a.submit(step), v1.Status_ok)
	contains(t, r.GetOutput().GetText(), "403 403")
	contains(t, strings.Join(r.Notes, "\n"), "127.0.0.1:"+a.port, "the terminal said no: nobody is there to be asked")

	late := newAsker(t, func(c *executor.Config) { c.ApprovalTTL = 300 * time.Millisecond })
	step = late.get(5, "127.0.0.1")
	q := late.want(late.submit(step), v1.Status_awaiting_approval).Approval
	for r = late.submit(step); r.Status == v1.Status_awaiting_approval; r = late.submit(step) {
		time.Sleep(50 * time.Millisecond)
	}
	contains(t, strings.Join(r.Notes, "\n"), "nobody answered in time")
	if got := late.decide(yes(q)); got.Accepted || got.Decided.Surface != "expiry" {
		t.Errorf("a late yes: %v", got)
	}
}

// A command that ends, or is cancelled, takes its question along: no answer can reach another one.
func TestQuestionEndsWithItsCommand(t *testing.T) {
	a := newAsker(t, nil)
	step := a.step(contract.RunCommand, map[string]any{"cmd": "curl -s -m 4 --noproxy '' http://127.0.0.1:" + a.port + "/ || echo gave up; test -e never"})
	q := a.want(a.submit(step), v1.Status_awaiting_approval).Approval
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if r := a.submit(step); r.Status != v1.Status_awaiting_approval {
			contains(t, r.GetOutput().GetText(), "gave up")
			contains(t, strings.Join(r.Notes, "\n"), "the command ended before the answer")
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the question outlives the command")
		}
	}
	if got := a.decide(yes(q)); got.Accepted {
		t.Error("an answer to a command that ended is taken")
	}
	step = a.get(60, "127.0.0.1")
	a.want(a.submit(step), v1.Status_awaiting_approval)
	a.want(a.submit(a.step(contract.CancelStep, map[string]any{"target": step.StepId})), v1.Status_ok)
	for r := a.submit(step); r.Status != v1.Status_cancelled; r = a.submit(step) {
		if r.Status != v1.Status_awaiting_approval {
			t.Fatalf("%v", r)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if left, err := executor.Waiting(a.cfg.State); err != nil || len(left) != 0 {
		t.Errorf("open questions: %v %v", left, err)
	}
}

// "session" holds for the session, "always" saves exactly the rule that was shown.
func TestConnectionScopes(t *testing.T) {
	a := newAsker(t, nil)
	step := a.get(5, "127.0.0.1", "127.0.0.2")
	d := yes(a.want(a.submit(step), v1.Status_awaiting_approval).Approval)
	d.Scope = v1.DecideRequest_session
	a.decide(d)
	q := a.want(a.submit(step), v1.Status_awaiting_approval).Approval
	if q.Host != "127.0.0.2" {
		t.Fatalf("asked for %v", q)
	}
	d = yes(q)
	d.Scope = v1.DecideRequest_always
	a.decide(d)
	contains(t, a.want(a.submit(step), v1.Status_ok).GetOutput().GetText(), "200 200")
	contains(t, a.want(a.submit(a.get(5, "127.0.0.1", "127.0.0.2")), v1.Status_ok).GetOutput().GetText(), "200 200")
	data, err := os.ReadFile(a.user)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(data), `allow = ["WebFetch(domain:127.0.0.2)"]`)
	a.end()
	a.start()
	step = a.get(5, "127.0.0.2", "127.0.0.1")
	if q = a.want(a.submit(step), v1.Status_awaiting_approval).Approval; q.Host != "127.0.0.1" {
		t.Errorf("asked for %v", q)
	}
	a.decide(no(q))
	a.submit(step)
}

// A command whose executor ended is interrupted, and not run again by an answer.
func TestQuestionOfAKilledCommand(t *testing.T) {
	a := newAsker(t, nil)
	step := a.get(60, "127.0.0.1")
	q := a.want(a.submit(step), v1.Status_awaiting_approval).Approval
	a.end()
	if got, err := executor.Leave(a.cfg, yes(q)); err == nil && got.Accepted {
		t.Errorf("an answer is left for a command that is gone: %v", got)
	}
	a.start()
	if r := a.submit(step); r.Status == v1.Status_awaiting_approval || r.Status == v1.Status_ok {
		t.Errorf("%v", r)
	}
}
