// Package planner is the side that thinks: it owns the model, the conversation
// and the decision what to do next, and has no hands. Run takes a task, turns
// the model's calls into steps, gives them to an executor, and goes round until
// the project's own check is green or a limit ends it. All that happens is in
// the session's log before it is acted upon.
package planner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/planner/budget"
	"harness/planner/judge"
	"harness/planner/model"
	"harness/planner/session"
	"harness/planner/view"
)

// Config is one run. Executor, Model, Session and Surface are needed.
type Config struct {
	Executor  contract.Executor // the session is open there
	Model     model.Model
	Session   *session.Session
	Surface   session.Surface
	Workspace string
	Task      string
	Limits    budget.Limits
	Check     judge.Spec
	Safety    *v1.Safety // of every step; can only narrow
	Notes     string     // the user's own
	// Above are the folders of the repository above the workspace, the outermost
	// first, whose notes count too; Outside reads a file there.
	Above     []string
	Outside   func(path string) (string, error)
	Images    []Image         // shown with the task
	System    string          // the user's system prompt in the place of prompt.md
	FromSeq   uint64          // the first event of the session that this run may cause
	Small     model.Model     // makes summaries; nil: Model does
	Fallback  model.Model     // goes on where Model is out; may be nil
	Servers   []string        // MCP servers of the executor, as Open names them
	Steer     <-chan string   // messages typed while it works
	Interrupt <-chan struct{} // ends what is going on now, not the run
}

// Report is how a run ended.
type Report struct {
	Verdict    string      `json:"verdict"`
	StopReason string      `json:"stop_reason"`
	Diff       string      `json:"diff"`
	Message    string      `json:"message"`
	ExitCode   int         `json:"exit_code"`
	Usage      model.Usage `json:"usage"`
	CostUSD    float64     `json:"cost_usd"`
	Turns      int         `json:"turns"`
	Steps      int         `json:"steps"`
	// TestChanges names tests that were changed, deleted or skipped.
	TestChanges []string `json:"test_changes,omitempty"`
}

// run is the state of one Run.
type run struct {
	Config
	ctx         context.Context
	view        *view.View
	system      string
	tools       []model.Tool
	mcp         map[string]*v1.McpTool // those of them that are of MCP servers
	spent       budget.Spent
	warned      map[budget.Reason]bool
	changed     bool // since the last green check
	everChanged bool
	rounds      int // red checks so far
	repeats     repeats
	denials     int // since the last change
	facts       facts
	refused     map[string]int    // denied call → how often it was made
	odd         int               // replies in a row that were empty or cut
	tests       map[string]string // path → what happened to it
	made        map[string]bool   // files that this session created
	last        string
	seen        atomic.Uint64 // the executor's last event that the surface was told of
}

// stop ends a run with a reason of its own.
type stop struct {
	reason string
	exit   int
	text   string
}

func (s *stop) Error() string { return s.reason + ": " + s.text }

// Run works on a task until it is done or stopped. The error is one of the
// planner's own, such as a log that cannot be written; how the task ended is in the report.
func Run(ctx context.Context, c Config) (Report, error) {
	r := &run{Config: c, ctx: ctx, tools: tools(), facts: facts{files: map[string]string{}}, warned: map[budget.Reason]bool{}, tests: map[string]string{}, made: map[string]bool{}, refused: map[string]int{}}
	r.spent.Began = time.Now()
	if c.Limits.MaxTime > 0 {
		var cancel context.CancelFunc
		r.ctx, cancel = context.WithTimeoutCause(ctx, c.Limits.MaxTime, &stop{string(budget.TimeLimit), 56, c.Limits.MaxTime.String()})
		defer cancel()
	}
	err := r.start()
	if err == nil {
		watch := r.watch()
		err = r.loop()
		watch()
	}
	return r.end(err)
}

// loop is one turn after another.
func (r *run) loop() error {
	for {
		if err := r.limits(); err != nil {
			return err
		}
		if err := r.steer(); err != nil {
			return err
		}
		if err := r.fit(); err != nil {
			return err
		}
		reply, err := r.turn()
		if err != nil {
			return err
		}
		if reply == nil { // it had no use, and the model was told so
			continue
		}
		if len(reply.Message.Calls) > 0 {
			if err := r.act(reply.Message.Calls, reply.Stop == model.MaxTokens); err != nil {
				return err
			}
			continue
		}
		r.last = reply.Message.Text
		if len(r.Steer) > 0 { // what was typed meanwhile comes before the end
			continue
		}
		done, err := r.judge()
		if err != nil || done {
			return err
		}
	}
}

