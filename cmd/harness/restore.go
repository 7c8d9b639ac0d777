package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/planner/model"
	"harness/planner/session"
	"harness/surface/terminal"
)

// which names the session that a command is about.
type which struct {
	Dir     string `short:"C" name:"cd" default:"." help:"The folder." placeholder:"DIR"`
	Session string `help:"The session; default: the folder's last." placeholder:"ID"`
}

type undoCmd struct {
	which
	To     string `help:"This step and all later ones." placeholder:"STEP"`
	All    bool   `help:"The whole session."`
	DryRun bool   `help:"Only list what would change."`
}

func (c *undoCmd) Run() error {
	if c.To != "" && c.All {
		return &exit{2, errors.New("--to and --all exclude one another")}
	}
	return c.restore(map[string]any{"to_step": c.To, "all": c.All, "dry_run": c.DryRun}, "undone", c.DryRun)
}

type redoCmd struct{ which }

func (c *redoCmd) Run() error {
	return c.restore(map[string]any{"redo": true}, "put again", false)
}

type diffCmd struct {
	which
	Step  string   `help:"Only this step." placeholder:"STEP"`
	Paths []string `arg:"" optional:"" help:"Only these paths."`
}

func (c *diffCmd) Run() error {
	_, r, err := c.do(contract.Diff, map[string]any{"step": c.Step, "paths": list(c.Paths)})
	if err == nil {
		(&terminal.Surface{W: os.Stdout}).Diff(r.GetOutput().GetText())
	}
	return err
}

// find is the session's id and folder.
func (w which) find(store *session.Store) (id, dir string, err error) {
	if w.Session != "" {
		m, err := store.Get(w.Session)
		if err != nil {
			return "", "", &exit{42, fmt.Errorf("session %s: %w", w.Session, err)}
		}
		return m.ID, m.Workspace, nil
	}
	if dir, err = folder(w.Dir); err != nil {
		return "", "", &exit{42, err}
	}
	m, err := store.Latest(dir)
	if err != nil {
		return "", "", &exit{42, fmt.Errorf("%s: %w", dir, err)}
	}
	return m.ID, dir, nil
}

// do submits one step to the session's executor.
func (w which) do(action string, args map[string]any) (*session.Session, *v1.StepResult, error) {
	store, err := session.Open(sessionsDir())
	if err != nil {
		return nil, nil, err
	}
	id, dir, err := w.find(store)
	if err != nil {
		return nil, nil, err
	}
	s, err := store.Resume(id)
	if err != nil {
		return nil, nil, err
	}
	x, stop, err := startExecutor(dir, policyFlags{})
	if err != nil {
		return nil, nil, err
	}
	defer stop()
	ctx := context.Background()
	if _, err := open(ctx, x, stop, &v1.OpenRequest{SessionId: id, Planner: version}); err != nil {
		return nil, nil, err
	}
	a, err := structpb.NewStruct(args)
	if err != nil {
		return nil, nil, err
	}
	r, err := x.Submit(ctx, &v1.Step{StepId: "s_" + strings.ToLower(rand.Text()[:12]), SessionId: id, Action: action, Args: a})
	if err != nil {
		return nil, nil, err
	}
	if r.Status != v1.Status_ok && r.Status != v1.Status_conflict {
		return nil, nil, &exit{1, contract.FromProto(r.Error)}
	}
	return s, r, nil
}

func (w which) restore(args map[string]any, done string, dry bool) error {
	s, r, err := w.do(contract.Restore, args)
	if err != nil {
		return err
	}
	said := w.said(r, done, dry)
	if dry {
		return said
	}
	return errors.Join(w.noteFor(s, done), said)
}

// said tells the user what was restored; conflicts are an error.
func (w which) said(r *v1.StepResult, done string, dry bool) error {
	if dry {
		done = "would be " + done
	}
	if steps := strings.Fields(r.GetOutput().GetText()); r.Action == contract.Restore {
		fmt.Printf("%s: %d step(s) %s\n", done, len(steps), strings.Join(steps, " "))
	} else {
		fmt.Printf("%s: %d path(s)\n", done, r.GetChanges().GetTotal())
	}
	for _, c := range r.GetChanges().GetChanges() {
		fmt.Printf("  %-8s %s\n", c.Kind, terminal.Safe(c.Path))
	}
	if n := int(r.GetChanges().GetTotal()) - len(r.GetChanges().GetChanges()); n > 0 {
		fmt.Printf("  … and %d more\n", n)
	}
	for _, note := range r.Notes {
		fmt.Println(" ", terminal.Safe(note))
	}
	for _, c := range r.GetChanges().GetConflicts() {
		fmt.Printf("  conflict %s: %s; left as it is, the other version is %s\n", terminal.Safe(c.Path), terminal.Safe(c.Reason), terminal.Safe(c.Kept))
	}
	if !dry && len(r.GetChanges().GetConflicts()) > 0 {
		return &exit{1, errors.New("some files were left as they are, since somebody else changed them")}
	}
	return nil
}

// noteFor tells the model what was restored, when the session goes on.
func (w which) noteFor(s *session.Session, done string) error {
	_, err := s.Append("message.user", model.Message{Role: model.User,
		Text: fmt.Sprintf("[The user had changes of earlier steps %s. Read files again before you change them.]", done)})
	return err
}
