package shell

import (
	"strings"

	"harness/executor/policy/programs"
)

// unwrap emits a command that runs another, and then the other.
func (w *walker) unwrap(cmd Command, base string, wrap *programs.Wrap) {
	switch {
	case wrap.Markers != "":
		w.marked(cmd, wrap)
		return
	case wrap.Shell:
		w.shell(cmd, wrap)
		return
	}
	in, err := peel(cmd.Words, wrap)
	outer := cmd
	outer.Wraps = !wrap.Own
	for _, f := range in.outputs {
		outer.Files = append(outer.Files, File{Path: f, Write: true})
	}
	if err != "" {
		outer.Opaque, outer.Wraps = err, false
		w.emit(outer)
		return
	}
	w.emit(outer)
	at := w.at
	switch {
	case wrap.Elsewhere:
		w.at = place{}
	case in.dir != nil && in.dir.Known && (w.at.dirs != nil || strings.HasPrefix(in.dir.Text, "/")):
		w.at = place{dirs: w.from(in.dir.Text)}
	case in.dir != nil:
		w.at = place{}
	}
	if base != "eval" {
		defer func() { w.at = at }()
	}
	inner := Command{Text: cmd.Text, Words: in.words, Assigns: append(cmd.Assigns[:len(cmd.Assigns):len(cmd.Assigns)], in.assigns...), Loose: cmd.Loose}
	for _, a := range in.assigns {
		if why := Dangerous(a.Name, a.Value); why != "" && a.Name != "PATH" {
			inner.Loose = why
		} else if why != "" && !systemPath(a.Value) {
			inner.Loose = why
		}
	}
	if wrap.Script || in.code != nil {
		w.joined(inner, in, wrap)
		return
	}
	if len(inner.Words) == 0 {
		return
	}
	if wrap.Appends {
		inner.Words = appended(inner.Words, in.replace)
	}
	w.command(inner)
}

func systemPath(v Word) bool {
	if !v.Known || v.Text == "" {
		return false
	}
	for dir := range strings.SplitSeq(v.Text, ":") {
		switch dir {
		case "/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin":
		default:
			return false
		}
	}
	return true
}

// joined walks words that a program hands to a shell as one text.
func (w *walker) joined(cmd Command, in peeled, wrap *programs.Wrap) {
	code := ""
	words := in.words
	if in.code != nil {
		words = append([]Word{*in.code}, in.words...)
		if wrap.Code != "-S --split-string" {
			words = words[:1]
		}
	}
	for i, x := range words {
		if wrap.Appends && strings.HasPrefix(x.Text, ":::") {
			break
		}
		if !x.Known {
			cmd.Opaque = "the code that it runs is not plain"
			w.emit(cmd)
			return
		}
		if i > 0 {
			code += " "
		}
		code += x.Text
	}
	if code == "" {
		return
	}
	if wrap.Appends {
		code += ` "$appended"`
	}
	from := len(*w.out)
	w.code(code, cmd)
	for i := from; i < len(*w.out); i++ {
		if c := &(*w.out)[i]; cmd.Loose != "" && c.Loose == "" {
			c.Loose = cmd.Loose
		}
	}
}

// appended is the words of a command that gets more from its input.
func appended(words []Word, replace string) []Word {
	if replace == "" {
		return append(words[:len(words):len(words)], Word{})
	}
	all := append([]Word(nil), words...)
	for i, x := range all {
		if before, _, found := strings.Cut(x.Text, replace); found {
			all[i] = Word{Text: before}
		}
	}
	return all
}

// peeled is a wrapper's own words taken off.
type peeled struct {
	words   []Word
	assigns []Assign
	code    *Word
	dir     *Word
	outputs []Word
	replace string // xargs -I
}

