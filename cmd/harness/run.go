package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/planner"
	"harness/planner/budget"
	"harness/planner/disarm"
	"harness/planner/judge"
	"harness/planner/model"
	"harness/planner/model/providers"
	"harness/planner/session"
	"harness/surface/jsonl"
	"harness/surface/terminal"
)

type runCmd struct {
	policyFlags
	limitFlags
	Task     []string `arg:"" optional:"" help:"The task in plain words; - reads it from standard input."`
	Dir      string   `short:"C" name:"cd" default:"." help:"Work in this folder." placeholder:"DIR"`
	Repo     string   `help:"Work on a repository, in a folder made for it." placeholder:"URL|PATH"`
	Ref      string   `help:"Of --repo: the commit, branch or tag; default: its HEAD." placeholder:"SHA"`
	Model    string   `short:"m" help:"provider/model, as anthropic/claude-sonnet-4-5." placeholder:"MODEL"`
	Image    []string `name:"image" sep:"none" help:"Show the model an image with the task: PNG, JPEG, GIF, WebP; repeatable." placeholder:"FILE"`
	Record   string   `help:"Record the model's replies at the wire, without keys; -m recorded:FILE plays them." placeholder:"FILE"`
	Fallback string   `name:"fallback-model" help:"The model that goes on where the first is out." placeholder:"MODEL"`
	Small    string   `name:"small-model" help:"The model that makes summaries." placeholder:"MODEL"`
	Continue bool     `short:"c" help:"Go on with this folder's last session."`
	Resume   string   `short:"r" help:"Go on with a session; without an ID, at the end of the line, with one of a list." placeholder:"ID"`
	Fork     string   `help:"Begin a session from another one, at its end or at a step." placeholder:"ID[:STEP]"`
	Staged   bool     `help:"Let nothing appear in the folder until harness apply."`
	Check    string   `help:"The command that proves the work." placeholder:"CMD"`
	NoCheck  bool     `help:"Run no check."`
	Executor string   `help:"An executor that is serving, as unix:PATH." placeholder:"URL"`
	Out      string   `short:"o" help:"Write the last message to a file." placeholder:"FILE"`
	Schema   string   `name:"output-schema" help:"The last message must be JSON that fits this JSON Schema." placeholder:"FILE"`
	JSON     bool     `name:"json" help:"Print events, one JSON object a line."`
	Quiet    bool     `short:"q" help:"Only the last message."`
	Yes      bool     `help:"Answer every question of the policy with yes; what is denied stays denied."`

	wanted  *schema     // of the last message
	plan    *demoPlan   // of the demo
	again   *again      // of a replay
	second  model.Model // goes on where the first is out
	third   model.Model // makes summaries
	system  string      // the user's own prompt
	from    string      // the session that this one is a fork of
	without []string    // and its steps that this one leaves out
}

func (c *runCmd) Run() (err error) {
	if c.Repo != "" {
		if c.Dir, err = checkout(c.Repo, c.Ref); err != nil {
			return err
		}
	}
	dir, err := folder(c.Dir)
	if err != nil {
		return &exit{42, err}
	}
	cfg, err := loadConfig(userConfig())
	if err != nil {
		return err
	}
	task, err := c.task()
	if err != nil {
		return err
	}
	limits, err := c.limits(cfg)
	if err != nil {
		return err
	}
	if c.Schema != "" {
		if c.wanted, err = loadSchema(c.Schema); err != nil {
			return err
		}
	}
	if c.Model == "" {
		c.Model = cfg.Model
	}
	if cfg.SystemPrompt != "" {
		text, err := os.ReadFile(cfg.SystemPrompt)
		if err != nil {
			return &exit{52, fmt.Errorf("system_prompt: %w", err)}
		}
		c.system = string(text)
	}
	via, ended, err := c.recorder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ended()) }()
	m, err := providers.ResolveVia(via, c.Model, os.Getenv)
	if err != nil {
		return err
	}
	if closer, ok := m.(io.Closer); ok {
		defer closer.Close()
	}
	for _, o := range []struct {
		flag, set string
		to        *model.Model
	}{{c.Fallback, cfg.FallbackModel, &c.second}, {c.Small, cfg.SmallModel, &c.third}} {
		name := cmp.Or(o.flag, o.set)
		if name == "" {
			continue
		}
		if *o.to, err = providers.ResolveVia(via, name, os.Getenv); err != nil {
			return err
		}
		if closer, ok := (*o.to).(io.Closer); ok {
			defer closer.Close()
		}
	}
	return c.work(dir, task, m, limits, cfg)
}

// goesOn says whether the run has a conversation already.
func (c *runCmd) goesOn() bool {
	return c.Continue || c.Resume != "" || c.Fork != "" || c.again != nil
}

