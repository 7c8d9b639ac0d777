// Package eval measures: a suite of tasks × models × policies × repeats, each
// cell one run of the whole program, scored by the task's own tests.
//
// A suite is a YAML file:
//
//	name: parsers
//	models: ["anthropic/claude-sonnet-4-5", "recorded:recordings/{task}.jsonl"]
//	policies:                    # default: one, auto
//	  - {name: auto}             # what harness run --auto allows
//	  - {name: strict, auto: false, allow: ["Bash(go test:*)"], file: strict.toml}
//	repeats: 3                   # default 1
//	parallel: 2                  # cells at a time; default 2
//	limits: {turns: 40, time: 20m, tokens: 500000, budget_usd: 1.5}   # of each run
//	check_time: 10m              # of the judging check; default 20m
//	tasks:
//	  - name: ranges
//	    repo: ../parser          # a folder or URL that git clones; ref: a commit, default HEAD
//	    ref: 3f2a91c
//	    statement: Ranges that begin with a blank are refused. Fix it.
//	    check: go test ./...     # proves the run, and judges it afterwards
//	    hidden: {dir: hidden/ranges}
//	  - name: semver
//	    module: github.com/Masterminds/semver/v3@v3.2.0
//	    statement: …
//	    check: go test -run Constraints .
//	    hidden: {module: github.com/Masterminds/semver/v3@v3.2.1, files: [constraints_test.go]}
//	instances:                   # SWE-bench's JSON Lines, as they are
//	  - {file: verified.jsonl, repos: "https://github.com/", check: "python3 -m pytest -rA", only: [django__django-11099]}
//
// Relative paths are from the suite's folder. Hidden tests are not in the
// workspace while the model works: they are put in afterwards, and only then is
// the check run, in a sandbox of its own. Tests that the run changed or added
// are taken back before that.
//
// The package decides what is to be run and what came of it. It starts nothing:
// a Runner does, and the journal remembers.
package eval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Suite is what is to be measured.
type Suite struct {
	Name      string
	Models    []Model
	Policies  []Policy
	Repeats   int
	Parallel  int
	Limits    Limits
	CheckTime time.Duration
	Tasks     []Task
}

// Model is a model as the suite names it, and as harness run takes it: a
// recording's path is from the suite's folder. {task} stands for a task's name in both.
type Model struct{ Name, Use string }

// Policy is what a run may do, as the flags of harness run say it.
type Policy struct {
	Name             string
	File             string `json:",omitempty"`
	Auto, Plan       bool
	Allow, Ask, Deny []string `json:",omitempty"`
}

// Limits of one run; zero is no limit.
type Limits struct {
	Turns, Tokens int
	Time          time.Duration
	BudgetUSD     float64
}

// Task is a problem and how its solution is judged. It has a Repo or a Module.
type Task struct {
	Name       string
	Repo, Ref  string `json:",omitempty"`
	Module     string `json:",omitempty"` // PATH@VERSION, by the module proxy
	Statement  string
	Check      string `json:",omitempty"` // judges; where empty, what TestCommand finds
	OwnCheck   bool   `json:",omitempty"` // the run finds its own check: Check would tell it of hidden tests
	Hidden     Hidden
	FailToPass []string `json:",omitempty"` // tests that must pass afterwards; with none the check's exit code decides
	PassToPass []string `json:",omitempty"` // tests that must not break
}

// Hidden is the tests that the run does not see.
type Hidden struct {
	Dir    string   `json:",omitempty"` // its files are put over the workspace's
	Module string   `json:",omitempty"` // PATH@VERSION that Files are taken from
	Files  []string `json:",omitempty"`
	Patch  string   `json:",omitempty"` // a unified diff
}

// Any says whether there are hidden tests.
func (h Hidden) Any() bool { return h.Dir != "" || h.Module != "" || h.Patch != "" }

// Cell is one run: a task by a model under a policy, for the n-th time.
type Cell struct {
	Task   Task
	Model  string // as the suite names it
	Use    string `json:"-"` // as harness run takes it
	Policy Policy
	Limits Limits
	Repeat int // from 1
}

// Cells are all runs of the suite: all tasks once, before any is repeated.
func (s *Suite) Cells() []Cell {
	var list []Cell
	for n := range s.Repeats {
		for _, t := range s.Tasks {
			for _, m := range s.Models {
				for _, p := range s.Policies {
					list = append(list, Cell{t, m.Name, strings.ReplaceAll(m.Use, "{task}", t.Name), p, s.Limits, n + 1})
				}
			}
		}
	}
	return list
}

