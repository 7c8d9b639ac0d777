package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/artifact"
	"harness/executor/audit"
	"harness/executor/mcp"
	"harness/executor/policy"
	"harness/executor/sandbox"
)

const (
	serverStart    = 30 * time.Second
	maxDescription = 1000 // bytes of a tool's description
	keptErrors     = 2000 // bytes of the end of what a server prints as errors
)

// server is one MCP server of a session. It is started when it is first needed,
// runs in the sandbox with the workspace read-only, and ends with the session.
type server struct {
	conf mcp.Server
	mu   sync.Mutex // one start at a time
	now  *serving
}

// serving is a server that was started.
type serving struct {
	client *mcp.Client
	hidden []string // what it could not read, when it began
	stop   context.CancelFunc
	ended  chan struct{} // closed; then why is set
	why    string
}

func (s *session) listTools(ctx context.Context, r *v1.StepResult) error {
	r.Status = v1.Status_ok
	names := slices.Sorted(maps.Keys(s.servers))
	notes, lists := make([]string, len(names)), make([][]mcp.Tool, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			if d := s.judgeTool(name, "*"); d.Verdict == v1.Decision_deny {
				notes[i] = fmt.Sprintf("the MCP server %s was not started: %s", name, d.Reason)
			} else if run, err := s.serve(ctx, s.servers[name]); err != nil {
				notes[i] = err.Error()
			} else {
				lists[i] = run.client.Tools()
			}
		})
	}
	wg.Wait()
	for i, name := range names {
		if notes[i] != "" {
			r.Notes = append(r.Notes, artifact.Harmless([]byte(notes[i])))
		}
		for _, t := range lists[i] {
			if s.judgeTool(name, t.Name).Verdict == v1.Decision_deny {
				continue
			}
			schema, err := structpb.NewStruct(t.Schema)
			if err != nil {
				continue
			}
			about := t.Description
			if len(about) > maxDescription {
				about = strings.ToValidUTF8(about[:maxDescription], "") + "…"
			}
			r.McpTools = append(r.McpTools, &v1.McpTool{Server: name, Tool: t.Name, Name: mcp.Name(name, t.Name), Description: artifact.Harmless([]byte(about)), InputSchema: schema})
		}
	}
	return nil
}

func (s *session) judgeTool(name, tool string) *v1.Decision {
	action := mcp.Name(name, tool)
	if tool == "*" {
		action = "mcp__" + name + "__"
	}
	return s.currentPolicy().Judge(policy.Request{Action: action}).Decision
}

func (s *session) callTool(ctx context.Context, a *v1.CallMcpToolArgs, r *v1.StepResult) error {
	x := s.servers[a.Server]
	if x == nil {
		return contract.Errorf(v1.Error_not_found, "there is no MCP server %q", a.Server).WithField("args.server").WithHint("there are: %s", strings.Join(slices.Sorted(maps.Keys(s.servers)), ", "))
	}
	run, err := s.serve(ctx, x)
	if err != nil {
		return err
	}
	if !run.client.Has(a.Tool) {
		return contract.Errorf(v1.Error_not_found, "the MCP server %s lists no tool %q", a.Server, a.Tool).WithField("args.tool")
	}
	timeout := defaultTimeout
	if a.TimeoutS > 0 {
		timeout = time.Duration(a.TimeoutS) * time.Second
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	text, failed, err := run.client.Call(limited, a.Tool, a.Arguments.AsMap())
	switch {
	case ctx.Err() != nil:
		return contract.Errorf(v1.Error_cancelled, "was cancelled")
	case limited.Err() != nil:
		run.stop()
		r.Limit, r.Status = "time", v1.Status_timed_out
		r.Error = contract.Errorf(v1.Error_timeout, "the MCP server %s did not answer within %v and was ended", a.Server, timeout).WithHint("the next call starts it again").Proto()
		return nil
	case err != nil:
		return s.broken(x, run, err)
	}
	o := artifact.NewOutput(s.store, defaultOutput)
	io.WriteString(o, text)
	if r.Output, err = o.Result(); err != nil {
		r.Notes = append(r.Notes, "the whole output could not be kept: "+err.Error())
	}
	r.Status = v1.Status_ok
	if failed {
		r.Status = v1.Status_failed
		r.Error = contract.Errorf(v1.Error_exit, "the tool says that it failed").Proto()
	}
	return nil
}

// broken is why a server does not answer as it should: that it ended, if it did.
func (s *session) broken(x *server, run *serving, err error) error {
	select {
	case <-run.ended:
		return contract.Errorf(v1.Error_unavailable, "the MCP server %s ended: %s (%s)", x.conf.Name, run.why, artifact.Harmless([]byte(err.Error()))).WithHint("the next call starts it again")
	case <-time.After(drainTime):
		return contract.Errorf(v1.Error_unavailable, "the MCP server %s: %s", x.conf.Name, artifact.Harmless([]byte(err.Error())))
	}
}

// serve gives the running server, started where it does not run or where it
// could read what is hidden by now.
func (s *session) serve(ctx context.Context, x *server) (*serving, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s.sandbox == nil || !s.sandbox.MeetsMinimum() {
		return nil, contract.Errorf(v1.Error_unavailable, "no MCP server runs here without a sandbox: %v", s.sandboxErr)
	}
	c := sandbox.Command{Argv: append([]string{x.conf.Command}, x.conf.Args...), Dir: s.x.cfg.Workspace,
		Env: commandEnv(s.x.home, s.x.cfg.Workspace, x.conf.Env), Limits: defaultLimits}
	if tree, err := s.ws.Tree(); err == nil {
		c.Lower = tree.Layers()
	}
	hidden, err := s.currentPolicy().Hidden(nil, c.Lower...)
	if err != nil {
		return nil, contract.Errorf(v1.Error_invalid, "the policy: %v", err)
	}
	for _, h := range hidden {
		c.Hide = append(c.Hide, h.Path)
	}
	if x.now != nil {
		select {
		case <-x.now.ended:
		default:
			if slices.Equal(x.now.hidden, c.Hide) {
				return x.now, nil
			}
			x.now.stop()
			<-x.now.ended
		}
		x.now = nil
	}
	run, out, in, err := s.launch(x, c)
	if err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "the MCP server %s: %v", x.conf.Name, err)
	}
	limited, cancel := context.WithTimeout(ctx, serverStart)
	defer cancel()
	defer context.AfterFunc(limited, run.stop)()
	if run.client, err = mcp.Connect(limited, out, in); err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("it was not ready within %v", serverStart)
		}
		err = s.broken(x, run, err)
		run.stop()
		return nil, err
	}
	x.now = run
	return run, nil
}

