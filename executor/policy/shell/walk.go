package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (w *walker) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		before := w.at
		w.stmt(s)
		if isCd(s) && !w.exists(w.at) {
			w.at = union(before, w.at) // it may have failed
		}
	}
}

func (w *walker) stmt(s *syntax.Stmt) {
	if s.Background || s.Coprocess {
		at := w.at
		defer func() { w.at = at }()
	}
	files, stdin := w.redirects(s)
	if stdin != nil {
		outer, net := w.stdin, w.net
		w.stdin, w.net = stdin, false
		defer func() { w.stdin, w.net = outer, net }()
	}
	if call, ok := s.Cmd.(*syntax.CallExpr); ok {
		w.call(call, files, w.text(s))
		return
	}
	if len(files) > 0 {
		w.emit(Command{Text: w.text(s), Files: files})
	}
	if s.Cmd != nil {
		w.compound(s.Cmd)
	}
}

func (w *walker) compound(cmd syntax.Command) {
	switch c := cmd.(type) {
	case *syntax.Block:
		w.stmts(c.Stmts)
	case *syntax.Subshell:
		at := w.at
		w.stmts(c.Stmts)
		w.at = at
	case *syntax.BinaryCmd:
		w.binary(c)
	case *syntax.IfClause:
		for n := c; n != nil; n = n.Else {
			w.maybe++
			w.stmts(n.Cond)
			w.maybe--
			w.branch(n.Then)
		}
	case *syntax.WhileClause:
		w.loop(c.Cond, c.Do)
	case *syntax.ForClause:
		switch l := c.Loop.(type) {
		case *syntax.WordIter:
			for _, item := range l.Items {
				w.expand(item)
			}
			w.set(l.Name.Value, Word{}, w.text(c))
		case *syntax.CStyleLoop:
			w.arithm(l.Init)
			w.arithm(l.Cond)
			w.arithm(l.Post)
		}
		w.loop(c.Do)
	case *syntax.CaseClause:
		w.one(c.Word)
		before, after := w.at, w.at
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				w.expand(p)
			}
			w.at = before
			w.branch(item.Stmts)
			after = union(after, w.at)
		}
		w.at = after
	case *syntax.FuncDecl:
		if c.Name != nil {
			w.funcs[c.Name.Value] = true
		}
		before, from := w.at, len(*w.out)
		w.maybe++
		w.stmt(c.Body)
		w.maybe--
		// It runs where it is called, so its folder is known only while nobody changes it.
		if !same(before, w.at) {
			w.at = place{}
			for i := from; i < len(*w.out); i++ {
				(*w.out)[i].Dirs = nil
			}
		}
	case *syntax.ArithmCmd:
		w.arithm(c.X)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			w.arithm(x)
		}
	case *syntax.TestClause:
		w.test(c.X)
	case *syntax.DeclClause:
		w.declare(c)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			w.stmt(c.Stmt)
		}
	case *syntax.CoprocClause:
		at := w.at
		w.stmt(c.Stmt)
		w.at = at
	default:
		w.emit(Command{Text: w.text(cmd), Opaque: "a form of the shell that is not read here"})
	}
}

func (w *walker) binary(c *syntax.BinaryCmd) {
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		at, from := w.at, len(*w.out)
		w.stmt(c.X)
		w.at = at
		said, net := w.printed(c.X), false
		for _, left := range (*w.out)[from:] {
			net = net || left.reaches()
		}
		stdin, outer := w.stdin, w.net
		w.stdin, w.net = said, net
		w.stmt(c.Y)
		w.stdin, w.net = stdin, outer
		w.at = at
	default:
		before := w.at
		w.stmt(c.X)
		after := w.at
		if c.Op == syntax.OrStmt {
			w.at = union(before, after)
		}
		w.maybe++
		w.stmt(c.Y)
		w.maybe--
		if c.Op == syntax.OrStmt && isExit(c.Y) {
			w.at = after
			return
		}
		if c.Op == syntax.AndStmt && isCd(c.X) && !w.exists(after) || c.Op == syntax.OrStmt {
			w.at = union(w.at, union(before, after))
		} else if c.Op == syntax.AndStmt && !isCd(c.X) {
			w.at = union(w.at, after)
		}
	}
}

