package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"google.golang.org/protobuf/types/known/timestamppb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor"
	"harness/executor/approval"
	"harness/surface/terminal"
)

// approvers is the public keys of those who may answer from other machines, one
// a line in the administrator's file and in the user's.
func approvers() (keys []string) {
	for _, file := range []string{"/etc/harness/approvers", filepath.Join(configDir(), "approvers")} {
		if data, err := os.ReadFile(file); err == nil {
			keys = append(keys, approval.Keys(string(data))...)
		}
	}
	return keys
}

type approvalsCmd struct {
	List  approvalsList  `cmd:"" default:"withargs" help:"The steps that wait for an answer."`
	Serve approvalsServe `cmd:"" help:"Take signed answers over HTTP."`
	Key   approvalsKey   `cmd:"" help:"Make the key of an approver: the private one into a file, the public one to print."`
}

// far is how a command reaches the questions of another machine.
type far struct {
	URL string `name:"url" help:"The machine that acts, where harness approvals serve runs." placeholder:"http://HOST:PORT"`
	Key string `help:"The file with the approver's private key." placeholder:"FILE"`
}

type approvalsList struct {
	far
	JSON bool `name:"json" help:"As JSON, one a line."`
}

func (c *approvalsList) Run() error {
	list, err := c.waiting()
	if err != nil {
		return err
	}
	if c.JSON {
		for _, a := range list {
			b, err := contract.MarshalJSON(a)
			if err != nil {
				return err
			}
			fmt.Println(string(b))
		}
		return nil
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "APPROVAL\tSESSION\tASKED\tEXPIRES\tWHAT\tWHY")
	for _, a := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", a.ApprovalId, a.SessionId, clock(a.Asked), clock(a.Expires),
			oneLine(a.Summary), oneLine(a.GetDecision().GetReason()))
	}
	return w.Flush()
}

func clock(t *timestamppb.Timestamp) string { return t.AsTime().Local().Format("15:04:05") }

func oneLine(text string) string {
	r := []rune(strings.ReplaceAll(terminal.Safe(text), "\n", "⏎"))
	if len(r) > 80 {
		r = append(r[:80], '…')
	}
	return string(r)
}

func (f far) waiting() ([]*v1.Approval, error) {
	if f.URL == "" {
		return executor.Waiting(executorDir())
	}
	c, err := f.client()
	if err != nil {
		return nil, err
	}
	return c.Waiting(context.Background())
}

// client reaches another machine.
func (f far) client() (*approval.Client, error) {
	if f.Key == "" {
		return nil, &exit{2, errors.New("--url needs --key: an answer from another machine is signed")}
	}
	key, err := os.ReadFile(f.Key)
	if err != nil {
		return nil, &exit{42, err}
	}
	return &approval.Client{URL: f.URL, Key: string(key)}, nil
}

type approveCmd struct {
	far
	ID    string `arg:"" help:"The approval; its beginning is enough."`
	Word  string `arg:"" optional:"" help:"A word for the model."`
	Scope string `name:"for" enum:"once,session,always" default:"once" help:"once, session, or always, which saves the rule that the question names."`
}

func (c *approveCmd) Run() error {
	return c.decide(c.ID, &v1.DecideRequest{Answer: v1.DecideRequest_allow, Message: c.Word, Scope: v1.DecideRequest_Scope(v1.DecideRequest_Scope_value[c.Scope])})
}

type denyCmd struct {
	far
	ID   string `arg:"" help:"The approval; its beginning is enough."`
	Word string `arg:"" optional:"" help:"A word for the model."`
}

func (c *denyCmd) Run() error {
	return c.decide(c.ID, &v1.DecideRequest{Answer: v1.DecideRequest_deny, Message: c.Word})
}

func (f far) decide(id string, d *v1.DecideRequest) error {
	list, err := f.waiting()
	if err != nil {
		return err
	}
	var a *v1.Approval
	for _, q := range list {
		if !strings.HasPrefix(q.ApprovalId, id) {
			continue
		}
		if a != nil {
			return &exit{42, fmt.Errorf("%s is the beginning of more than one: harness approvals lists them", id)}
		}
		a = q
	}
	if a == nil {
		return &exit{42, fmt.Errorf("no step waits under %s: it has its answer, or harness approvals lists others", id)}
	}
	d.SessionId, d.ApprovalId, d.Digest, d.Surface = a.SessionId, a.ApprovalId, a.Digest, "command line"
	if u, err := user.Current(); err == nil {
		d.Approver = u.Username
	}
	r, err := f.send(d)
	if err != nil {
		return err
	}
	if !r.Accepted {
		return fmt.Errorf("%s was first (%s): %s", r.Decided.Approver, r.Decided.Surface, r.Decided.Answer)
	}
	fmt.Printf("%s: %s\n", d.Answer, oneLine(a.Summary))
	return nil
}

func (f far) send(d *v1.DecideRequest) (*v1.DecideResponse, error) {
	if f.URL == "" {
		return answer(context.Background(), d)
	}
	c, err := f.client()
	if err != nil {
		return nil, err
	}
	return c.Decide(context.Background(), d)
}

type approvalsKey struct {
	Name string `arg:"" help:"The approver's name."`
	File string `arg:"" help:"The file for the private key; it must not exist."`
}

func (c *approvalsKey) Run() error {
	private, public, err := approval.NewKey(c.Name)
	if err != nil {
		return &exit{42, err}
	}
	f, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return &exit{42, err}
	}
	if _, err = f.WriteString(private + "\n"); err == nil {
		fmt.Println(public)
	}
	return errors.Join(err, f.Close())
}