var odd = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// ID names the cell, the same for the same work: a task, model, policy or limit
// that changed makes another one. It is fit for a file name.
func (c Cell) ID() string {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // plain fields only
	}
	sum := sha256.Sum256(data)
	name := strings.Trim(odd.ReplaceAllString(c.Task.Name, "-"), "-.")
	return fmt.Sprintf("%.60s-%d-%s", name, c.Repeat, hex.EncodeToString(sum[:5]))
}

// String names the cell for people.
func (c Cell) String() string {
	s := c.Task.Name + " · " + c.Model + " · " + c.Policy.Name
	if c.Repeat > 1 {
		s += fmt.Sprintf(" · #%d", c.Repeat)
	}
	return s
}

// Runner does a cell. An error says that it could not be judged, whatever the model did.
type Runner func(ctx context.Context, c Cell) (Outcome, error)

// Outcome is what came of a cell.
type Outcome struct {
	ID       string    `json:"id"`
	Task     string    `json:"task"`
	Model    string    `json:"model"`
	Policy   string    `json:"policy"`
	Repeat   int       `json:"repeat"`
	Ended    time.Time `json:"ended"`
	Resolved bool      `json:"resolved"`
	// Class is how it went: Resolved, NoChange, TestsRed, Regression, Error, or
	// the stop reason of a run that did not end by itself.
	Class      string   `json:"class"`
	Why        string   `json:"why,omitempty"`         // one line
	Failing    []string `json:"failing,omitempty"`     // tests that should have passed
	Verdict    string   `json:"verdict,omitempty"`     // the run's own
	StopReason string   `json:"stop_reason,omitempty"` // the run's own
	Figures
	JudgeSeconds float64 `json:"judge_seconds"`
	Diff         string  `json:"diff,omitempty"` // what the run changed
}

// Classes of an outcome; the others are stop reasons.
const (
	Resolved   = "resolved"
	NoChange   = "no_change"  // it ended by itself and changed nothing
	TestsRed   = "tests_red"  // it ended by itself, and the tests fail
	Regression = "regression" // what should be mended is, and something else broke
	Error      = "error"      // could not be judged; tried again by a run that goes on
)

// Figures are what a run took.
type Figures struct {
	Turns   int     `json:"turns"`
	Steps   int     `json:"steps"`
	Denied  int     `json:"denied"`
	Tokens  int     `json:"tokens"`
	CostUSD float64 `json:"cost_usd"`
	Seconds float64 `json:"seconds"`
}

// Judge sets what the tests say of a run whose events have been read.
func (o *Outcome) Judge(green bool, failing []string, regression bool) {
	o.Resolved, o.Failing = green, failing
	switch {
	case green:
		o.Class, o.Why = Resolved, ""
	case o.StopReason != "done" && o.StopReason != "":
		o.Class = o.StopReason
	case o.Diff == "":
		o.Class = NoChange
	case regression:
		o.Class = Regression
	default:
		o.Class = TestsRed
	}
}

// Run does all cells that the journal does not have, so many at a time, and
// says in tell when one begins (outcome nil) and has ended. A cell that could
// not be judged is in the journal as such; only the end of ctx and a journal
// that cannot be written end Run early. It returns when every runner has.
func Run(ctx context.Context, cells []Cell, j *Journal, parallel int, run Runner, tell func(Cell, *Outcome)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := slices.DeleteFunc(slices.Clone(cells), func(c Cell) bool { return j.Done(c) })
	next := make(chan Cell)
	go func() {
		defer close(next)
		for _, c := range todo {
			select {
			case next <- c:
			case <-ctx.Done():
				return
			}
		}
	}()
	ended := make(chan struct{})
	for range max(1, parallel) {
		go func() {
			defer func() { ended <- struct{}{} }()
			for c := range next {
				tell(c, nil)
				begin := time.Now()
				o, err := run(ctx, c)
				if ctx.Err() != nil {
					return // what was cut off is no outcome
				}
				if err != nil {
					o.Resolved, o.Class, o.Why = false, Error, err.Error()
				}
				o.ID, o.Task, o.Model, o.Policy, o.Repeat, o.Ended = c.ID(), c.Task.Name, c.Model, c.Policy.Name, c.Repeat, time.Now().UTC().Truncate(time.Millisecond)
				if o.Seconds == 0 {
					o.Seconds = time.Since(begin).Seconds()
				}
				if err := j.Add(o); err != nil {
					cancel(err)
					return
				}
				tell(c, &o)
			}
		}()
	}
	for range max(1, parallel) {
		<-ended
	}
	return context.Cause(ctx)
}
