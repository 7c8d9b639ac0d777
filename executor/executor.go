// Package executor is the side that acts. It owns the files, the shell and
// every side effect of a workspace, runs typed steps under a policy in a
// sandbox, keeps a journal of all that it did, and decides nothing but whether
// a step may run. It has no model.
//
// It implements contract.Executor: use it in-process, or serve it with a
// transport. The way of one step is in pipeline.go.
//
//	x, err := executor.New(executor.Config{Workspace: dir, State: state})
//	defer x.Shutdown()
package executor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/mcp"
	"harness/executor/policy"
)

// Version is what the executor calls itself in Open.
const Version = "harness-executor 0.1"

// Config says what an executor owns. Workspace and State are needed.
type Config struct {
	Workspace string         // the folder that steps work on
	State     string         // the executor's own folder; nothing in the sandbox sees it
	Policy    policy.Options // Workspace and Home are filled in
	Hide      []string       // further paths that nothing in the sandbox may see
	Sandbox   string         // the rung: "auto" or "" is the best that is to be had, or "namespaces", "landlock"
	Self      string         // the program to start the hands from; default: this one
	// ApprovalTTL is how long a held step waits for an answer; default one hour.
	ApprovalTTL time.Duration
	// Approvers are the public keys of those who may answer from other machines.
	Approvers     []string
	SignedAnswers bool         // no answer counts that is not signed by one of them
	Servers       []mcp.Server // that list_mcp_tools and call_mcp_tool may start
	OnHeld        func()       // called before it is said that a step is held
}

// Executor runs the sessions of one workspace.
type Executor struct {
	cfg    Config
	home   string
	policy *policy.Policy

	mu       sync.Mutex
	sessions map[string]*session
	closed   bool
}

var _ contract.Executor = (*Executor)(nil)

// New checks the configuration and the policy. A policy file with an error is
// an error here: it is never half used.
func New(c Config) (*Executor, error) {
	root, err := filepath.Abs(c.Workspace)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return nil, fmt.Errorf("the workspace: %w", err)
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("the workspace %s is not a folder", root)
	}
	c.Workspace = root
	if c.State, err = filepath.Abs(c.State); err != nil {
		return nil, err
	}
	if inside(root, c.State) {
		return nil, fmt.Errorf("the state folder %s lies inside the workspace %s, where steps could change it", c.State, root)
	}
	if c.ApprovalTTL == 0 {
		c.ApprovalTTL = time.Hour
	}
	if c.OnHeld == nil {
		c.OnHeld = func() {}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/nonexistent"
	}
	c.Policy.Workspace, c.Policy.Home, c.Policy.Unsandboxed = root, home, c.Sandbox == "none"
	p, err := policy.Load(c.Policy)
	if err != nil {
		return nil, err
	}
	return &Executor{cfg: c, home: home, policy: p, sessions: map[string]*session{}}, nil
}

// Open starts or resumes a session.
func (x *Executor) Open(ctx context.Context, req *v1.OpenRequest) (*v1.OpenResponse, error) {
	id := req.SessionId
	if id == "" {
		id = "x_" + rand.Text()
	}
	if err := contract.CheckID("session_id", id); err != nil {
		return nil, err
	}
	if req.Workspace != "" {
		if w, err := filepath.EvalSymlinks(req.Workspace); err != nil || w != x.cfg.Workspace {
			return nil, contract.Errorf(v1.Error_invalid, "this executor serves %s, not %s", x.cfg.Workspace, req.Workspace).WithField("workspace")
		}
	}
	p, err := x.policy.Narrow(req.Ask, req.Deny, req.Safety)
	if err != nil {
		return nil, contract.Errorf(v1.Error_invalid, "%v", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, contract.Errorf(v1.Error_unavailable, "the executor is shutting down")
	}
	s := x.sessions[id]
	if s == nil {
		if s, err = x.open(ctx, id, req, p); err != nil {
			return nil, err
		}
		x.sessions[id] = s
	}
	return s.describe(), nil
}

func (x *Executor) session(id string) (*session, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.sessions[id]; s != nil {
		return s, nil
	}
	return nil, contract.Errorf(v1.Error_not_found, "the session %q is not open", id).WithField("session_id").WithHint("open it first")
}

// Submit runs a step once; see the contract.
func (x *Executor) Submit(ctx context.Context, step *v1.Step) (*v1.StepResult, error) {
	args, err := contract.Validate(step)
	if err != nil {
		if contract.CheckID("step_id", step.GetStepId()) != nil || contract.CheckID("session_id", step.GetSessionId()) != nil {
			return nil, err
		}
		if s, serr := x.session(step.SessionId); serr == nil {
			if aerr := s.invalid(step, err); aerr != nil {
				return nil, contract.Errorf(v1.Error_unavailable, "%v", aerr)
			}
		}
		return refuse(step, err), nil
	}
	s, err := x.session(step.SessionId)
	if err != nil {
		return nil, err
	}
	return s.submit(ctx, step, args)
}

// Watch gives out a session's events; see the contract.
func (x *Executor) Watch(ctx context.Context, req *v1.WatchRequest, emit func(*v1.Event) error) error {
	s, err := x.session(req.SessionId)
	if err != nil {
		return err
	}
	return s.watch(ctx, req, emit)
}

// Decide answers an approval; see the contract.
func (x *Executor) Decide(_ context.Context, req *v1.DecideRequest) (*v1.DecideResponse, error) {
	s, err := x.session(req.SessionId)
	if err != nil {
		return nil, err
	}
	return s.decide(req)
}

// Close ends a session's running steps and lets go of it.
func (x *Executor) Close(_ context.Context, req *v1.CloseRequest) error {
	x.mu.Lock()
	s := x.sessions[req.SessionId]
	delete(x.sessions, req.SessionId)
	x.mu.Unlock()
	if s == nil {
		return contract.Errorf(v1.Error_not_found, "the session %q is not open", req.SessionId).WithField("session_id")
	}
	return s.close()
}

// Shutdown closes every session. No process of a step outlives it.
func (x *Executor) Shutdown() error {
	x.mu.Lock()
	open := x.sessions
	x.sessions, x.closed = map[string]*session{}, true
	x.mu.Unlock()
	var errs []error
	for _, s := range open {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// inside says whether path is dir or below it; both are absolute and clean.
func inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
