package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"golang.org/x/term"
	"google.golang.org/protobuf/types/known/structpb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/planner/model/providers"
	"harness/planner/session"
	"harness/surface/terminal"
)

// talk is the interactive program: one message after another in one session,
// commands with a slash, and !commands of the person's own.
type talk struct {
	*seat
	store *session.Store
	keys  *terminal.Keyboard
	ui    *asking
	notes []string // what the person did meanwhile, for the model
}

// asking is the surface, which knows whether a question is open.
type asking struct {
	*terminal.Surface
	open    atomic.Int32
	answers io.Writer
}

func (a *asking) Ask(ctx context.Context, p *v1.Approval) (*v1.DecideRequest, error) {
	a.open.Add(1)
	defer a.open.Add(-1)
	return a.Surface.Ask(ctx, p)
}

func (a *asking) Question(ctx context.Context, text string) (string, error) {
	a.open.Add(1)
	defer a.open.Add(-1)
	return a.Surface.Question(ctx, text)
}

// canTalk is whether a person sits at both ends.
func (c *runCmd) canTalk() bool {
	return !c.JSON && !c.Quiet && c.Out == "" && c.Schema == "" && c.plan == nil && len(c.Task) == 0 && !c.goesOn() &&
		term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd()))
}

func newTalk(s *seat, store *session.Store) *talk {
	answers, typed := io.Pipe()
	ui := &asking{Surface: s.surface.(*terminal.Surface), answers: typed}
	ui.In = bufio.NewReader(answers)
	s.surface = ui
	return &talk{seat: s, store: store, keys: terminal.NewKeyboard(os.Stdin, os.Stderr), ui: ui}
}

// say shows a line of the program's own.
func say(format string, a ...any) { fmt.Fprintln(os.Stderr, terminal.Safe(fmt.Sprintf(format, a...))) }

func (t *talk) loop() error {
	say("%s · %s · %s\n/help says what there is; Ctrl-C ends what runs, Ctrl-D leaves", version, t.m.Name(), t.opened.Workspace)
	for {
		text, err := t.keys.Message()
		if errors.Is(err, io.EOF) {
			say("go on later with: harness -r %s", t.s.ID())
			return nil
		}
		if err != nil {
			return err
		}
		switch text = strings.TrimSpace(text); {
		case text == "":
			continue
		case text == "/quit" || text == "/exit":
			return nil
		case strings.HasPrefix(text, "/"):
			err = t.command(text)
		case strings.HasPrefix(text, "!"):
			err = t.own(strings.TrimSpace(text[1:]))
		default:
			err = t.message(text)
		}
		if err != nil {
			say("harness: %v", err)
		}
	}
}