func peel(words []Word, wrap *programs.Wrap) (in peeled, err string) {
	facts := programs.Program{Values: wrap.Values}
	skip, flags := wrap.Skip, true
	i := 1
	// value of a flag: attached, or the next word.
	value := func(flag, word string) *Word {
		if _, after, ok := strings.Cut(word, "="); ok && strings.HasPrefix(word, "--") {
			return &Word{Text: after, Known: words[i].Known}
		}
		if at := strings.Index(word, flag[1:]); len(flag) == 2 && at > 0 && at+1 < len(word) {
			return &Word{Text: word[at+1:], Known: words[i].Known}
		}
		if i+1 < len(words) {
			i++
			return &words[i]
		}
		return &Word{Known: true}
	}
	for ; i < len(words); i++ {
		x := words[i]
		name, assigned, isAssign := strings.Cut(x.Text, "=")
		switch {
		case wrap.Assigns && isAssign && !strings.HasPrefix(name, "-") && name != "":
			in.assigns = append(in.assigns, Assign{Name: name, Value: Word{Text: assigned, Known: x.Known}})
		case flags && x.Known && x.Text == "--":
			flags = false
		case flags && len(x.Text) > 1 && x.Text[0] == '-':
			if f := facts.HasFlag(wrap.Changes, x.Text); f != "" {
				return in, f + " changes what it runs"
			} else if f := facts.HasFlag(wrap.Code, x.Text); f != "" {
				in.code = value(f, x.Text)
			} else if f := facts.HasFlag(wrap.Dirs, x.Text); f != "" {
				in.dir = value(f, x.Text)
			} else if f := facts.HasFlag(wrap.Output, x.Text); f != "" {
				in.outputs = append(in.outputs, *value(f, x.Text))
			} else if wrap.Appends && strings.HasPrefix(x.Text, "-I") || wrap.Appends && strings.HasPrefix(x.Text, "--replace") {
				in.replace = "{}"
				if v := value("-I", x.Text); v.Text != "" && !strings.HasPrefix(x.Text, "--") {
					in.replace = v.Text
				}
			} else if wrap.Appends && (x.Text == "-i" || strings.HasPrefix(x.Text, "-i")) {
				in.replace = "{}"
			} else if programs.TakesValue(wrap.Values, x.Text) {
				i++
			}
		case !x.Known && x.Text == "":
			return in, "the words before its command are not plain"
		case skip > 0:
			skip--
		default:
			in.words = words[i:]
			return in, ""
		}
	}
	return in, ""
}

// marked emits a command whose flags are followed by another (find -exec).
func (w *walker) marked(cmd Command, wrap *programs.Wrap) {
	w.emit(cmd)
	words := cmd.Words
	for i := 1; i < len(words); i++ {
		if !isMarker(wrap.Markers, words[i].Text) {
			continue
		}
		end := i + 1
		for end < len(words) && words[end].Text != ";" && !(words[end].Text == "+" && words[end-1].Text == "{}") {
			end++
		}
		if end > i+1 {
			inner := Command{Text: cmd.Text, Words: words[i+1 : end : end], Loose: cmd.Loose}
			at := w.at
			if strings.HasSuffix(words[i].Text, "dir") {
				w.at = place{}
			}
			w.found(inner)
			w.at = at
		}
		i = end
	}
}

func isMarker(list, word string) bool {
	for m := range strings.FieldsSeq(list) {
		if m == word {
			return true
		}
	}
	return false
}

// found walks a command of find, in whose code {} stands for names of files.
func (w *walker) found(inner Command) {
	if p := programs.WrapOf(inner.Words[0].Text); p != nil && p.Shell {
		for i, x := range inner.Words[:len(inner.Words)-1] {
			if i > 0 && strings.HasPrefix(x.Text, "-") && strings.Contains(inner.Words[i+1].Text, "{}") {
				inner.Opaque = "the names of files become code"
				w.emit(inner)
				return
			}
		}
	}
	w.command(inner)
}

// shell walks a shell that is given code, a script file, or its input.
func (w *walker) shell(cmd Command, wrap *programs.Wrap) {
	words, code, input := cmd.Words, false, false
	i := 1
	for ; i < len(words); i++ {
		t := words[i].Text
		if !words[i].Known {
			cmd.Opaque = "the shell's words are not plain"
			w.emit(cmd)
			return
		}
		if len(t) < 2 || t[0] != '-' && t[0] != '+' {
			break
		}
		if t == "--" {
			i++
			break
		}
		if isMarker(wrap.Changes, t) {
			cmd.Loose = t + " names a file that the shell runs"
		}
		if t[0] == '-' && t[1] != '-' {
			code = code || strings.Contains(t[1:], "c")
			input = input || strings.Contains(t[1:], "s")
		}
		if programs.TakesValue(wrap.Values, t) {
			i++
		}
	}
	at, vars, stdin := w.at, w.vars, w.stdin
	switch {
	case code && i < len(words):
		if !words[i].Known {
			cmd.Opaque = "the code that it runs is not plain"
			w.emit(cmd)
			return
		}
		cmd.Wraps = cmd.Loose == ""
		w.emit(cmd)
		w.inside(words[i].Text, cmd)
	case code || i < len(words) && !input && words[i].Text != "-":
		w.emit(cmd)
	case stdin != nil && stdin.Known:
		cmd.Wraps = cmd.Loose == ""
		w.emit(cmd)
		w.stdin = nil
		w.inside(stdin.Text, cmd)
	default:
		cmd.Opaque, cmd.Fetched = "it runs whatever its input says", w.net
		w.emit(cmd)
	}
	w.at, w.vars, w.stdin = at, vars, stdin
}

// inside walks the code of another shell: its variables are its own.
func (w *walker) inside(code string, cmd Command) {
	vars := map[string]*Word{}
	for name := range w.vars {
		vars[name] = nil
	}
	w.vars = vars
	from := len(*w.out)
	w.code(code, cmd)
	for i := from; i < len(*w.out); i++ {
		if c := &(*w.out)[i]; cmd.Loose != "" && c.Loose == "" {
			c.Loose = cmd.Loose
		}
	}
}
