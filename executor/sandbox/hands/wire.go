// Package hands is the resident process inside a sandbox: PID 1 of its own
// namespaces. It builds the tree that commands see once, then starts each
// command on a thread that takes a fresh mount namespace, gives up every
// right, and dies with it. It decides nothing, and it ends with its parent.
//
// Its one file, descriptor 3, is a socket. Each packet carries a stream of its
// own and the command's output, the gate's stream, its input and a file for its errors. On the first stream come a Setup and
// its Ready; on each later one a Step and its Done. After the Step may come
// bytes that stop its clock and let it go on; a stream whose write side is shut
// cancels the step.
package hands

import "time"

// Arg is the argument that makes a program the hands.
const Arg = "__hands"

// Setup is the tree to build. All paths are real and exist.
type Setup struct {
	Workspace, State string
	Masks            []string // become empty private folders
	Homes            []string // are there, empty
	Binds            []Bind   // are put back, through the masks
	Hide             []string // become unreadable
}

// Bind is a file or folder put back, read-only or as a cache: writable, with
// the writes kept in State.
type Bind struct {
	Path  string
	Cache bool
}

// Ready is what the machine allowed.
type Ready struct {
	Error, Hint  string
	Capabilities []Capability
}

// Capability is one means of enforcement, as tried.
type Capability struct {
	Name               string
	Enforced, Optional bool
	Detail             string
}

// Step is one command.
type Step struct {
	Argv, Env            []string
	Dir, Upper, Work     string
	Lower                []string // between Upper and the workspace, the newest first
	Timeout, CPU         time.Duration
	Memory, FileSize     uint64
	Disk                 uint64 // bytes in the overlay's upper folder
	Processes, OpenFiles int
	Hide                 []string  // files and folders, without links, that this step may not read
	Gate                 bool      // a stream for the gate came along
	Suspects             *Suspects // of these programs it is asked; nil: of all
	Errors               bool      // the last file that came along takes what it prints as errors
	Network              bool      // a namespace of its own: its listener comes back before the Done
}

// Program is one that is about to run, as the kernel has it.
type Program struct {
	Path     string   // its file, without links
	Called   string   // the name that it was started by; of a script, the script
	Argv     []string // of a script, its interpreter's
	Dev, Ino uint64
	Size     int64
	Env      []string // only after More
	Digest   string   // of the file, SHA-256; only after More
}

// ProxyPort is where, on its loopback, a step with Network finds its listener.
const ProxyPort = 3128

// Listening is the byte that comes along with the listener.
const Listening = 'l'

// What stops the clock of a step's timeout, and lets it go on.
const (
	StopClock  = 'p'
	StartClock = 'c'
)

// Answers to a Program.
const (
	Run    = 'r'
	Refuse = 'n'
	More   = 'm' // ask again, with all of it
)

// Exec is a program that ran or was refused.
type Exec struct {
	Program, Cwd string
	Argv         []string
	Started      time.Time
	Wall, CPU    time.Duration // CPU with the processes that it waited for
	Code         *int          // nil where it became another program
	Refused      bool
	Unseen       bool // refused without asking: it could not be looked at
}

// Done is how it ended.
type Done struct {
	Error               string // it could not be started
	Code                int
	Signal, Limit       string
	Wall, CPU           time.Duration
	PeakMemory          uint64
	TimedOut, Cancelled bool
	Killed              int
	Execs               []Exec // the first ones, and those refused
	ExecsTotal          int
}
