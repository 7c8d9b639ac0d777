// Command harness is the whole program: planner, executor and surfaces wired
// together, one short file a sub-command.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"harness/executor/sandbox"
	"harness/planner/model"
	"harness/surface/terminal"
)

const version = "harness 0.1"

type cli struct {
	Run        runCmd        `cmd:"" default:"withargs" help:"Work on a task in this folder."`
	Demo       demoCmd       `cmd:"" help:"Show the whole loop on a sample project with a recorded model."`
	Undo       undoCmd       `cmd:"" help:"Take back the last step of a session."`
	Redo       redoCmd       `cmd:"" help:"Put the last undone step again."`
	Rewind     rewindCmd     `cmd:"" help:"Go back to a step: files, conversation, or both."`
	Diff       diffCmd       `cmd:"" help:"Show what a session changed."`
	Apply      applyCmd      `cmd:"" help:"Take what a staged session holds to the folder."`
	Discard    discardCmd    `cmd:"" help:"Drop what a staged session holds."`
	Replay     replayCmd     `cmd:"" help:"Run a session's steps again and compare, or judge them under another policy."`
	Eval       evalCmd       `cmd:"" help:"Measure models and policies on a suite of tasks."`
	Sessions   sessionsCmd   `cmd:"" help:"List and show sessions."`
	Policy     policyCmd     `cmd:"" help:"Say what the policy makes of a command."`
	Audit      auditCmd      `cmd:"" help:"Show, verify and export the executor's own record."`
	Approvals  approvalsCmd  `cmd:"" help:"List the steps that wait for an answer; serve them to other machines."`
	Approve    approveCmd    `cmd:"" help:"Let a step that waits run."`
	Deny       denyCmd       `cmd:"" help:"Refuse a step that waits, with a word for the model."`
	Trust      trustCmd      `cmd:"" help:"Let this folder's .harness/config.toml count."`
	Executor   executorCmd   `cmd:"" help:"Serve the contract to a planner."`
	Doctor     doctorCmd     `cmd:"" help:"Say what is enforced on this machine."`
	Completion completionCmd `cmd:"" help:"Print what makes a shell complete harness."`
	Man        manCmd        `cmd:"" help:"Print the manual page."`
	Version    versionCmd    `cmd:"" help:"Print the version."`
}

// exit is an error with an exit code of its own.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

const exitHelp = `Exit codes: 0 done and proven, 1 error, 2 usage, 41 no or bad credentials, 42 bad input, 44 sandbox below the minimum,
52 bad config, 53 turn limit, 54 checks still red, 56 time limit, 57 budget limit, 58 stopped by a denial, 59 done with nothing to prove it with, 130 interrupted.`

func main() {
	sandbox.HandsMain()
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	var commands any = new(cli)
	if len(args) > 0 && args[0] == "executor" { // what a planner starts need not learn all the others
		commands = new(struct {
			Executor executorCmd `cmd:"" help:"Serve the contract to a planner."`
		})
	}
	parser, err := kong.New(commands, kong.Name("harness"), kong.Description("A coding agent in two processes: a planner without hands and an executor under your policy.\n\n"+exitHelp),
		kong.UsageOnError(), kong.Exit(func(code int) { os.Exit(code) }))
	if err != nil {
		panic(err)
	}
	if n := len(args); n > 0 && (args[n-1] == "-r" || args[n-1] == "--resume") {
		args = append(args[:n-1:n-1], "--resume="+askWhich)
	}
	ctx, err := parser.Parse(args)
	if err != nil {
		complain(err.Error())
		fmt.Fprintln(os.Stderr, "harness --help says how it is used")
		return 2
	}
	err = ctx.Run(parser)
	var e *exit
	var me *model.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		if e.Error() != "" {
			complain(e.Error())
		}
		return e.code
	case errors.As(err, &me) && me.Kind == model.Auth:
		complain(me.Message)
		return 41
	case errors.As(err, &me) && me.Kind == model.Invalid:
		complain(me.Message)
		return 42
	}
	complain(err.Error())
	return 1
}

// complain says what went wrong. It may quote a file or a server: nothing in it acts on the screen.
func complain(text string) { fmt.Fprintln(os.Stderr, "harness:", terminal.Safe(text)) }

type versionCmd struct{}

func (versionCmd) Run() error {
	fmt.Println(version)
	return nil
}
