package action

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"unicode"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// matcher finds the lines that a pattern matches. Like grep it looks at one
// line at a time: nothing matches across the end of a line.
type matcher struct {
	re      *regexp.Regexp
	literal []byte // is in every match; nil: none is known
	whole   bool   // the literal is the pattern
	crosses bool   // the pattern could match the end of a line
}

func newMatcher(a *v1.SearchArgs) (*matcher, error) {
	expr, flags := a.Pattern, "(?m)"
	if a.Literal {
		expr = regexp.QuoteMeta(expr)
	}
	if a.IgnoreCase {
		flags = "(?mi)"
	}
	re, err := regexp.Compile(flags + expr)
	if err != nil {
		var se *syntax.Error
		msg := err.Error()
		if errors.As(err, &se) {
			msg = se.Code.String() + ": " + se.Expr
		}
		return nil, contract.Errorf(v1.Error_invalid, "%q is no regular expression: %s", a.Pattern, msg).WithField("args.pattern").
			WithHint("escape it, or set literal")
	}
	m := &matcher{re: re}
	if tree, err := syntax.Parse(flags+expr, syntax.Perl); err == nil {
		tree = tree.Simplify()
		m.crosses = crosses(tree)
		if l := required(tree); !bytes.ContainsRune(l, '\n') {
			m.literal, m.whole = l, tree.Op == syntax.OpLiteral && l != nil
		}
	}
	return m, nil
}

// next is the next matching line from at, the begin of a line, on: where it
// begins and where it ends; -1 where there is none.
func (m *matcher) next(data []byte, at int) (from, to int) {
	for at < len(data) {
		hit := at
		switch {
		case m.literal != nil:
			i := bytes.Index(data[at:], m.literal)
			if i < 0 {
				return -1, -1
			}
			hit += i
		case !m.crosses:
			loc := m.re.FindIndex(data[at:])
			if loc == nil {
				return -1, -1
			}
			hit += loc[0]
		}
		from, to = line(data, hit)
		if from >= len(data) { // an empty match after the last line
			return -1, -1
		}
		if m.whole || m.literal == nil && !m.crosses || m.re.Match(data[from:to]) {
			return from, to
		}
		at = to + 1
	}
	return -1, -1
}

// line is where the line around a position begins and ends.
func line(data []byte, at int) (from, to int) {
	from, to = bytes.LastIndexByte(data[:at], '\n')+1, len(data)
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		to = at + i
	}
	return from, to
}

// required is the longest text that is in every match of a pattern, nil where none is sure.
func required(re *syntax.Regexp) []byte {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			for _, r := range re.Rune {
				if unicode.SimpleFold(r) != r {
					return nil
				}
			}
		}
		return []byte(string(re.Rune))
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpConcat:
		var best []byte
		for _, sub := range re.Sub {
			if l := required(sub); len(l) > len(best) {
				best = l
			}
		}
		return best
	}
	return nil
}

// crosses says whether a pattern could match the end of a line, or looks at the
// begin or end of the whole text.
func crosses(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpAnyChar, syntax.OpBeginText, syntax.OpEndText:
		return true
	case syntax.OpLiteral:
		return bytes.ContainsRune([]byte(string(re.Rune)), '\n')
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			if re.Rune[i] <= '\n' && '\n' <= re.Rune[i+1] {
				return true
			}
		}
	}
	for _, sub := range re.Sub {
		if crosses(sub) {
			return true
		}
	}
	return false
}
