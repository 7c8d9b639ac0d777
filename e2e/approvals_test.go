package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor"
	"harness/executor/approval"
	"harness/executor/audit"
	"harness/executor/policy"
)

// asking is a bed whose executor asks before every command; it can end and start again.
type asking struct {
	*bed
	cfg executor.Config
	now *executor.Executor
}

func newAsking(t *testing.T, change func(*executor.Config)) *asking {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := &asking{bed: &bed{t: t, dir: dir, id: "x1"},
		cfg: executor.Config{Workspace: dir, State: t.TempDir(), Policy: policy.Options{Ask: []string{"Bash(*)"}}}}
	if change != nil {
		change(&a.cfg)
	}
	a.start()
	t.Cleanup(a.end)
	return a
}

func (a *asking) start() {
	a.t.Helper()
	x, err := executor.New(a.cfg)
	if err != nil {
		a.t.Fatal(err)
	}
	a.x, a.now = x, x
	if _, err := x.Open(a.t.Context(), &v1.OpenRequest{SessionId: a.id}); err != nil {
		a.t.Fatal(err)
	}
}

func (a *asking) end() {
	if err := a.now.Shutdown(); err != nil {
		a.t.Errorf("shutdown: %v", err)
	}
}

// hold submits a command that is asked for.
func (a *asking) hold(cmd, cwd string) (*v1.Step, *v1.Approval) {
	a.t.Helper()
	step := a.step(contract.RunCommand, map[string]any{"cmd": cmd, "cwd": cwd, "timeout_s": 5})
	return step, a.want(a.submit(step), v1.Status_awaiting_approval).Approval
}

func yes(q *v1.Approval) *v1.DecideRequest {
	return &v1.DecideRequest{SessionId: q.SessionId, ApprovalId: q.ApprovalId, Digest: q.Digest, Answer: v1.DecideRequest_allow, Approver: "someone", Surface: "test"}
}

func (a *asking) decide(d *v1.DecideRequest) *v1.DecideResponse {
	a.t.Helper()
	r, err := a.x.Decide(a.t.Context(), d)
	if err != nil {
		a.t.Fatal(err)
	}
	return r
}

func (a *asking) exists(path string) bool {
	_, err := os.Lstat(filepath.Join(a.dir, path))
	return err == nil
}

// Whatever of a held step changes between question and answer, the answer is to something else.
func TestAnswerIsToWhatWasShown(t *testing.T) {
	out := t.TempDir()
	for name, c := range map[string]struct {
		cmd, cwd string
		change   func(a *asking) error
		asks     bool
	}{
		"nothing": {"sh s.sh", "cur", func(*asking) error { return nil }, false},
		"another file": {"sh s.sh", "cur", func(a *asking) error {
			return os.WriteFile(filepath.Join(a.dir, "other"), nil, 0o644)
		}, false},
		"the folder's link, within": {"sh s.sh", "cur", func(a *asking) error {
			return errors.Join(os.Remove(filepath.Join(a.dir, "cur")), os.Symlink("evil", filepath.Join(a.dir, "cur")))
		}, true},
		"the folder's link, out of the workspace": {"sh s.sh", "cur", func(a *asking) error {
			return errors.Join(os.Remove(filepath.Join(a.dir, "cur")), os.Symlink(out, filepath.Join(a.dir, "cur")))
		}, true},
		"the script": {"sh s.sh", "good", func(a *asking) error {
			return os.WriteFile(filepath.Join(a.dir, "good/s.sh"), []byte("touch ../PWNED"), 0o644)
		}, true},
		"a script that was not there": {"sh new.sh", "good", func(a *asking) error {
			return os.WriteFile(filepath.Join(a.dir, "good/new.sh"), []byte("touch ../PWNED"), 0o644)
		}, true},
		"a file that is read in": {"cat < good/s.sh | sh", "", func(a *asking) error {
			return os.WriteFile(filepath.Join(a.dir, "good/s.sh"), []byte("touch PWNED"), 0o644)
		}, true},
	} {
		for _, scope := range []v1.DecideRequest_Scope{v1.DecideRequest_once, v1.DecideRequest_session, v1.DecideRequest_always} {
			t.Run(name+", "+scope.String(), func(t *testing.T) {
				os.Remove(filepath.Join(out, "PWNED"))
				a := newAsking(t, nil)
				a.write("good/s.sh", "echo good")
				a.write("evil/s.sh", "touch ../PWNED")
				if err := errors.Join(os.WriteFile(filepath.Join(out, "s.sh"), []byte("touch "+out+"/PWNED"), 0o644), os.Symlink("good", filepath.Join(a.dir, "cur"))); err != nil {
					t.Fatal(err)
				}
				step, q := a.hold(c.cmd, c.cwd)
				if err := c.change(a); err != nil {
					t.Fatal(err)
				}
				d := yes(q)
				d.Scope = scope
				a.decide(d)
				r := a.submit(step)
				if asked := r.Status == v1.Status_awaiting_approval; asked != c.asks {
					t.Fatalf("status %v: %v", r.Status, r.Error)
				}
				if _, err := os.Lstat(filepath.Join(out, "PWNED")); err == nil || a.exists("PWNED") {
					t.Error("what was not shown has run")
				}
				if c.asks && (r.Approval.ApprovalId == q.ApprovalId || r.Approval.Digest == q.Digest) {
					t.Error("the new question is the old one")
				}
			})
		}
	}
}

