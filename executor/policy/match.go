package policy

import (
	"path"
	"slices"
	"strings"

	"harness/executor/policy/programs"
	"harness/executor/policy/shell"
)

// command is a simple command with what is derived from it once.
type command struct {
	*shell.Command
	words   []shell.Word
	base    string
	texts   []string // the words; what is not known is "\x00"
	facts   programs.Program
	used    int // words that led to the facts
	globals []string
	known   bool
	parts   parts // as deny rules see it
	same    parts // and the other command that has its effect
}

func newCommand(c *shell.Command) *command {
	x := &command{Command: c, words: c.Words, texts: make([]string, 0, len(c.Words))}
	for _, w := range c.Words {
		if w.Known {
			x.texts = append(x.texts, w.Text)
		} else {
			x.texts = append(x.texts, w.Text+"\x00")
		}
	}
	if len(c.Words) > 0 {
		x.base = path.Base(x.texts[0])
		named := x.texts
		if x.base != x.texts[0] {
			named = append([]string{x.base}, x.texts[1:]...)
		}
		x.facts, x.used, x.globals, x.known = programs.Find(named)
		x.parts = split(x.texts)
		if x.known && x.facts.SameAs != "" {
			x.same = split(append(strings.Fields(x.facts.SameAs), x.texts[x.used:]...))
		}
	}
	return x
}

// parts of a command as a deny rule sees them: order, grouping and spelling of
// flags do not matter, nor do flags before a sub-command.
type parts struct {
	names   []string // the program and the words that are no flags
	flags   []string
	unknown bool
}

func (p *parts) flag(f string) {
	if !slices.Contains(p.flags, f) {
		p.flags = append(p.flags, f)
	}
}

func split(words []string) parts {
	if len(words) == 0 {
		return parts{}
	}
	base := path.Base(words[0])
	p := parts{names: make([]string, 1, len(words))}
	p.names[0] = base
	facts, _ := programs.Lookup(base)
	values, flags := facts.Valued(), true
	for i := 1; i < len(words); i++ {
		w := words[i]
		switch {
		case strings.HasSuffix(w, "\x00"):
			p.unknown = true
			p.names = append(p.names, w)
		case flags && w == "--":
			flags = false
		case flags && len(w) > 1 && w[0] == '-':
			name, _, _ := strings.Cut(w, "=")
			p.flag(programs.SameFlag(base, name))
			if w[1] != '-' && len(name) > 2 {
				for j := 1; j < len(name); j++ {
					p.flag(programs.SameFlag(base, "-"+name[j:j+1]))
				}
			}
			if programs.TakesValue(values, w) {
				i++
			}
		default:
			if sub, ok := facts.Subs[w]; ok && len(p.names) == 1 {
				values = sub.Valued()
			}
			p.names = append(p.names, w)
		}
	}
	return p
}

// forbids says whether a rule on the ask or deny list names the command: 1 it
// does, 0 it does not, -1 it cannot be excluded.
func (r *rule) forbids(c *command) int {
	if len(c.words) == 0 {
		return 0
	}
	if r.any {
		return 1
	}
	name := r.parts.names[0]
	if c.words[0].Glob {
		if ok, err := path.Match(c.base, name); ok && err == nil {
			return 1
		}
	}
	if !c.words[0].Known {
		return 0
	}
	best := r.covers(c.parts)
	if c.same.names != nil {
		if got := r.covers(c.same); got != 0 {
			best = got
		}
	}
	if best == 0 && (c.facts.Copies || runsFiles[c.base]) {
		for _, x := range c.texts[1:] {
			if path.Base(x) == name && strings.Contains(x, "/") {
				return 1 // it would be the program under another name, or without its own
			}
		}
	}
	return best
}

// runsFiles are programs that run a file that is given to them.
var runsFiles = map[string]bool{"sh": true, "bash": true, "dash": true, "zsh": true, "ksh": true, "ash": true, "python": true, "python3": true, "perl": true, "ruby": true, "node": true, "php": true, "source": true, ".": true}

func (r *rule) covers(got parts) int {
	want := &r.parts
	if got.names[0] != want.names[0] {
		return 0
	}
	missing := false
	for i, n := range want.names {
		switch {
		case i >= len(got.names):
			missing = true
		case strings.HasSuffix(got.names[i], "\x00"):
			missing = true
		case got.names[i] != n:
			return 0
		}
	}
	for _, f := range want.flags {
		if !slices.Contains(got.flags, f) && !spelled(want.names[0], f, got.flags) {
			missing = true
		}
	}
	if missing {
		if got.unknown {
			return -1
		}
		return 0
	}
	if !r.prefix && (len(got.names) != len(want.names) || len(got.flags) != len(want.flags)) {
		if got.unknown {
			return -1
		}
		return 0
	}
	return 1
}

// spelled says whether a cluster of flags, as -rf, is there as single ones, in
// whatever order and grouping. A long name behind one dash is no cluster.
func spelled(program, cluster string, flags []string) bool {
	if len(cluster) < 3 || len(cluster) > 5 || cluster[1] == '-' {
		return false
	}
	for _, letter := range cluster[1:] {
		if !slices.Contains(flags, programs.SameFlag(program, "-"+string(letter))) {
			return false
		}
	}
	return true
}
