// Package contract is the door between a planner, which thinks, and an
// executor, which acts. Its types are generated from harness.proto, the source
// of truth; this package adds what a schema cannot say: strict decoding of a
// step's args, validation, digests, and errors as Go values.
//
// It imports nothing of ours. Both sides import it; neither imports the other.
package contract

import (
	"context"

	v1 "harness/contract/harness/v1"
)

// Executor is the service as Go calls. The executor implements it; a transport
// carries it; a planner calls it and cannot tell which it has.
// Errors are *Error values where the executor refused, and plain errors where
// the way to it broke.
type Executor interface {
	Open(ctx context.Context, req *v1.OpenRequest) (*v1.OpenResponse, error)
	Submit(ctx context.Context, step *v1.Step) (*v1.StepResult, error)
	// Watch calls emit for each event from req.FromSeq on, in order, until emit
	// fails, ctx ends, or (without Follow) there are no more.
	Watch(ctx context.Context, req *v1.WatchRequest, emit func(*v1.Event) error) error
	Decide(ctx context.Context, req *v1.DecideRequest) (*v1.DecideResponse, error)
	Close(ctx context.Context, req *v1.CloseRequest) error
}

// The names of the actions.
const (
	ReadFile   = "read_file"
	WriteFile  = "write_file"
	EditFile   = "edit_file"
	ApplyPatch = "apply_patch"
	ListFiles  = "list_files"
	Search     = "search"
	RunCommand = "run_command"
	WriteStdin = "write_stdin"
	CancelStep = "cancel_step"
	ReadOutput = "read_output"
	Diff       = "diff"
	Restore    = "restore"
	Apply      = "apply"
	Discard    = "discard"

	ListMCPTools = "list_mcp_tools"
	CallMCPTool  = "call_mcp_tool"
)