func isCd(s *syntax.Stmt) bool {
	call, ok := s.Cmd.(*syntax.CallExpr)
	return ok && len(call.Args) > 0 && (call.Args[0].Lit() == "cd" || call.Args[0].Lit() == "pushd")
}

func isExit(s *syntax.Stmt) bool {
	call, ok := s.Cmd.(*syntax.CallExpr)
	return ok && len(call.Args) > 0 && (call.Args[0].Lit() == "exit" || call.Args[0].Lit() == "return")
}

// printed is what a statement prints, where that is plain from its words.
func (w *walker) printed(s *syntax.Stmt) *Word {
	call, ok := s.Cmd.(*syntax.CallExpr)
	unknown := &Word{}
	if !ok || len(call.Args) == 0 || len(s.Redirs) > 0 {
		return unknown
	}
	var text []string
	out := w.out
	w.out = new([]Command) // judged already
	defer func() { w.out = out }()
	for _, a := range call.Args {
		for _, x := range w.expand(a) {
			if !x.Known || x.Glob {
				return unknown
			}
			text = append(text, x.Text)
		}
	}
	name, rest := text[0], text[1:]
	if len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		return unknown
	}
	switch {
	case name == "echo" && !strings.Contains(strings.Join(rest, ""), `\`):
		return &Word{Text: strings.Join(rest, " "), Known: true}
	case name == "printf" && len(rest) == 1 && !strings.ContainsAny(strings.ReplaceAll(rest[0], `\n`, ""), `\%`):
		return &Word{Text: strings.ReplaceAll(rest[0], `\n`, "\n"), Known: true}
	}
	return unknown
}

// redirects are the files that a statement opens, and what it finds on its
// standard input where that is a here-document.
func (w *walker) redirects(s *syntax.Stmt) (files []File, stdin *Word) {
	for _, r := range s.Redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			body := Word{Known: true}
			if r.Hdoc != nil {
				quoted := isQuoted(r.Word)
				body = w.here(r.Hdoc, quoted)
			}
			stdin = &body
			continue
		case syntax.WordHdoc:
			body := w.one(r.Word)
			stdin = &body
			continue
		}
		words := w.expand(r.Word)
		to := Word{}
		if len(words) == 1 {
			to = words[0]
		}
		if r.Op == syntax.DplIn || r.Op == syntax.DplOut {
			if to.Known && isDescriptor(to.Text) || !to.Known && r.Op == syntax.DplIn {
				if !to.Known {
					stdin = &Word{}
				}
				continue
			}
		}
		if to.Known && isStream(to.Text) {
			continue
		}
		write := r.Op != syntax.RdrIn && r.Op != syntax.DplIn
		if !write || r.Op == syntax.RdrInOut {
			stdin = &Word{}
		}
		files = append(files, File{Path: to, Write: write})
	}
	return files, stdin
}

func isQuoted(word *syntax.Word) bool {
	if len(word.Parts) != 1 {
		return true
	}
	l, ok := word.Parts[0].(*syntax.Lit)
	return !ok || strings.Contains(l.Value, `\`)
}

func isDescriptor(s string) bool {
	return strings.Trim(s, "0123456789") == "" || s == "-" || strings.HasSuffix(s, "-") && strings.Trim(s[:len(s)-1], "0123456789") == ""
}

// isStream: a name that opens no file.
func isStream(path string) bool {
	switch path {
	case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/zero", "/dev/tty":
		return true
	}
	n, ok := strings.CutPrefix(path, "/dev/fd/")
	return ok && n != "" && strings.Trim(n, "0123456789") == ""
}
