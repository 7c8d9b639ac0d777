package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	v1 "harness/contract/harness/v1"
	"harness/executor"
	"harness/planner/session"
	"harness/surface/terminal"
)

// replayCmd goes through a session again, on a copy of the folder as it was: its
// steps as they were, or another model from one of them on. With a policy and
// neither model nor commit it runs nothing: it says which steps that policy
// would allow, ask for or deny.
type replayCmd struct {
	policyFlags
	limitFlags
	ID    string `arg:"" help:"The session."`
	From  string `help:"Only from this step on, by number or id, with the files as they were before it." placeholder:"STEP"`
	Model string `short:"m" help:"Let a model do it anew from there, in a session of its own." placeholder:"MODEL"`
	Ref   string `help:"On this commit, branch or tag of the folder's repository; the steps before --from run again on it." placeholder:"SHA"`
	Dir   string `short:"C" name:"cd" help:"The folder that stands for the session's, as on another machine." placeholder:"DIR"`
	Keep  bool   `help:"Keep the copy and a session on it, to go on from there."`
}

func (c *replayCmd) Run() error {
	store, err := session.Open(sessionsDir())
	if err != nil {
		return err
	}
	defer store.Close()
	p := &past{}
	if p.Meta, err = store.Get(c.ID); err != nil {
		return &exit{42, fmt.Errorf("session %s: %w", c.ID, err)}
	}
	if p.log, err = store.Read(c.ID); err != nil {
		return err
	}
	for _, s := range session.Steps(p.log) {
		if s.Result != nil {
			p.steps = append(p.steps, s)
		}
	}
	if c.Model == "" && c.Ref == "" && (c.PolicyFile != "" || len(c.Allow)+len(c.Ask)+len(c.Deny) > 0 || c.Auto || c.AskEdits || c.Plan) {
		return c.rejudge(p)
	}
	if err := p.cut(c.From, c.Model != ""); err != nil {
		return err
	}
	n := &now{id: strings.ToLower("replay-" + rand.Text()[:12])}
	if n.dir, n.whole, err = c.base(p); err != nil {
		return err
	}
	n.from = 0
	if n.whole {
		n.from = p.first
	}
	keep := false
	defer func() {
		if !keep {
			os.RemoveAll(filepath.Dir(n.dir))
			executor.Remove(executorDir(), n.id, true)
		}
	}()
	if c.Model != "" {
		return c.again(store, p, n, &keep)
	}
	err = c.rerun(p, n)
	var e *exit
	if c.Keep && (err == nil || errors.As(err, &e)) {
		keep = true
		err = errors.Join(err, n.record(store, p))
	}
	return err
}

// past is a session as it was.
type past struct {
	session.Meta
	log   []session.Event
	steps []*session.Step // those that ended
	first int             // of steps: the first that is gone through again
	seq   int64           // the last event before it
}

// cut finds where a replay begins: before a step, where empty before the first.
// For a model that is before the whole reply that asked for it.
func (p *past) cut(from string, model bool) error {
	began := int64(0)
	if from != "" {
		at, err := findStep(p.steps, from)
		if err != nil {
			return err
		}
		if at.Step != nil {
			began = at.Began
		}
	}
	if !model {
		p.seq = began
		p.first = max(0, slices.IndexFunc(p.steps, func(s *session.Step) bool { return s.Began >= began }))
		return nil
	}
	p.seq = -1
	for _, e := range p.log {
		if e.Type == "turn.started" && (p.seq < 0 || e.Seq < began) {
			p.seq = e.Seq - 1
		}
	}
	if p.seq < 0 {
		return &exit{42, fmt.Errorf("the session %s has no reply of a model", p.ID)}
	}
	for p.first < len(p.steps) && p.steps[p.first].Began <= p.seq {
		p.first++
	}
	return nil
}

// changed is the steps before the cut that changed the folder, and were not
// taken back by the conversation's own way.
func (p *past) changed() (ids []string) {
	for _, s := range p.steps[:p.first] {
		if s.SessionId == p.ID && s.Result.GetChanges().GetTotal() > 0 {
			ids = append(ids, s.StepId)
		}
	}
	return ids
}

// now is the replay of a session.
type now struct {
	id, dir string
	whole   bool // dir has what the steps before the cut changed
	from    int  // of the past's steps: the first that is to run
	notes   []string
}

