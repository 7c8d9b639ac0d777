package executor

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/audit"
)

// maxQuestions is how many hosts a command may have asked for.
const maxQuestions = 20

// questions asks for a command's connections, one at a time, while the command
// goes on and the clock of its timeout stands. A host and port are asked for
// once in a step.
type questions struct {
	s        *session
	l        *live
	clock    func(runs bool)
	turn     chan struct{} // holds one: whoever put it there has what follows
	answered map[string]*v1.Decision
}

// ask waits for the decision on a connection. The question ends with ctx, which
// ends with the command.
func (q *questions) ask(ctx context.Context, host string, port uint16) *v1.Decision {
	at := net.JoinHostPort(host, strconv.Itoa(int(port)))
	select {
	case q.turn <- struct{}{}:
		defer func() { <-q.turn }()
	case <-ctx.Done():
		return refusal(q.s.currentPolicy().Connect(host).Decision, "the command ended")
	}
	for {
		v := q.s.currentPolicy().Connect(host) // it may be another one since
		if v.Decision.Verdict != v1.Decision_ask {
			return v.Decision
		}
		if d := q.answered[at]; d != nil {
			return proto.CloneOf(d)
		}
		if q.s.grantedConnection(at) {
			return allowed(v.Decision)
		}
		if len(q.answered) == maxQuestions {
			return refusal(v.Decision, fmt.Sprintf("this command asked for %d others already", maxQuestions))
		}
		a := &v1.Approval{ApprovalId: "a_" + rand.Text(), StepId: q.l.step.StepId, SessionId: q.s.id, Host: host, Port: uint32(port),
			Digest: q.s.bindConnection(q.l.step, at), Summary: "connect to " + at + ", for: " + summary(q.l.step), Rule: v.Rule, Decision: v.Decision}
		answer, err := q.hold(ctx, a)
		switch {
		case err != nil:
			return refusal(v.Decision, err.Error())
		case answer.Answer != v1.DecideRequest_allow:
			q.answered[at] = refusal(v.Decision, saysNo(answer))
		case a.Digest != q.s.bindConnection(q.l.step, at): // the policy changed meanwhile: it is asked again
		default:
			if answer.Scope == v1.DecideRequest_always && a.Rule != "" {
				q.s.always(a.Rule)
			}
			if answer.Scope != v1.DecideRequest_once {
				q.s.grantConnection(at)
			}
			q.answered[at] = allowed(v.Decision)
		}
	}
}

// hold puts a question and waits for its answer, which is at the latest that
// nobody answered.
func (q *questions) hold(ctx context.Context, a *v1.Approval) (*v1.DecideRequest, error) {
	now := time.Now()
	a.Asked, a.Expires = timestamppb.New(now), timestamppb.New(now.Add(q.s.x.cfg.ApprovalTTL))
	err := q.s.audit.Add(audit.Question(q.l.step, a))
	if err == nil {
		err = q.s.journal.Ask(a)
	}
	if err == nil {
		err = q.s.event(&v1.Event{StepId: a.StepId, Event: &v1.Event_ApprovalRequested{ApprovalRequested: a}})
	}
	if err != nil {
		return nil, fmt.Errorf("the question could not be recorded: %w", err)
	}
	q.clock(false)
	defer q.clock(true)
	q.s.x.cfg.OnHeld()
	q.l.set(func() { q.l.approval = a })
	over := time.NewTimer(time.Until(a.Expires.AsTime()))
	defer over.Stop()
	own := q.s.own(a, "expiry", "the waiting time was over")
	select {
	case d := <-q.l.answers:
		return d, nil
	case <-over.C:
	case <-ctx.Done():
		own = q.s.own(a, "executor", "the command ended before the answer")
	}
	if _, err := q.s.conclude(a, own); err != nil {
		slog.Error("a question could not be ended", "approval", a.ApprovalId, "err", err)
		q.l.set(func() { q.l.approval = nil })
		return own, nil
	}
	return <-q.l.answers, nil // that one, or one that came at this moment
}

// bindConnection is the digest of a question about a connection.
func (s *session) bindConnection(step *v1.Step, at string) string {
	h := sha256.Sum256(fmt.Appendf(nil, "connect\n%s\n%s\n%s\n", contract.StepDigest(step), s.currentPolicy().Version(), at))
	return "sha256:" + hex.EncodeToString(h[:])
}

func (s *session) grantConnection(at string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.granted["connect "+at] = true
}

func (s *session) grantedConnection(at string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.granted["connect "+at]
}

func saysNo(d *v1.DecideRequest) string {
	switch d.Surface {
	case "expiry":
		return "nobody answered in time"
	case "executor":
		return d.Message
	}
	text := who(d) + " said no"
	if d.Message != "" {
		text += ": " + d.Message
	}
	return text
}

// refusal is what became of an ask.
func refusal(d *v1.Decision, reason string) *v1.Decision {
	d = proto.CloneOf(d)
	d.Verdict, d.Reason = v1.Decision_deny, d.Reason+"; "+reason
	return d
}

func allowed(d *v1.Decision) *v1.Decision {
	d = proto.CloneOf(d)
	d.Verdict = v1.Decision_allow
	return d
}
