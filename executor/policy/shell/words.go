package shell

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// one is a word that the shell does not split.
func (w *walker) one(word *syntax.Word) Word {
	if word == nil {
		return Word{Known: true}
	}
	b := builder{w: w, whole: true}
	b.parts(word.Parts, false, true)
	return b.done()[0]
}

func (w *walker) here(word *syntax.Word, quoted bool) Word {
	if quoted {
		var s strings.Builder
		for _, p := range word.Parts {
			if l, ok := p.(*syntax.Lit); ok {
				s.WriteString(l.Value)
			}
		}
		return Word{Text: s.String(), Known: true}
	}
	b := builder{w: w, whole: true}
	b.parts(word.Parts, true, false)
	return b.done()[0]
}

// plain is a word that is as it is written.
func plain(word *syntax.Word) (string, bool) {
	if len(word.Parts) != 1 {
		return "", false
	}
	l, ok := word.Parts[0].(*syntax.Lit)
	if !ok || l.Value == "" || strings.ContainsAny(l.Value, "\\{*?[~") {
		return "", false
	}
	return l.Value, true
}

// expand is the words that one word of a command comes to.
func (w *walker) expand(word *syntax.Word) []Word {
	if l, plain := plain(word); plain {
		return []Word{{Text: l, Known: true}}
	}
	for _, p := range word.Parts {
		if l, ok := p.(*syntax.Lit); ok && strings.Contains(l.Value, "{") {
			return w.braces(word)
		}
	}
	return w.fields(word)
}

func (w *walker) braces(word *syntax.Word) []Word {
	split := *word
	split.Parts = append([]syntax.WordPart(nil), word.Parts...)
	if !syntax.SplitBraces(&split) {
		return w.fields(word)
	}
	var all []Word
	for x, err := range expand.BracesSeq(nil, &split) {
		if err != nil || len(all) > 256 {
			return []Word{{}}
		}
		all = append(all, w.fields(x)...)
	}
	return all
}

func (w *walker) fields(word *syntax.Word) []Word {
	b := builder{w: w}
	b.parts(word.Parts, false, true)
	return b.done()
}

// Substituted is what a process substitution, <(…), leaves as a word.
const Substituted = "/dev/fd/63"

// builder puts words together from their parts.
type builder struct {
	w       *walker
	whole   bool // not split
	words   []Word
	text    strings.Builder
	unknown bool
	glob    bool
	some    bool // a quoted or literal part: the word exists even if empty
}

func (b *builder) done() []Word {
	if b.some || b.unknown || b.text.Len() > 0 || b.whole {
		b.words = append(b.words, Word{Text: b.text.String(), Known: !b.unknown, Glob: b.glob && !b.whole})
	}
	return b.words
}

func (b *builder) add(s string) {
	if !b.unknown {
		b.text.WriteString(s)
	}
}

func (b *builder) parts(parts []syntax.WordPart, quoted, first bool) {
	for i, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			s := p.Value
			if !quoted && first && i == 0 && strings.HasPrefix(s, "~") {
				s = b.tilde(s, len(parts) == 1)
			}
			b.some = true
			b.literal(s, quoted)
		case *syntax.SglQuoted:
			b.some = true
			if p.Dollar {
				s, err := expand.Literal(nil, &syntax.Word{Parts: []syntax.WordPart{p}})
				if err != nil {
					b.unknown = true
				}
				b.add(s)
			} else {
				b.add(p.Value)
			}
		case *syntax.DblQuoted:
			b.some = true
			b.parts(p.Parts, true, false)
		case *syntax.ParamExp:
			b.param(p, quoted)
		case *syntax.CmdSubst:
			b.w.maybe++
			b.w.subshell(p.Stmts)
			b.w.maybe--
			b.unknown = true
		case *syntax.ProcSubst:
			b.w.maybe++
			b.w.subshell(p.Stmts)
			b.w.maybe--
			b.add(Substituted)
			b.some = true
		case *syntax.ArithmExp:
			b.w.arithm(p.X)
			b.number()
		case *syntax.ExtGlob:
			b.glob, b.some = true, true
			b.add("*")
		default:
			b.unknown = true
		}
	}
}