// task is the words of the command line, or standard input.
func (c *runCmd) task() (string, error) {
	task := strings.Join(c.Task, " ")
	piped := !term.IsTerminal(int(os.Stdin.Fd()))
	if task == "-" || task == "" && piped && !c.goesOn() {
		data, err := io.ReadAll(io.LimitReader(os.Stdin, 1<<20))
		if err != nil {
			return "", err
		}
		task = strings.TrimSpace(string(data))
	}
	if task == "" && !c.goesOn() && !c.canTalk() {
		return "", &exit{2, errors.New(`no task: harness "what to do"`)}
	}
	return task, nil
}

// limitFlags are what a run ends at.
type limitFlags struct {
	MaxTurns  int     `help:"Stop after so many turns."`
	MaxTime   string  `help:"Stop after a time, as 20m."`
	MaxTokens int     `help:"Stop after so many tokens."`
	MaxBudget float64 `name:"max-budget-usd" help:"Stop at a cost in USD."`
}

func (c *limitFlags) limits(cfg config) (budget.Limits, error) {
	l := budget.Limits{MaxTurns: c.MaxTurns, MaxTokens: c.MaxTokens, MaxBudgetUSD: c.MaxBudget}
	if l.MaxTurns == 0 {
		l.MaxTurns = cfg.MaxTurns
	}
	if l.MaxBudgetUSD == 0 {
		l.MaxBudgetUSD = cfg.MaxBudgetUSD
	}
	text, from := c.MaxTime, 2
	if text == "" {
		text, from = cfg.MaxTime, 52
	}
	if text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return l, &exit{from, fmt.Errorf("max-time %q is no time, as 20m or 90s", text)}
		}
		l.MaxTime = d
	}
	return l, nil
}

