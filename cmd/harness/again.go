package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"text/tabwriter"

	"harness/planner/judge"
	"harness/planner/model"
	"harness/planner/session"
	"harness/surface/terminal"
)

// again is what a run does that goes through a past session with another model.
type again struct {
	p     *past
	n     *now
	began *bool // set once there is a session, which keeps its folder
	rest  []string
	check judge.Spec
}

// again has a model go on from the cut, in a session of its own that shares what
// came before, and compares what the two came to.
func (c *replayCmd) again(store *session.Store, p *past, n *now, began *bool) error {
	a := &again{p: p, n: n, began: began}
	a.recall()
	run := &runCmd{policyFlags: c.policyFlags, limitFlags: c.limitFlags, Dir: n.dir, Model: c.Model, again: a}
	ended := run.Run()
	log, err := store.Read(n.id)
	if err != nil || int64(len(log)) <= p.seq {
		return ended
	}
	a.show(sumUp(p.log, p.seq), sumUp(log, p.seq))
	return ended
}

// recall finds the check of the past session, and the messages that came after
// the cut and each began a run.
func (a *again) recall() {
	a.check.Off = true
	fresh := false // a run has begun, and had no message yet
	for _, e := range session.Line(a.p.log) {
		switch e.Type {
		case "session.started":
			var d struct {
				Check, Task   string
				CheckExplicit bool `json:"check_explicit"`
			}
			if json.Unmarshal(e.Data, &d) == nil && (e.Seq <= a.p.seq || a.check.Off) {
				a.check = judge.Spec{Cmd: d.Check, Off: d.Check == "", Explicit: d.CheckExplicit}
			}
			fresh = d.Task != ""
		case "message.user":
			var m model.Message
			if fresh && e.Seq > a.p.seq && json.Unmarshal(e.Data, &m) == nil {
				a.rest = append(a.rest, m.Text)
			}
			fresh = false
		}
	}
}

// session makes the new session.
func (a *again) session(store *session.Store, dir, name string) (*session.Session, error) {
	s, err := store.Fork(a.p.ID, a.p.seq, session.Meta{ID: a.n.id, Workspace: dir, Task: a.p.Task, Model: name})
	*a.began = err == nil
	return s, err
}

// prepare brings the folder to where the past session was at the cut.
func (a *again) prepare(t *seat) error {
	if err := a.n.steps(t.x, a.p, a.p.steps[:a.p.first]); err != nil {
		return err
	}
	if err := a.n.tell(t.s, a.p); err != nil {
		return err
	}
	return t.take(context.Background()) // its events went on since
}

// show is both sides in a table, then the steps and the files in which they differ.
func (a *again) show(was, is sums) {
	fmt.Printf("\nfrom step %d on, %s was and %s is:\n", a.p.first+1, a.p.ID, a.n.id)
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	row := func(name string, was, is any) { fmt.Fprintf(w, "%s\t%v\t%v\n", name, was, is) }
	row("", "WAS", "IS")
	row("model", terminal.Safe(was.model), terminal.Safe(is.model))
	row("verdict", was.verdict, is.verdict)
	row("turns", was.turns, is.turns)
	row("steps", was.steps, is.steps)
	row("tokens", was.tokens, is.tokens)
	row("cost", fmt.Sprintf("$%.4f", was.cost), fmt.Sprintf("$%.4f", is.cost))
	row("time", short(was.wall), short(is.wall))
	row("in steps", short(was.inSteps), short(is.inSteps))
	w.Flush()
	a.calls(was.calls, is.calls)
	for _, path := range slices.Sorted(maps.Keys(union(was.files, is.files))) {
		x, y := was.files[path], is.files[path]
		switch {
		case x == y:
			fmt.Println("same file    ", terminal.Safe(path))
		case y == "":
			fmt.Println("only was     ", terminal.Safe(path))
		case x == "":
			fmt.Println("only is      ", terminal.Safe(path))
		default:
			fmt.Println("other content", terminal.Safe(path))
		}
	}
	fmt.Printf("to go on with it: harness -C %s -r %s\n", a.n.dir, a.n.id)
}

// calls lists the steps of both, from the first one in which they differ.
func (a *again) calls(was, is []*session.Step) {
	r := &rerun{was: a.p.Workspace, now: a.n.dir}
	i := 0
	for ; i < len(was) && i < len(is) && what(was[i]) == what(is[i]); i++ {
		for _, d := range r.compare(was[i].Result, is[i].Result) {
			fmt.Printf("%3d %s: %s\n", a.p.first+i+1, what(was[i]), terminal.Safe(d))
		}
	}
	list := func(word string, steps []*session.Step) {
		for k, s := range steps {
			fmt.Printf("%3d %-3s %-7v %s\n", a.p.first+i+k+1, word, s.Result.GetStatus(), what(s))
		}
	}
	list("was", was[i:])
	list("is", is[i:])
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// note tells the model something in the harness's own words.
func note(s *session.Session, text string) error {
	_, err := s.Append("message.user", model.Message{Role: model.User, Text: text, Harness: true})
	return err
}