// message is one run of the planner. What is typed meanwhile steers it, or
// answers what it asks.
func (t *talk) message(text string) error {
	if len(t.notes) > 0 {
		text = strings.Join(t.notes, "\n") + "\n\n" + text
		t.notes = nil
	}
	if err := t.take(context.Background()); err != nil { // its events went on since
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	steer := make(chan string, 16)
	typed := make(chan struct{})
	go func() {
		defer close(typed)
		t.keys.Lines(ctx, func(line string) {
			switch {
			case t.ui.open.Load() > 0:
				fmt.Fprintln(t.ui.answers, line)
			case strings.TrimSpace(line) != "":
				select {
				case steer <- line:
					say("  (the model reads this next)")
				default:
				}
			}
		})
	}()
	report, err := t.run(ctx, cancel, text, steer)
	cancel()
	<-typed
	if err != nil {
		return err
	}
	t.c.finish(t.ui.Surface, t.s.ID(), report)
	return nil
}

// own runs a command of the person's, under the same policy, and keeps what it
// came to for the model.
func (t *talk) own(cmd string) error {
	if cmd == "" {
		return errors.New("no command stands after the exclamation mark")
	}
	r, err := t.step(contract.RunCommand, map[string]any{"cmd": cmd})
	if err != nil {
		return err
	}
	fmt.Fprint(os.Stderr, terminal.Safe(r.GetOutput().GetText()))
	if r.Status != v1.Status_ok {
		say("  → %s: %s", strings.ReplaceAll(r.Status.String(), "_", " "), r.GetError().GetMessage())
	}
	out := r.GetOutput().GetText()
	t.notes = append(t.notes, fmt.Sprintf("[The user ran `%s`: %s, exit code %d]\n%s", cmd, r.Status, r.GetExitCode(), out[:min(len(out), 4000)]))
	return nil
}

// step submits one step of the person's and asks where the policy does.
func (t *talk) step(action string, args map[string]any) (*v1.StepResult, error) {
	a, err := structpb.NewStruct(args)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	interrupt := make(chan struct{}, 1)
	go interrupts(ctx, interrupt, cancel)
	step := &v1.Step{StepId: "u_" + strings.ToLower(rand.Text()[:16]), SessionId: t.s.ID(), Action: action, Args: a}
	go func() {
		select {
		case <-interrupt:
			stop, err := structpb.NewStruct(map[string]any{"target": step.StepId})
			if err == nil {
				t.x.Submit(ctx, &v1.Step{StepId: step.StepId + "_c", SessionId: t.s.ID(), Action: contract.CancelStep, Args: stop})
			}
		case <-ctx.Done():
		}
	}()
	r, err := t.x.Submit(ctx, step)
	for err == nil && r.Status == v1.Status_awaiting_approval {
		if err = t.decide(ctx, r.Approval); err == nil {
			r, err = t.x.Submit(ctx, step)
		}
	}
	return r, err
}

func (t *talk) decide(ctx context.Context, a *v1.Approval) error {
	lines, stop := context.WithCancel(ctx)
	typed := make(chan struct{})
	go func() {
		defer close(typed)
		t.keys.Lines(lines, func(line string) { fmt.Fprintln(t.ui.answers, line) })
	}()
	d, err := t.ui.Ask(ctx, a)
	stop()
	<-typed
	if err != nil {
		return err
	}
	d.SessionId, d.ApprovalId, d.Digest = a.SessionId, a.ApprovalId, a.Digest
	_, err = t.x.Decide(ctx, d)
	return err
}

// commands are what may stand behind a slash.
var commands = []struct {
	name, args, help string
	do               func(t *talk, arg string) error
}{
	{"undo", "[STEP]", "take back the last step, or STEP and all later ones", func(t *talk, arg string) error {
		return t.restore(map[string]any{"to_step": arg}, "The user took back")
	}},
	{"redo", "", "put the last undone step again", func(t *talk, _ string) error {
		return t.restore(map[string]any{"redo": true}, "The user put again")
	}},
	{"diff", "[STEP]", "what the session changed, or one step", func(t *talk, arg string) error {
		r, err := t.step(contract.Diff, map[string]any{"step": arg})
		if err == nil {
			t.ui.Diff(r.GetOutput().GetText())
		}
		return err
	}},
	{"status", "", "the session, its model, what it used", func(t *talk, _ string) error {
		m := t.s.Meta()
		say("session %s · %s · %s\n%d turns, %d steps, $%.4f · last: %s %s", m.ID, t.m.Name(), m.Workspace, m.Turns, m.Steps, m.CostUSD, m.Verdict, m.StopReason)
		return nil
	}},
	{"cost", "", "what was spent", func(t *talk, _ string) error {
		say("$%.4f in %d turns", t.s.Meta().CostUSD, t.s.Meta().Turns)
		return nil
	}},
	{"model", "[NAME]", "the model, or another one from the next message on", func(t *talk, arg string) error {
		if arg == "" {
			say("%s", t.m.Name())
			return nil
		}
		m, err := providers.Resolve(arg, os.Getenv)
		if err != nil {
			return err
		}
		t.m = m
		say("%s from the next message on", m.Name())
		return nil
	}},
	{"plan", "", "reads only, until /plan again", func(t *talk, _ string) error {
		if t.safety == nil {
			t.safety = &v1.Safety{Writes: v1.Safety_none}
			say("reads only; /plan again lets it work")
			return nil
		}
		t.safety = nil
		say("it may work again")
		return nil
	}},
	{"permissions", "", "where the rules come from", func(t *talk, _ string) error {
		say("%s", strings.Join(t.opened.Policy, "\n"))
		return nil
	}},
	{"sandbox", "", "what is enforced", func(t *talk, _ string) error {
		say("%s", t.opened.Rung)
		for _, k := range t.opened.Capabilities {
			mark := "yes"
			if !k.Enforced {
				mark = "NO "
			}
			say("  %s  %-18s %s", mark, k.Name, k.Detail)
		}
		return nil
	}},
	{"clear", "", "begin a new session", func(t *talk, _ string) error { return t.sit("") }},
	{"resume", "[ID]", "go on with another session; without ID a list", func(t *talk, arg string) error {
		if arg != "" {
			return t.sit(arg)
		}
		return t.list()
	}},
}

func (t *talk) command(text string) error {
	name, arg, _ := strings.Cut(text[1:], " ")
	if name == "help" || name == "?" {
		for _, c := range commands {
			say("  /%-20s %s", strings.TrimSpace(c.name+" "+c.args), c.help)
		}
		say("  %-21s %s\n  %-21s %s\nwhat you type while it works is read by the model next", "!COMMAND", "run a command yourself", "/quit, Ctrl-D", "leave")
		return nil
	}
	for _, c := range commands {
		if c.name == name {
			return c.do(t, strings.TrimSpace(arg))
		}
	}
	return fmt.Errorf("there is no /%s; /help lists what there is", name)
}

func (t *talk) restore(args map[string]any, what string) error {
	r, err := t.step(contract.Restore, args)
	if err != nil {
		return err
	}
	if r.Status != v1.Status_ok && r.Status != v1.Status_conflict {
		return contract.FromProto(r.Error)
	}
	var paths []string
	for _, c := range r.GetChanges().GetChanges() {
		say("  %s %s", c.Kind, c.Path)
		paths = append(paths, c.Path)
	}
	for _, c := range r.GetChanges().GetConflicts() {
		say("  conflict: %s: %s", c.Path, c.Reason)
	}
	t.notes = append(t.notes, fmt.Sprintf("[%s changes to: %s. Read these files again before you change them.]", what, strings.Join(paths, ", ")))
	return nil
}

// sit changes to another session, a new one for "".
func (t *talk) sit(id string) error {
	var next *session.Session
	var err error
	if id == "" {
		next, err = t.store.Create(session.Meta{Workspace: t.dir, Model: t.m.Name()})
	} else {
		next, err = t.store.Resume(id)
	}
	if err != nil {
		return err
	}
	was, opened := t.s, t.opened
	t.s = next
	if err := t.take(context.Background()); err != nil {
		t.s, t.opened = was, opened
		return errors.Join(err, next.Close())
	}
	t.notes = nil
	say("session %s", next.ID())
	return errors.Join(t.x.Close(context.Background(), &v1.CloseRequest{SessionId: was.ID()}), was.Close())
}

func (t *talk) list() error {
	all, err := t.store.List()
	if err != nil {
		return err
	}
	n := 0
	for _, m := range all {
		if m.Workspace == t.dir && n < 20 {
			n++
			say("  %s  %s  %s", m.ID, m.Updated.Format("2006-01-02 15:04"), oneLine(m.Task))
		}
	}
	say("/resume ID goes on with one")
	return nil
}