// Once means once, one answer is to one question, and silence is a no.
func TestAnswersAreNotMixedUp(t *testing.T) {
	a := newAsking(t, nil)
	first, q := a.hold("touch a", "")
	_, other := a.hold("touch PWNED", "")
	wrong := yes(other)
	wrong.Digest = q.Digest
	if _, err := a.x.Decide(t.Context(), wrong); err == nil {
		t.Error("an answer to another digest was taken")
	}
	a.decide(yes(q))
	a.want(a.submit(first), v1.Status_ok)
	if !a.exists("a") || a.exists("PWNED") {
		t.Error("not just the approved one ran")
	}
	if _, again := a.hold("touch a", ""); again.ApprovalId == q.ApprovalId {
		t.Error("an old approval served twice")
	}
}

func TestExpiryDenies(t *testing.T) {
	a := newAsking(t, func(c *executor.Config) { c.ApprovalTTL = 300 * time.Millisecond })
	step, q := a.hold("touch a", "")
	denied := make(chan struct{})
	go a.x.Watch(t.Context(), &v1.WatchRequest{SessionId: a.id, Follow: true}, func(e *v1.Event) error {
		if d := e.GetApprovalDecided(); d != nil && d.Surface == "expiry" {
			close(denied)
		}
		return nil
	})
	<-denied // nobody answered, and the watchers are told
	r := a.want(a.submit(step), v1.Status_denied)
	contains(t, r.Error.Message, "the waiting time was over")
	if d := a.decide(yes(q)); d.Accepted || d.Decided.Surface != "expiry" || a.exists("a") {
		t.Errorf("a late answer counted: %v", d)
	}
	if list := records(t, a.cfg.State, audit.Query{Step: step.StepId}); list[1].Kind != audit.Decided || list[1].Surface != "expiry" {
		t.Errorf("%+v", list)
	}
}

func TestFirstAnswerWins(t *testing.T) {
	a := newAsking(t, nil)
	step, q := a.hold("echo x >> f", "")
	var wg sync.WaitGroup
	answers := make([]*v1.DecideResponse, 8)
	for i := range answers {
		wg.Go(func() {
			d := yes(q)
			d.Approver = string(rune('a' + i))
			if i%2 == 0 {
				d.Answer = v1.DecideRequest_deny
			}
			answers[i], _ = a.x.Decide(t.Context(), d)
		})
	}
	wg.Wait()
	won := ""
	for _, r := range answers {
		if r.Accepted {
			won += r.Decided.Approver
		}
	}
	for _, r := range answers {
		if len(won) != 1 || r.Decided.Approver != won {
			t.Errorf("won %q, told %v", won, r.Decided)
		}
	}
	if ran := a.submit(step).Status == v1.Status_ok; ran != a.exists("f") || ran != ((won[0]-'a')%2 == 1) {
		t.Errorf("%s won, ran %v", won, ran)
	}
}

