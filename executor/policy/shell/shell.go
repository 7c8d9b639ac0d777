// Package shell takes a script apart into the simple commands that a shell
// would run for it, however they are wrapped: in lists, pipes, subshells,
// functions, substitutions and here-documents, behind env, timeout, xargs,
// find -exec or sh -c. Each comes with its words as the program would get them,
// the files that it is redirected to, and the folders it may run in.
//
// It reads, and decides nothing. What it cannot reduce to plain words it says
// in Command.Opaque; a policy must never allow that.
//
//	for _, c := range shell.Analyse("cd sub && rm -rf x > log", env).Commands { … }
package shell

import (
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// Env is the place where a script would run.
type Env struct {
	Cwd, Home string
	Vars      map[string]string // set beside what the machine has
}

// Script is what a script comes to.
type Script struct {
	Commands []Command
	Err      string // not readable as a script
}

// Command is one simple command, or the redirections of a compound one.
type Command struct {
	Text    string // as written
	Words   []Word // empty: only redirections and assignments
	Assigns []Assign
	Files   []File
	Dirs    []string // the folders it may run in; nil: not known
	Wraps   bool     // only runs the command after it: needs no permission
	Opaque  string   // why it cannot be judged by its words
	Loose   string   // why a rule that names it must not be enough: odd variables
	Fetched bool     // runs what the network sent
}

// Word is one word as the program gets it.
type Word struct {
	Text  string // whole where Known, else its known beginning
	Known bool
	Glob  bool // a pattern: Text is how it is written
}

// Assign is a variable that is set for the command or for what follows.
type Assign struct {
	Name  string
	Value Word
}

// File is a file that a redirection opens.
type File struct {
	Path  Word
	Write bool
}

const maxDepth, maxCommands = 40, 4000

var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// Analyse takes a script apart.
func Analyse(src string, env Env) Script {
	out := make([]Command, 0, 8)
	w := &walker{env: env, at: place{dirs: []string{env.Cwd}}, vars: map[string]*Word{}, out: &out, funcs: map[string]bool{}}
	for name := range env.Vars {
		w.vars[name] = nil
	}
	if err := w.script(src); err != "" {
		return Script{Commands: *w.out, Err: err}
	}
	return Script{Commands: *w.out}
}

// walker goes through a script in the order a shell would.
type walker struct {
	env   Env
	src   string
	at    place
	vars  map[string]*Word // what is known of variables; nil: something unknown
	funcs map[string]bool
	depth int
	maybe int // >0 inside what may run never or more than once
	stdin *Word
	net   bool // stdin comes from the network
	out   *[]Command
}

// place is the set of folders in which the shell may be.
type place struct {
	dirs []string // nil: anywhere
}

func (w *walker) script(src string) string {
	if w.depth++; w.depth > maxDepth {
		w.emit(Command{Text: src, Opaque: "it is nested too deeply to be read"})
		return ""
	}
	defer func() { w.depth-- }()
	p := parsers.Get().(*syntax.Parser)
	file, err := p.Parse(strings.NewReader(src), "")
	parsers.Put(p)
	if err != nil {
		return strings.TrimPrefix(err.Error(), ":")
	}
	outer := w.src
	w.src = src
	w.forget(file)
	w.stmts(file.Stmts)
	w.src = outer
	return ""
}

// code walks shell code that a command carries in its words.
func (w *walker) code(src string, from Command) {
	maybe := w.maybe
	w.maybe++
	if err := w.script(src); err != "" {
		from.Wraps, from.Opaque = false, "the code in it cannot be read: "+err
		w.emit(from)
	}
	w.maybe = maybe
}

func (w *walker) emit(c Command) {
	if len(*w.out) > maxCommands {
		return
	}
	if len(*w.out) == maxCommands {
		c = Command{Text: c.Text, Opaque: "it has too many commands to be read"}
	}
	c.Dirs = w.at.dirs
	*w.out = append(*w.out, c)
}

func (w *walker) text(n syntax.Node) string {
	from, to := n.Pos().Offset(), n.End().Offset()
	if from >= to || int(to) > len(w.src) {
		return ""
	}
	return w.src[from:to]
}

// forget finds the variables that are set in more than one place: what they
// hold at a given moment is not known.
func (w *walker) forget(file *syntax.File) {
	seen := map[string]int{}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				seen[n.Name.Value]++
			}
		case *syntax.WordIter:
			seen[n.Name.Value] += 2
		case *syntax.ParamExp:
			if n.Exp != nil && n.Param != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				seen[n.Param.Value] += 2
			}
		}
		return true
	})
	for name, n := range seen {
		if n > 1 {
			w.vars[name] = nil
		}
	}
}

// subshell walks what changes nothing for the commands after it.
func (w *walker) subshell(stmts []*syntax.Stmt) {
	at, stdin := w.at, w.stdin
	w.stdin = nil
	w.stmts(stmts)
	w.at, w.stdin = at, stdin
}

// branch walks what may not run: afterwards the shell may be where it was.
func (w *walker) branch(stmts []*syntax.Stmt) {
	before := w.at
	w.maybe++
	w.stmts(stmts)
	w.maybe--
	w.at = union(before, w.at)
}

// loop walks what may run many times.
func (w *walker) loop(stmts ...[]*syntax.Stmt) {
	before := w.at
	from := len(*w.out)
	w.maybe++
	for _, s := range stmts {
		w.stmts(s)
	}
	w.maybe--
	if !same(before, w.at) {
		w.at = place{}
		for i := from; i < len(*w.out); i++ {
			(*w.out)[i].Dirs = nil
		}
	}
}

func union(a, b place) place {
	if a.dirs == nil || b.dirs == nil {
		return place{}
	}
	all := append([]string(nil), a.dirs...)
	for _, d := range b.dirs {
		if !contains(all, d) {
			all = append(all, d)
		}
	}
	if len(all) > 16 {
		return place{}
	}
	return place{dirs: all}
}

func same(a, b place) bool {
	if len(a.dirs) != len(b.dirs) {
		return false
	}
	for _, d := range a.dirs {
		if !contains(b.dirs, d) {
			return false
		}
	}
	return true
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
