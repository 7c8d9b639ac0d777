package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// builtins are words that a shell does itself, so that no file of that name runs
// (POSIX XCU 2.9.1 and 2.4, Bash Reference Manual 4 and 3.2).
var builtins = strings.Fields(`! . : [ [[ { } alias bg bind break builtin caller case cd command compgen complete compopt continue coproc
	declare dirs disown do done echo elif else enable esac eval exec exit export false fc fg fi for function getopts hash help history
	if in jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return select set shift shopt source suspend
	test then time times trap true type typeset ulimit umask unalias unset until wait while`)

// Plain is the words of a command line that is one program with literal
// arguments and nothing else, so that a shell would only start it; nil for any other.
func Plain(src string) []string {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(src), "")
	if err != nil || len(file.Stmts) != 1 {
		return nil
	}
	s := file.Stmts[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Negated || s.Background || s.Coprocess || s.Disown || len(s.Redirs) > 0 || len(call.Assigns) > 0 {
		return nil
	}
	words := make([]string, 0, len(call.Args))
	for _, w := range call.Args {
		text, ok := literal(w)
		if !ok {
			return nil
		}
		words = append(words, text)
	}
	if contains(builtins, words[0]) || strings.Contains(words[0], "=") {
		return nil
	}
	return words
}

// literal is a word that no expansion touches.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, "~*?[]{}\\!^#\x00") {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				l, ok := q.(*syntax.Lit)
				if !ok || p.Dollar || strings.ContainsAny(l.Value, "\\!\x00") {
					return "", false
				}
				b.WriteString(l.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}