// work runs the task: executor first, then the session, then the planner gives
// up its hands, and only then the model is asked for the first time.
func (c *runCmd) work(dir, task string, m model.Model, limits budget.Limits, cfg config) (err error) {
	var last *os.File
	if c.Out != "" {
		if last, err = os.Create(c.Out); err != nil {
			return &exit{42, err}
		}
		defer last.Close()
	}
	store, err := session.Open(sessionsDir())
	if err != nil {
		return err
	}
	defer store.Close()
	s, err := c.session(store, dir, task, m.Name())
	if err != nil {
		return err
	}
	t := &seat{c: c, dir: dir, m: m, limits: limits, s: s, surface: c.surface()}
	defer func() { t.s.Close() }()
	var stop func() error
	if t.x, stop, err = connect(dir, c.Executor, c.policyFlags); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	t.stop = stop
	if err := t.take(context.Background()); err != nil {
		return err
	}
	c.capabilities(t.opened)
	if t.opened.Staged {
		fmt.Fprintln(os.Stderr, "harness: staged: nothing appears in the folder until harness apply; harness diff shows what is held")
	}
	if !t.opened.MeetsMinimum {
		return &exit{44, errors.New("the sandbox here is below what the policy needs; harness doctor says what is missing")}
	}
	if err := disarm.Disarm(sessionsDir()); err != nil {
		fmt.Fprintln(os.Stderr, "harness: the planner keeps rights that it should not have:", err)
	}
	if t.images, err = images(t.opened.Workspace, c.Image); err != nil {
		return err
	}
	t.check = judge.Spec{Cmd: c.Check, Off: c.NoCheck, Explicit: c.Check != ""}
	if t.check.Cmd == "" && !t.check.Off {
		t.check.Cmd, t.check.Explicit = cfg.Check, cfg.Check != ""
	}
	if c.again != nil {
		t.check = c.again.check
		if err := c.again.prepare(t); err != nil {
			return err
		}
	}
	if c.canTalk() {
		return newTalk(t, store).loop()
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	report, err := t.run(ctx, cancel, c.wanted.ask(task), nil)
	if err == nil && c.wanted != nil && (report.ExitCode == 0 || report.ExitCode == 59) {
		report, err = t.fit(ctx, cancel, c.wanted, report)
	}
	for c.again != nil && len(c.again.rest) > 0 && err == nil && (report.ExitCode == 0 || report.ExitCode == 59) {
		task, c.again.rest = c.again.rest[0], c.again.rest[1:]
		if err = t.take(ctx); err == nil {
			report, err = t.run(ctx, cancel, task, nil)
		}
	}
	if err != nil {
		return err
	}
	if last != nil {
		if _, err := last.WriteString(report.Message + "\n"); err != nil {
			return err
		}
	}
	c.finish(t.surface, s.ID(), report)
	if report.ExitCode != 0 {
		return &exit{report.ExitCode, nil}
	}
	return nil
}

// seat is a session with its executor, ready to run.
type seat struct {
	c       *runCmd
	dir     string
	m       model.Model
	limits  budget.Limits
	check   judge.Spec
	x       contract.Executor
	stop    func() error
	s       *session.Session
	opened  *v1.OpenResponse
	surface session.Surface
	safety  *v1.Safety
	images  []planner.Image // of the next run
}

// take opens the session at the executor.
func (t *seat) take(ctx context.Context) (err error) {
	req := &v1.OpenRequest{SessionId: t.s.ID(), Planner: version, Staged: t.c.Staged, ForkOf: t.c.from, ForkWithout: t.c.without}
	if t.c.Executor == "" {
		req.Workspace = t.dir
	}
	t.opened, err = open(ctx, t.x, t.stop, req)
	return err
}

// run is one run of the planner. Ctrl-C interrupts it, twice ends it.
func (t *seat) run(ctx context.Context, cancel func(), task string, steer <-chan string) (planner.Report, error) {
	interrupt := make(chan struct{}, 1)
	go interrupts(ctx, interrupt, cancel)
	images := t.images
	t.images = nil
	return planner.Run(ctx, planner.Config{Executor: t.x, Model: t.m, Fallback: t.c.second, Small: t.c.third, Session: t.s, Surface: t.surface, Workspace: t.opened.Workspace,
		Task: task, Images: images, Limits: t.limits, Check: t.check, Safety: t.safety, Notes: userNotes(), Above: above(t.dir), Outside: noteFile, System: t.c.system, FromSeq: t.opened.LastSeq + 1, Servers: t.opened.McpServers, Steer: steer, Interrupt: interrupt})
}

func (c *runCmd) session(store *session.Store, dir, task, model string) (*session.Session, error) {
	if c.again != nil {
		return c.again.session(store, dir, model)
	}
	id := c.Resume
	if c.Continue && id == "" {
		m, err := store.Latest(dir)
		if errors.Is(err, session.ErrNone) {
			return nil, &exit{42, fmt.Errorf("there is no session of %s to go on with", dir)}
		}
		if err != nil {
			return nil, err
		}
		id = m.ID
	}
	if c.Fork != "" {
		return c.fork(store, dir, task, model)
	}
	if id == askWhich {
		var err error
		if id, err = choose(store, dir); err != nil {
			return nil, err
		}
	}
	if id == "" {
		return store.Create(session.Meta{Workspace: dir, Task: task, Model: model})
	}
	s, err := store.Resume(id)
	if errors.Is(err, session.ErrNone) {
		return nil, &exit{42, err}
	}
	return s, err
}

// capabilities says what this machine does not enforce, before the first step.
func (c *runCmd) capabilities(o *v1.OpenResponse) {
	for _, k := range o.Capabilities {
		if !k.Enforced {
			fmt.Fprintf(os.Stderr, "harness: not enforced here: %s: %s\n", k.Name, k.Detail)
		}
	}
}

func (c *runCmd) surface() session.Surface {
	if c.JSON {
		return &jsonl.Surface{W: os.Stdout, Yes: c.Yes}
	}
	out := os.Stderr
	s := &terminal.Surface{W: out, Quiet: c.Quiet, Yes: c.Yes,
		Colour: term.IsTerminal(int(out.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(out.Fd())) {
		s.In = bufio.NewReader(os.Stdin)
	}
	return s
}

// finish shows the diff, what the tests went through, and how to undo.
func (c *runCmd) finish(s session.Surface, id string, r planner.Report) {
	t, ok := s.(*terminal.Surface)
	if !ok {
		return
	}
	if !c.Quiet {
		if r.Diff != "" {
			fmt.Fprintln(os.Stderr, "\nwhat changed:")
			t.Diff(r.Diff)
		}
		for _, change := range r.TestChanges {
			fmt.Fprintln(os.Stderr, "look at this test:", terminal.Safe(change))
		}
		fmt.Fprintf(os.Stderr, "\n%s (%s) · %d turns, %d steps, %d tokens, $%.4f · session %s\n", r.Verdict, r.StopReason, r.Turns, r.Steps,
			r.Usage.InputTokens+r.Usage.OutputTokens, r.CostUSD, id)
		if r.Diff != "" {
			fmt.Fprintf(os.Stderr, "to take it back: %s\n", c.undoHint(id))
		}
	}
	if c.Quiet || !term.IsTerminal(int(os.Stdout.Fd())) || !term.IsTerminal(int(os.Stderr.Fd())) { // else it has been shown as it came
		fmt.Println(terminal.Safe(r.Message))
	}
}

func (c *runCmd) undoHint(id string) string {
	if c.plan != nil {
		return c.plan.undo
	}
	return "harness undo --all --session " + id
}

// interrupts: the first Ctrl-C ends what is going on, a second one within two seconds the run.
func interrupts(ctx context.Context, interrupt chan<- struct{}, cancel func()) {
	sig := make(chan os.Signal, 2)
	signal.Notify(sig, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(sig)
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-sig:
			if s == syscall.SIGTERM || time.Since(last) < 2*time.Second {
				cancel()
				return
			}
			last = time.Now()
			select {
			case interrupt <- struct{}{}:
			default:
			}
		}
	}
}
