package sandbox

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/sandbox/hands"
)

// Run runs a command to its end. Many may run at once. When ctx ends, the
// command ends with all that it started.
func (s *Sandbox) Run(ctx context.Context, c Command) (*Exit, error) {
	if len(c.Argv) == 0 {
		return nil, contract.Errorf(v1.Error_invalid, "no program to run").WithField("argv")
	}
	if !s.meets {
		return nil, contract.Errorf(v1.Error_unavailable, "the sandbox is below its minimum").WithHint("harness doctor says what is missing")
	}
	if ctx.Err() != nil {
		return &Exit{Cancelled: true}, nil
	}
	if s.lone != nil {
		return s.lone.run(ctx, c)
	}
	if err := s.begin(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	files := []*os.File{c.Output}
	var keeper *gatekeeper
	if c.Gate != nil && s.has("exec_gate") {
		var theirs *os.File
		var err error
		if keeper, theirs, err = newGatekeeper(c.Gate); err != nil {
			return nil, contract.Errorf(v1.Error_unavailable, "a socket to the hands: %v", err)
		}
		defer keeper.close()
		defer theirs.Close()
		files = append(files, theirs)
	}
	if c.Stdin != nil {
		files = append(files, c.Stdin)
	}
	if c.Errors != nil {
		files = append(files, c.Errors)
	}
	conn, err := s.send(files...)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	step := stepOf(c)
	step.Gate = keeper != nil
	step.Errors = c.Errors != nil
	step.Network = c.Network != nil && s.has("network_proxy")
	if err := json.NewEncoder(conn).Encode(step); err != nil {
		return nil, s.lost(err)
	}
	defer context.AfterFunc(ctx, func() { conn.(*net.UnixConn).CloseWrite() })()
	answer := io.Reader(conn)
	if step.Network {
		if answer, err = listener(conn.(*net.UnixConn), c.Network); err != nil {
			return nil, s.lost(err)
		}
	}
	var d hands.Done
	if err := json.NewDecoder(answer).Decode(&d); err != nil {
		return nil, s.lost(err)
	}
	return exitOf(d, keeper)
}

func stepOf(c Command) hands.Step {
	return hands.Step{Argv: c.Argv, Dir: c.Dir, Env: c.Env, Lower: c.Lower, Upper: c.Upper, Work: c.Work, Timeout: c.Timeout, Memory: c.Limits.Memory,
		Processes: c.Limits.Processes, OpenFiles: c.Limits.OpenFiles, Hide: c.Hide, CPU: c.Limits.CPU, FileSize: c.Limits.FileSize, Disk: c.Limits.Disk, Suspects: c.Suspects}
}

func exitOf(d hands.Done, keeper *gatekeeper) (*Exit, error) {
	if d.Error != "" {
		return nil, contract.Errorf(v1.Error_unavailable, "%s", d.Error)
	}
	exit := &Exit{Code: d.Code, Signal: d.Signal, Wall: d.Wall, CPU: d.CPU, PeakMemory: d.PeakMemory,
		TimedOut: d.TimedOut, Cancelled: d.Cancelled, Limit: d.Limit, Killed: d.Killed}
	if keeper != nil {
		exit.Execs, exit.ExecsTotal = keeper.record(d.Execs), d.ExecsTotal
	}
	return exit, nil
}