// base makes the folder of the replay: a commit's, or a copy of the session's.
func (c *replayCmd) base(p *past) (dir string, whole bool, err error) {
	from := p.Workspace
	if c.Dir != "" {
		if from, err = folder(c.Dir); err != nil {
			return "", false, &exit{42, err}
		}
	}
	if _, err := os.Stat(from); err != nil {
		return "", false, &exit{42, fmt.Errorf("the session's folder %s is not here; -C names the one that stands for it", from)}
	}
	if c.Ref != "" {
		dir, err := checkout(from, c.Ref)
		return dir, len(p.changed()) == 0, err
	}
	if dir, err = workFolder(filepath.Base(from)); err != nil {
		return "", false, err
	}
	if whole, err = executor.Materialise(executorDir(), p.ID, from, dir, p.changed()); err != nil {
		return "", false, errors.Join(err, os.RemoveAll(filepath.Dir(dir)))
	}
	return dir, whole, nil
}

// record makes a session of a replay, which begins with all that was said in the
// past one and goes on in the replay's folder.
func (n *now) record(store *session.Store, p *past) error {
	s, err := store.Fork(p.ID, int64(len(p.log)), session.Meta{ID: n.id, Workspace: n.dir, Task: p.Task, Model: p.Model, Verdict: "replayed"})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := n.tell(s, p); err != nil {
		return err
	}
	fmt.Printf("kept; to go on with it: harness -C %s -r %s\n", n.dir, n.id)
	return nil
}

// tell says in the log of a new session where it goes on, and what differs there.
func (n *now) tell(s *session.Session, p *past) error {
	moved := slices.ContainsFunc(s.Events(), func(e session.Event) bool {
		return strings.HasPrefix(e.Type, "message.") && strings.Contains(string(e.Data), p.Workspace)
	})
	if moved && p.Workspace != n.dir {
		n.notes = append([]string{fmt.Sprintf("The project is in %s from here on; where %s stands above, that folder is meant.", n.dir, p.Workspace)}, n.notes...)
	}
	if len(n.notes) == 0 {
		return nil
	}
	return note(s, "["+strings.Join(n.notes, "\n")+"]")
}

// sums is what a stretch of a log comes to.
type sums struct {
	model, verdict       string
	turns, tokens, steps int
	cost                 float64
	wall, inSteps        time.Duration
	calls                []*session.Step
	files                map[string]string // path → what its last change made of it
}

// sumUp adds up the events after seq.
func sumUp(log []session.Event, seq int64) sums {
	s := sums{files: map[string]string{}}
	var began time.Time
	for _, e := range log {
		if e.Seq == seq+1 {
			began = e.Time
		}
		var d struct {
			Model, Verdict string
			StopReason     string `json:"stop_reason"`
			Usage          struct {
				In   int     `json:"input_tokens"`
				Out  int     `json:"output_tokens"`
				Cost float64 `json:"cost_usd"`
			}
		}
		if json.Unmarshal(e.Data, &d) != nil {
			continue
		}
		if e.Type == "session.started" {
			began, s.model = e.Time, d.Model
		}
		if e.Seq <= seq {
			continue
		}
		switch e.Type {
		case "turn.completed":
			s.turns++
			s.tokens += d.Usage.In + d.Usage.Out
			s.cost += d.Usage.Cost
		case "session.completed":
			s.verdict = fmt.Sprintf("%s (%s)", d.Verdict, d.StopReason)
			s.wall += e.Time.Sub(began)
		}
	}
	s.calls = session.Steps(log[seq:])
	s.steps = len(s.calls)
	for _, step := range s.calls {
		s.inSteps += wall(step.Result)
		for _, ch := range step.Result.GetChanges().GetChanges() {
			s.files[ch.Path] = fmt.Sprintf("%v %o %s", ch.Kind, ch.ModeAfter, ch.DigestAfter)
		}
	}
	return s
}

func wall(r *v1.StepResult) time.Duration {
	return time.Duration(r.GetUsage().GetWallMs() * float64(time.Millisecond))
}

// rejudge prints a line for each step, and how many verdicts are other ones.
func (c *replayCmd) rejudge(p *past) error {
	var list []*v1.Step
	var results []*v1.StepResult
	for _, s := range p.steps {
		list, results = append(list, s.Step), append(results, s.Result)
	}
	decisions, err := executor.Rejudge(c.options(p.Workspace), list, results)
	if err != nil {
		return &exit{52, err}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "N\tWAS\tNOW\tRULE\tFROM\tWHAT")
	other := 0
	for i, d := range decisions {
		was := results[i].GetDecision().GetVerdict()
		if was != d.Verdict {
			other++
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", i+1, was, d.Verdict, terminal.Safe(d.Rule), d.Source, what(p.steps[i]))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("%d of %d steps have another verdict\n", other, len(p.steps))
	return nil
}