// number is a value that is not known but cannot be taken for a flag or a name.
func (b *builder) number() {
	b.add("0")
	b.unknown = true
}

func (b *builder) tilde(s string, alone bool) string {
	name, rest, slash := strings.Cut(s[1:], "/")
	if name != "" || b.w.env.Home == "" || !slash && !alone {
		b.unknown = true
		return ""
	}
	if _, set := b.w.vars["HOME"]; set {
		b.unknown = true
		return ""
	}
	b.add(b.w.env.Home)
	if slash {
		return "/" + rest
	}
	return ""
}

func (b *builder) literal(s string, quoted bool) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			switch {
			case s[i] == '\n':
			case quoted && !strings.ContainsRune("$`\"\\", rune(s[i])):
				b.add(s[i-1 : i+1])
			default:
				b.add(s[i : i+1])
			}
		default:
			if !quoted && (c == '*' || c == '?' || c == '[' && strings.Contains(s[i:], "]")) {
				b.glob = true
			}
			b.add(s[i : i+1])
		}
	}
}

func (b *builder) param(p *syntax.ParamExp, quoted bool) {
	w := b.w
	if p.Index != nil {
		w.arithm(p.Index)
	}
	if p.Slice != nil {
		w.arithm(p.Slice.Offset)
		w.arithm(p.Slice.Length)
	}
	if p.Repl != nil {
		w.one(p.Repl.Orig)
		w.one(p.Repl.With)
	}
	if p.Exp != nil {
		arg := w.one(p.Exp.Word)
		switch p.Exp.Op {
		case syntax.OtherParamOps:
			if arg.Text == "P" || !arg.Known {
				w.emit(Command{Text: w.text(p), Opaque: "${…@P} runs what is in a variable"})
			}
		case syntax.AssignUnset, syntax.AssignUnsetOrNull:
			if p.Param != nil {
				w.set(p.Param.Value, Word{}, w.text(p))
			}
		}
	}
	if p.Length || p.Param == nil {
		b.number()
		return
	}
	plain := !p.Excl && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil && p.Names == 0
	if !plain {
		b.unknown = true
		return
	}
	name := p.Param.Value
	switch name {
	case "?", "#", "$", "!", "RANDOM", "SECONDS", "UID", "EUID", "PPID", "LINENO":
		b.number()
		return
	}
	value := w.value(name)
	if !value.Known {
		b.unknown = true
		return
	}
	b.some = b.some || quoted
	if quoted || b.whole {
		b.add(value.Text)
		return
	}
	b.split(value.Text)
}

// split adds an unquoted value: blanks in it part words, patterns in it match.
func (b *builder) split(s string) {
	if strings.ContainsAny(s, "*?[") {
		b.glob = true
	}
	if !strings.ContainsAny(s, " \t\n") {
		b.add(s)
		return
	}
	for i, f := range strings.Fields(s) {
		if i > 0 || strings.ContainsRune(" \t\n", rune(s[0])) {
			b.words, b.some = b.flush(), false
		}
		b.add(f)
	}
	if strings.ContainsRune(" \t\n", rune(s[len(s)-1])) {
		b.words, b.some = b.flush(), false
	}
}

func (b *builder) flush() []Word {
	words := b.words
	if b.some || b.unknown || b.text.Len() > 0 {
		words = append(words, Word{Text: b.text.String(), Known: !b.unknown, Glob: b.glob})
	}
	b.text.Reset()
	b.unknown = false
	return words
}

// value is what a variable holds.
func (w *walker) value(name string) Word {
	if v, set := w.vars[name]; set {
		if v == nil {
			return Word{}
		}
		return *v
	}
	switch {
	case name == "HOME" && w.env.Home != "":
		return Word{Text: w.env.Home, Known: true}
	case name == "PWD" && len(w.at.dirs) == 1:
		return Word{Text: w.at.dirs[0], Known: true}
	}
	return Word{}
}