// launch starts a server in the sandbox. It ends with the session, or by stop.
func (s *session) launch(x *server, c sandbox.Command) (run *serving, out io.ReadCloser, in io.WriteCloser, err error) {
	var ends [6]*os.File
	for i := 0; i < len(ends); i += 2 {
		if ends[i], ends[i+1], err = os.Pipe(); err != nil {
			for _, f := range ends[:i] {
				f.Close()
			}
			return nil, nil, nil, err
		}
	}
	c.Stdin, c.Output, c.Errors = ends[0], ends[3], ends[5]
	c.Gate, c.Suspects = s.gate(c.Argv, "")
	run = &serving{hidden: c.Hide, ended: make(chan struct{})}
	var ctx context.Context
	ctx, run.stop = context.WithCancel(s.ctx)
	s.audit.Later(audit.Record{Kind: audit.Program, Program: c.Argv[0], Argv: c.Argv, Cwd: c.Dir, Note: "MCP server " + x.conf.Name})
	s.wg.Go(func() {
		defer run.stop()
		said := make(chan string)
		go func() { said <- tail(ends[4]) }()
		exit, err := s.sandbox.Run(ctx, c)
		for _, f := range []*os.File{ends[0], ends[3], ends[5]} {
			f.Close()
		}
		ends[4].SetReadDeadline(time.Now().Add(drainTime))
		last := <-said
		ends[4].Close()
		run.why = ending(exit, err)
		if last != "" {
			run.why += "; it said last: " + last
		}
		if exit != nil {
			for _, r := range audit.Result(&v1.StepResult{Execs: exit.Execs, Action: "MCP server " + x.conf.Name}) {
				s.audit.Later(r)
			}
		}
		close(run.ended)
	})
	return run, ends[2], ends[1], nil
}

func ending(exit *sandbox.Exit, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case exit.Limit != "":
		return "at the limit on " + exit.Limit
	case exit.Signal != "":
		return "by " + exit.Signal
	}
	for _, e := range exit.Execs {
		if e.Refused != nil {
			return fmt.Sprintf("exit code %d; %s was refused at its start: rule %s, from %s", exit.Code, e.Program, e.Refused.Rule, e.Refused.Source)
		}
	}
	return fmt.Sprintf("exit code %d", exit.Code)
}

// tail is the end of what comes, made harmless.
func tail(r io.Reader) string {
	var last []byte
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		last = append(last, buf[:n]...)
		last = last[max(0, len(last)-keptErrors):]
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
				return ""
			}
			return strings.TrimSpace(artifact.Harmless(last))
		}
	}
}