// start gives the model the task, in a new session, or what the log holds and the new message.
func (r *run) start() error {
	if err := r.find(); err != nil {
		return err
	}
	if err := r.serverTools(); err != nil {
		return err
	}
	r.view = view.New(r.Model.Info().ContextWindow, len(r.system)+sizeOf(r.tools))
	if err := r.resume(); err != nil {
		return err
	}
	if err := r.emit("session.started", map[string]any{"session_id": r.Session.ID(), "workspace": r.Workspace, "model": r.Model.Name(),
		"task": r.Task, "check": r.Check.Cmd, "check_explicit": r.Check.Explicit, "prompt": r.promptVersion()}); err != nil {
		return err
	}
	if r.Task == "" {
		return nil
	}
	images, err := r.attached()
	if err != nil {
		return err
	}
	return r.say(model.Message{Role: model.User, Text: r.Task, Images: images})
}

// say puts a message into the log and the view.
func (r *run) say(m model.Message) error {
	if err := r.emit("message."+string(m.Role), m); err != nil {
		return err
	}
	r.view.Add(m)
	return nil
}

// tell is say in the harness's own words, which are not a person's.
func (r *run) tell(text string) error {
	return r.say(model.Message{Role: model.User, Text: text, Harness: true})
}

// emit logs an event, then shows it.
func (r *run) emit(typ string, data any) error {
	e, err := r.Session.Append(typ, data)
	if err != nil {
		return err
	}
	r.Surface.Event(e)
	return nil
}

func (r *run) limits() error {
	if reason, text := r.Limits.Struck(r.spent); reason != "" {
		return limit(reason, text)
	}
	for reason, text := range r.Limits.Near(r.spent) {
		if !r.warned[reason] {
			r.warned[reason] = true
			if err := r.emit("warning", map[string]any{"message": "80 % of a limit are used: " + text}); err != nil {
				return err
			}
		}
	}
	return nil
}

// limit ends the run at a limit.
func limit(reason budget.Reason, text string) *stop {
	exit := map[budget.Reason]int{budget.TimeLimit: 56, budget.TokenLimit: 57, budget.BudgetLimit: 57}[reason]
	if exit == 0 {
		exit = 53
	}
	return &stop{string(reason), exit, text}
}

// steer takes what the user typed meanwhile into the conversation.
func (r *run) steer() error {
	for {
		select {
		case text := <-r.Steer:
			if err := r.say(model.Message{Role: model.User, Text: text}); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// end makes the report, and closes the log of this run.
func (r *run) end(err error) (Report, error) {
	rep := Report{Verdict: judge.Unproven, StopReason: "done", Message: r.last, ExitCode: 59,
		Usage: r.spent.Usage, CostUSD: r.spent.CostUSD, Turns: r.spent.Turns, Steps: r.spent.Steps}
	var s *stop
	var p *proven
	switch {
	case errors.As(err, &p):
		rep.Verdict, rep.ExitCode = judge.Proven, 0
	case errors.As(err, &s):
		rep.StopReason, rep.ExitCode = s.reason, s.exit
		if s.reason == "check_red" {
			rep.Verdict = judge.Red
		}
		if rep.Message == "" {
			rep.Message = s.text
		}
	case errors.Is(err, context.Canceled):
		rep.StopReason, rep.ExitCode = "interrupted", 130
	case err != nil:
		rep.StopReason, rep.ExitCode = "error", 1
		r.emit("error", map[string]any{"message": err.Error()})
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), 30*time.Second)
	defer cancel()
	if r.everChanged || len(r.tests) > 0 {
		if res, derr := r.Executor.Submit(ctx, r.step(contract.Diff, nil)); derr == nil && res.Status == v1.Status_ok {
			rep.Diff = res.GetOutput().GetText()
		}
	}
	for _, path := range sortedKeys(r.tests) {
		rep.TestChanges = append(rep.TestChanges, r.tests[path]+" "+path)
	}
	for _, line := range judge.Skips(rep.Diff) {
		rep.TestChanges = append(rep.TestChanges, "skips a test: "+line)
	}
	uerr := r.Session.Update(func(m *session.Meta) {
		m.Verdict, m.StopReason, m.Model = rep.Verdict, rep.StopReason, r.Model.Name()
		m.Turns += rep.Turns
		m.Steps += rep.Steps
		m.CostUSD += rep.CostUSD
	})
	eerr := r.emit("session.completed", rep)
	if s != nil || p != nil || errors.Is(err, context.Canceled) {
		err = nil
	}
	return rep, errors.Join(err, uerr, eerr)
}

// proven ends the loop: the check is green.
type proven struct{}

func (*proven) Error() string { return "proven" }

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("planner: %v", err))
	}
	return b
}