// A question outlives the executor, and so does an answer that was left for it.
func TestQuestionsOutliveTheExecutor(t *testing.T) {
	a := newAsking(t, nil)
	step, q := a.hold("echo x >> f", "")
	left, q2 := a.hold("echo y >> g", "")
	no, q3 := a.hold("touch PWNED", "")
	a.end()
	waiting, err := executor.Waiting(a.cfg.State)
	if err != nil || len(waiting) != 3 || waiting[0].ApprovalId != q.ApprovalId || waiting[0].Summary != "echo x >> f" {
		t.Fatalf("%v %v", waiting, err)
	}
	leave := func(d *v1.DecideRequest) {
		if r, err := executor.Leave(a.cfg, d); err != nil || !r.Accepted {
			t.Fatalf("%v %v", r, err)
		}
	}
	leave(yes(q2))
	d := yes(q3)
	d.Answer, d.Message = v1.DecideRequest_deny, "not today"
	leave(d)
	a.start()
	a.want(a.submit(left), v1.Status_ok)
	contains(t, a.want(a.submit(no), v1.Status_denied).Error.Message, "someone said no: not today")
	a.decide(yes(q))
	a.want(a.submit(step), v1.Status_ok)
	a.end()
	a.start()
	if a.read("f") != "x\n" || a.read("g") != "y\n" || a.exists("PWNED") {
		t.Error("not each step ran once")
	}
	if _, err := executor.Leave(a.cfg, yes(q)); err == nil {
		t.Error("an answer was left while an executor holds the session")
	}
	if f := verified(t, a.cfg.State); len(f) > 0 {
		t.Errorf("%v", f)
	}
}

// Waiting for an answer takes nothing of a step's time.
func TestWaitingIsNotRunning(t *testing.T) {
	a := newAsking(t, nil)
	step := a.step(contract.RunCommand, map[string]any{"cmd": "sleep 0.2", "timeout_s": 1})
	q := a.want(a.submit(step), v1.Status_awaiting_approval).Approval
	time.Sleep(1200 * time.Millisecond)
	a.decide(yes(q))
	a.want(a.submit(step), v1.Status_ok)
}

// An answer from another machine counts when one of the approvers signed just this answer.
func TestSignedAnswers(t *testing.T) {
	private, public, err := approval.NewKey("ann")
	if err != nil {
		t.Fatal(err)
	}
	stranger, _, err := approval.NewKey("ann")
	if err != nil {
		t.Fatal(err)
	}
	a := newAsking(t, func(c *executor.Config) {
		c.Approvers, c.SignedAnswers = approval.Keys("# who may\n"+public+"\n"), true
	})
	step, q := a.hold("touch a", "")
	_, other := a.hold("touch b", "")
	signed := func(q *v1.Approval, key string, at time.Time) *v1.DecideRequest {
		d := yes(q)
		d.Time = timestamppb.New(at)
		if err := approval.Sign(d, key); err != nil {
			t.Fatal(err)
		}
		return d
	}
	now := time.Now()
	bad := map[string]*v1.DecideRequest{"unsigned": yes(q), "a stranger's": signed(q, stranger, now), "an old one": signed(q, private, now.Add(-time.Hour)),
		"of another question": signed(other, private, now), "turned round": signed(q, private, now), "widened": signed(q, private, now), "with other words": signed(q, private, now)}
	bad["of another question"].ApprovalId, bad["of another question"].Digest = q.ApprovalId, q.Digest
	bad["turned round"].Answer = v1.DecideRequest_deny
	bad["widened"].Scope = v1.DecideRequest_always
	bad["with other words"].Message = "x"
	for name, d := range bad {
		if _, err := a.x.Decide(t.Context(), d); err == nil || contract.AsError(err).Kind != v1.Error_denied {
			t.Errorf("%s: %v", name, err)
		}
	}
	d := signed(q, private, now)
	d.Approver = "somebody else" // the name counts that belongs to the key
	if r := a.decide(d); !r.Accepted || !strings.HasPrefix(r.Decided.Approver, "ann") {
		t.Errorf("%v", r)
	}
	a.want(a.submit(step), v1.Status_ok)
}
