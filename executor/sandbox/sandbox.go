// Package sandbox runs commands where they can do no harm.
//
// Start brings up one small resident process per session, the hands (package
// hands), inside user, mount, pid, net, ipc and uts namespaces of their own.
// Run then gives each command a fresh mount namespace on a thread of the
// hands: the workspace at its real path under an overlay of the caller's, the
// system read-only, private /tmp, /run and homes, no network but a loopback,
// no capability, Landlock, seccomp and limits. A command that ends leaves no
// process behind.
//
//	s, err := sandbox.Start(ctx, sandbox.Config{Workspace: dir, State: state, Home: home})
//	exit, err := s.Run(ctx, sandbox.Command{Argv: []string{"/bin/sh", "-c", "make"}, Dir: dir, Output: w})
//
// The program must call HandsMain first thing: it may have been started as hands.
// There is no silent fall to less: Start fails with what is missing and how to
// get it, and Capabilities says what was found by trying.
package sandbox

import (
	"net"
	"os"
	"time"

	v1 "harness/contract/harness/v1"
	"harness/executor/sandbox/hands"
)

// Config says what a sandbox is for.
type Config struct {
	Workspace string   // the only folder of the user's that commands work in
	State     string   // a folder of this session, hidden from commands; holds what they write to caches
	Home      string   // the user's home: hidden, but for toolchains and caches
	Hide      []string // further files and folders that commands may not read
	Rung      string   // "auto" or "": the best that is to be had; "namespaces", "landlock": this one; "none": commands are not held, which the caller has to have been permitted
	Self      string   // our executable; "" is the running one
	Memory    string   // a file that keeps what was found by trying, until the next boot; "": nothing is kept
}

// Limits hold for one command; zero is none.
type Limits struct {
	Memory               uint64
	Processes, OpenFiles int
	CPU                  time.Duration
	FileSize             uint64 // of each file
	Disk                 uint64 // of all that is written to Upper
}

// Command is one program to run.
type Command struct {
	Argv        []string
	Dir         string
	Env         []string // the whole of it
	Lower       []string // staged layers over the workspace, the newest first
	Upper, Work string   // overlay folders for its changes; "" makes the workspace read-only
	Limits      Limits
	Output      *os.File // the write end of a pipe, for stdout and stderr
	Errors      *os.File // another one, for stderr alone; nil: it goes to Output
	Stdin       *os.File // nil is empty
	Timeout     time.Duration
	Hide        []string  // files and folders, without links, that it may not read, inside the workspace too
	Gate        Gate      // judges every program that it starts; nil: they are not watched
	Suspects    *Suspects // those that Gate may refuse; nil: all
	// Network takes the proxy's listener, before the program starts; nil: no
	// network. clock(false) stops the clock of Timeout, clock(true) lets it go on.
	Network func(l net.Listener, clock func(runs bool))
}

// ProxyPort is where a command with a Network finds the listener, on its own 127.0.0.1.
const ProxyPort = hands.ProxyPort

// Gate judges a program before its first instruction: a decision refuses it;
// more asks again, with the program's Env and Digest.
type Gate func(p Program) (refused *v1.Decision, more bool)

// Program is one that is about to run, as the kernel has it.
type Program = hands.Program

// Suspects says of which programs a Gate is to be asked.
type Suspects = hands.Suspects

// Exit is how a command ended.
type Exit struct {
	Code                int
	Signal              string // "SIGTERM" when a signal ended it; Code is then 128 and its number
	Wall, CPU           time.Duration
	PeakMemory          uint64
	TimedOut, Cancelled bool
	Limit               string     // time, memory, processes, cpu, file_size, disk, open_files
	Killed              int        // processes that it left behind and that were ended
	Execs               []*v1.Exec // with a Gate: the first programs, and those refused
	ExecsTotal          int
}

// Unavailable is what to report where Start failed.
func Unavailable(err error) []*v1.Capability {
	detail := "not tried"
	if err != nil {
		detail = err.Error()
	}
	var list []*v1.Capability
	for _, name := range []string{"user_namespace", "mount_namespace", "pid_namespace", "network_namespace", "ipc_namespace",
		"uts_namespace", "overlay", "landlock", "seccomp", "no_new_privs", "exec_gate", "network_proxy", "memory_limit", "process_limit"} {
		list = append(list, &v1.Capability{Name: name, Detail: detail})
	}
	return list
}
