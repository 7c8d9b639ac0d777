package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"harness/executor"
	"harness/executor/mcp"
	"harness/executor/policy"
	"harness/transport/socket"
)

// policyFlags are the flags that say what an executor allows; a planner's
// process passes them on to its child.
type policyFlags struct {
	PolicyFile string   `name:"policy" help:"A policy file." placeholder:"FILE"`
	Allow      []string `sep:"none" help:"Allow a rule, as 'Bash(make:*)'." placeholder:"RULE"`
	Ask        []string `sep:"none" help:"Ask for a rule." placeholder:"RULE"`
	Deny       []string `sep:"none" help:"Deny a rule." placeholder:"RULE"`
	Auto       bool     `help:"Run what no rule names where the sandbox enforces all."`
	AskEdits   bool     `help:"Ask before edits too."`
	Plan       bool     `help:"Reads only."`
	Sandbox    string   `default:"auto" enum:"auto,namespaces,landlock,none" help:"The sandbox: auto (the best that is to be had), namespaces, landlock, or none, which the admin's policy must permit."`
	AllowAll   bool     `help:"Ask nothing: run all that no rule denies. The admin's policy must permit it."`
}

func (f policyFlags) args() []string {
	var a []string
	if f.PolicyFile != "" {
		if abs, err := filepath.Abs(f.PolicyFile); err == nil {
			f.PolicyFile = abs
		}
		a = append(a, "--policy="+f.PolicyFile)
	}
	for flag, rules := range map[string][]string{"--allow=": f.Allow, "--ask=": f.Ask, "--deny=": f.Deny} {
		for _, r := range rules {
			a = append(a, flag+r)
		}
	}
	for flag, on := range map[string]bool{"--auto": f.Auto, "--ask-edits": f.AskEdits, "--plan": f.Plan, "--allow-all": f.AllowAll} {
		if on {
			a = append(a, flag)
		}
	}
	if f.Sandbox != "" {
		a = append(a, "--sandbox="+f.Sandbox)
	}
	return a
}

func (f policyFlags) options(workspace string) policy.Options {
	admin := []string{"/etc/harness/policy.toml"}
	more, _ := filepath.Glob("/etc/harness/policy.d/*.toml")
	return policy.Options{AdminFiles: append(admin, more...), UserFile: userConfig(), ProjectFile: trustedConfig(workspace),
		PolicyFile: f.PolicyFile, Allow: f.Allow, Ask: f.Ask, Deny: f.Deny, Auto: f.Auto, AskEdits: f.AskEdits, Plan: f.Plan, AllowAll: f.AllowAll, Workspace: workspace}
}

type executorCmd struct {
	policyFlags
	Workspace string `short:"C" name:"cd" default:"." help:"The folder that steps work on."`
	Fd        int    `hidden:"" default:"-1" help:"Serve one connection on this descriptor."`
	Listen    string `help:"Serve on unix:PATH." placeholder:"unix:PATH"`
	Signed    bool   `name:"signed-answers" help:"Take only answers that an approver signed."`
}

func (c *executorCmd) Run() error {
	dir, err := folder(c.Workspace)
	if err != nil {
		return &exit{42, err}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	var answers answerDoor
	defer answers.close()
	servers, err := mcp.Load(filepath.Join(configDir(), "mcp.json"))
	if err != nil {
		return &exit{52, err}
	}
	x, err := executor.New(executor.Config{Workspace: dir, State: executorDir(), Sandbox: c.Sandbox, Policy: c.options(dir), Hide: []string{stateDir(), configDir()},
		Servers: servers, Approvers: approvers(), SignedAnswers: c.Signed, OnHeld: func() { answers.open(ctx) }})
	if err != nil {
		return &exit{52, err}
	}
	answers.x = x
	switch path, unix := strings.CutPrefix(c.Listen, "unix:"); {
	case c.Fd >= 0:
		signal.Ignore(os.Interrupt) // the planner decides what Ctrl-C means
		var conn net.Conn
		if conn, err = connOf(c.Fd); err == nil {
			err = socket.ServeConn(ctx, conn, x)
		}
	case unix && path != "":
		err = listenUnix(ctx, path, x)
	default:
		err = &exit{2, errors.New("executor: --listen unix:PATH says where to serve")}
	}
	return errors.Join(err, x.Shutdown())
}

func connOf(fd int) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "planner")
	if f == nil {
		return nil, fmt.Errorf("descriptor %d is not open", fd)
	}
	defer f.Close()
	return net.FileConn(f)
}

// listenUnix serves on a socket that only this user may open.
func listenUnix(ctx context.Context, path string, x *executor.Executor) error {
	if conn, err := net.Dial("unix", path); err == nil {
		return errors.Join(fmt.Errorf("another program serves on %s", path), conn.Close())
	} else if info, serr := os.Lstat(path); serr == nil && info.Mode()&os.ModeSocket != 0 {
		os.Remove(path) // nobody is behind it: a kill left it
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return errors.Join(err, ln.Close())
	}
	fmt.Fprintln(os.Stderr, "harness: serving on", path)
	return socket.Serve(ctx, ln, x)
}
