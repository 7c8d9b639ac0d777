package executor

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"google.golang.org/protobuf/types/known/timestamppb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/artifact"
	"harness/executor/audit"
	"harness/executor/journal"
	"harness/executor/policy"
	"harness/executor/sandbox"
	"harness/executor/workspace"
)

// session is one conversation's hands: a workspace, a sandbox, a journal.
type session struct {
	id          string
	x           *Executor
	lock        *os.File
	journal     *journal.Journal
	audit       *audit.Log
	store       *artifact.Store
	ws          *workspace.Workspace
	sandbox     *sandbox.Sandbox // nil: none to be had here, sandboxErr says why
	sandboxErr  error
	enforced    []string        // names of the capabilities in force
	ctx         context.Context // ends with the session
	cancel      context.CancelFunc
	wg          sync.WaitGroup // running steps
	mu          sync.Mutex
	policy      *policy.Policy
	granted     map[string]bool   // digests of actions approved for this session
	seen        map[string]string // path → digest that the planner last saw
	live        map[string]*live
	servers     map[string]*server // MCP, by name
	eventsDirty chan struct{}      // closed and renewed at each event
}

func (x *Executor) open(ctx context.Context, id string, req *v1.OpenRequest, p *policy.Policy) (_ *session, err error) {
	dir := filepath.Join(x.cfg.State, "sessions", id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "the executor's state: %v", err)
	}
	s := &session{id: id, x: x, policy: p, granted: map[string]bool{}, seen: map[string]string{},
		live: map[string]*live{}, servers: map[string]*server{}, eventsDirty: make(chan struct{})}
	for _, c := range x.cfg.Servers {
		s.servers[c.Name] = &server{conf: c}
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			s.cancel()
			err = errors.Join(err, s.release())
		}
	}()
	if s.lock, err = takeLease(dir); err != nil {
		return nil, err
	}
	if s.journal, err = journal.Open(dir, x.cfg.Workspace); err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "%v", err)
	}
	if err := s.checkWorkspace(); err != nil {
		return nil, err
	}
	if s.audit, err = openAudit(x.cfg.State, dir, id, p.Waived()...); err != nil {
		return nil, err
	}
	if s.store, err = artifact.Open(filepath.Join(dir, "artifacts")); err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "the artifacts: %v", err)
	}
	if s.ws, err = workspace.Open(x.cfg.Workspace, filepath.Join(dir, "workspace")); err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "the workspace: %v", err)
	}
	if err := s.recover(); err != nil {
		return nil, err
	}
	if err := s.beginAs(req); err != nil {
		return nil, err
	}
	hide := append([]string{x.cfg.State}, x.cfg.Hide...)
	s.sandbox, s.sandboxErr = sandbox.Start(ctx, sandbox.Config{Workspace: x.cfg.Workspace,
		State: filepath.Join(dir, "sandbox"), Home: x.home, Hide: hide, Self: x.cfg.Self, Memory: filepath.Join(x.cfg.State, "sandbox.json"), Rung: x.cfg.Sandbox})
	if s.sandbox != nil {
		if s.sandbox.Direct() {
			if err := s.ws.Direct(); err != nil {
				return nil, contract.Errorf(v1.Error_unavailable, "the workspace: %v", err)
			}
		}
		for _, c := range s.sandbox.Capabilities() {
			if c.Enforced {
				s.enforced = append(s.enforced, c.Name)
			}
		}
	}
	s.audit.Later(audit.Session(req.Planner, s.describe(), p.Version()))
	if err := s.resume(); err != nil {
		s.cancel()
		s.wg.Wait()
		return nil, err
	}
	return s, nil
}

// checkWorkspace refuses to resume a session in another workspace.
func (s *session) checkWorkspace() error {
	was, err := s.journal.Workspace()
	if err != nil {
		return contract.Errorf(v1.Error_unavailable, "the journal: %v", err)
	}
	if was != s.x.cfg.Workspace {
		return contract.Errorf(v1.Error_invalid, "the session %s belongs to %s", s.id, was).WithField("workspace")
	}
	return nil
}

// recover settles what a crash left: a step without a result is interrupted
// and its workspace is as before it; one with a result is landed whole.
func (s *session) recover() error {
	unfinished, err := s.journal.Unfinished()
	if err != nil {
		return contract.Errorf(v1.Error_unavailable, "the journal: %v", err)
	}
	err = s.ws.Recover(func(stepID string) bool {
		_, _, result, err := s.journal.Step(stepID)
		return err == nil && result != nil
	})
	if err != nil {
		return contract.Errorf(v1.Error_unavailable, "recovering the workspace: %v", err)
	}
	for _, step := range unfinished {
		a, err := s.waits(step)
		if err != nil {
			return contract.Errorf(v1.Error_unavailable, "the journal: %v", err)
		}
		if a != nil {
			s.live[step.StepId] = held(step, a)
			continue
		}
		r := newResult(step)
		r.Status = v1.Status_interrupted
		r.Error = contract.Errorf(v1.Error_interrupted, "the executor ended while this step ran; the workspace is as before it").Proto()
		if kept := s.finish(r, s.recordEnd); kept != r {
			return contract.FromProto(kept.Error)
		}
	}
	return nil
}

func (s *session) describe() *v1.OpenResponse {
	r := &v1.OpenResponse{SessionId: s.id, Workspace: s.x.cfg.Workspace, Rung: "none", Executor: Version,
		Actions: contract.Actions(), Policy: s.policy.Sources(), LastSeq: s.journal.LastSeq(), Staged: s.ws.Staged()}
	r.McpServers = slices.Sorted(maps.Keys(s.servers))
	if s.sandbox == nil {
		r.Capabilities = sandbox.Unavailable(s.sandboxErr)
		return r
	}
	r.Rung, r.Capabilities, r.MeetsMinimum = s.sandbox.Rung(), s.sandbox.Capabilities(), s.sandbox.MeetsMinimum()
	return r
}

func (s *session) close() error {
	s.cancel()
	s.wg.Wait()
	return s.release()
}

func (s *session) release() error {
	var errs []error
	if s.sandbox != nil {
		errs = append(errs, s.sandbox.Close())
	}
	if s.journal != nil {
		errs = append(errs, s.journal.Close())
	}
	if s.ws != nil {
		errs = append(errs, s.ws.Close())
	}
	if s.audit != nil {
		errs = append(errs, s.audit.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// event numbers, records and announces an event.
func (s *session) event(e *v1.Event) error {
	e.SessionId, e.Time = s.id, timestamppb.Now()
	if err := s.journal.Append(e); err != nil {
		return contract.Errorf(v1.Error_unavailable, "the journal: %v", err)
	}
	s.announce()
	return nil
}

// announce wakes those who watch.
func (s *session) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.eventsDirty)
	s.eventsDirty = make(chan struct{})
}

func (s *session) watch(ctx context.Context, req *v1.WatchRequest, emit func(*v1.Event) error) error {
	for next := max(1, req.FromSeq); ; {
		s.mu.Lock()
		dirty := s.eventsDirty
		s.mu.Unlock()
		events, err := s.journal.Events(next, 256)
		if err != nil {
			return contract.Errorf(v1.Error_unavailable, "the journal: %v", err)
		}
		for _, e := range events {
			if err := emit(e); err != nil {
				return err
			}
			next = e.Seq + 1
		}
		if len(events) > 0 {
			continue
		}
		if !req.Follow {
			return nil
		}
		select {
		case <-dirty:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ctx.Done():
			return nil
		}
	}
}
