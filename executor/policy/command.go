package policy

import (
	"path"
	"path/filepath"
	"strings"

	v1 "harness/contract/harness/v1"
	"harness/executor/policy/programs"
	"harness/executor/policy/shell"
)

// command judges one simple command.
func (p *judging) command(q Request, c *command) finding {
	f := finding{}
	granted := finding{}
	for _, r := range p.byTool["Bash"] {
		if r.list == allow {
			if r.any && !q.Sandboxed && !p.unsandboxed {
				continue // everything is allowed only where something holds it
			}
			if len(c.words) > 0 && r.allows(c) {
				granted = found(r, c.Text)
			}
			continue
		}
		switch r.forbids(c) {
		case 1:
			f = worse(f, found(r, c.Text))
		case -1:
			x := found(r, c.Text)
			x.list = ask
			f = worse(f, x)
		}
	}
	if c.Fetched {
		f = worse(f, builtin(deny, "it runs what the network sends", c.Text))
	}
	f = worse(f, p.opened(q, c))
	why := c.Opaque
	if why == "" {
		why = c.Loose
	}
	if why != "" {
		f = worse(f, builtin(ask, why, c.Text))
	}
	if len(c.words) == 0 || c.Wraps {
		return worse(builtin(none, "", c.Text), f)
	}
	f = worse(f, p.operands(q, c))
	kind, doubt := p.kind(c)
	switch {
	case c.known && c.facts.Network && q.Safety.GetNetwork() == v1.Safety_deny:
		return worse(f, builtin(deny, "it reaches the network, which the step does not have", c.Text))
	case kind == "reads":
		return worse(f, builtin(allow, "it only reads", c.Text))
	case p.readOnly(q) && p.opts.Plan:
		return worse(f, builtin(deny, "only reads are allowed now", c.Text))
	case granted.list == allow && doubt != "":
		return worse(f, builtin(ask, doubt, c.Text))
	case granted.list == allow && !p.within(c.Dirs):
		return worse(f, builtin(ask, "it may run outside the workspace", c.Text))
	case granted.list == allow:
		return worse(f, granted)
	case kind == "builds" && p.within(c.Dirs):
		return worse(f, builtin(allow, "it is the project's own build or test", c.Text))
	case p.opts.Auto && q.Sandboxed:
		return worse(f, builtin(allow, "no rule names it, and the sandbox holds it", c.Text))
	}
	if doubt == "" {
		doubt = "no rule names it"
	}
	return worse(f, builtin(ask, doubt, c.Text))
}

func (p *judging) within(dirs []string) bool {
	for _, d := range dirs {
		if t, err := p.locate(d, p.root); err != nil || !p.inside(t) {
			return false
		}
	}
	return len(dirs) > 0
}

// opened judges the files that redirections open.
func (p *judging) opened(q Request, c *command) (f finding) {
	for _, file := range c.Files {
		switch {
		case strings.HasPrefix(file.Path.Text, "/dev/tcp/") || strings.HasPrefix(file.Path.Text, "/dev/udp/"):
			f = worse(f, builtin(deny, "it reaches the network", c.Text))
		case !file.Path.Known || file.Path.Glob || c.Dirs == nil && !path.IsAbs(file.Path.Text):
			f = worse(f, builtin(ask, "the file that it opens is not plain", c.Text))
		default:
			f = worse(f, p.path(q, file.Path.Text, c.Dirs, file.Write, true))
		}
	}
	if f.list == allow {
		f.list = none // the command itself has to be allowed
	}
	return f
}

// operands judges the words of a command as the paths that they may be.
func (p *judging) operands(q Request, c *command) (f finding) {
	if !c.known && c.facts.Subs == nil {
		c.facts, _ = programs.Lookup(c.base)
	}
	rest := c.texts[max(c.used, 1):]
	at, dirs := c.facts.SplitOperands(rest)
	for _, d := range dirs {
		f = worse(f, p.path(q, d, c.Dirs, true, true))
	}
	for i, o := range at {
		x := strings.TrimSuffix(rest[o], "\x00")
		write := c.facts.Operands == programs.WriteAll || c.facts.Operands == programs.WriteLast && i == len(at)-1 && i > 0
		if write && x != "" {
			if t, err := p.locate(x, p.root); err == nil && t.real == p.root && c.base == "rm" {
				f = worse(f, builtin(deny, "it deletes the whole workspace", c.Text))
			}
			f = worse(f, p.path(q, x, c.Dirs, true, true))
			continue
		}
		if strings.ContainsAny(x, "/~") && x != shell.Substituted && !strings.Contains(x, "://") && c.base != "echo" && c.base != "printf" {
			if len(c.Dirs) > 0 || path.IsAbs(x) {
				dirs := c.Dirs
				if len(dirs) == 0 {
					dirs = []string{p.root}
				}
				if got := p.path(q, x, dirs, false, true); got.list > allow && (got.list == deny || path.IsAbs(x)) {
					f = worse(f, got)
				}
			}
		}
	}
	f = worse(f, p.contents(c, rest))
	if v, ok := strings.CutPrefix(strings.Join(c.texts, " "), "dd "); ok && strings.Contains(v, "of=/dev/") && !strings.Contains(v, "of=/dev/null") {
		f = worse(f, builtin(deny, "it writes to a device", c.Text))
	}
	if f.list == allow {
		f.list = none
	}
	return f
}

// notRead are the programs whose words name no file that they read.
const notRead = "echo printf test [ rm rmdir mkdir touch mv cd pushd export"

// contents holds the words of a command, bare names too, against the rules on
// reading: the sandbox hides these files, and here the command is told so.
func (p *judging) contents(c *command, rest []string) (f finding) {
	if !p.reads || has(notRead, c.base) {
		return f
	}
	dirs := c.Dirs
	if len(dirs) == 0 {
		dirs = []string{p.root}
	}
	pattern := -1
	if at, _ := c.facts.SplitOperands(rest); c.facts.Operands == programs.TextThenIn && len(at) > 0 {
		pattern = at[0]
	}
	words := c.words[len(c.words)-len(rest):]
	for i, w := range words {
		if i == pattern || !w.Known {
			continue
		}
		for _, dir := range dirs {
			for _, name := range named(w, dir) {
				if t, err := p.locate(name, dir); err == nil {
					got, _ := p.ruled("Read", t, c.Text)
					if got.list < deny {
						got = worse(got, p.linked(t, c.Text))
					}
					if got.list == ask {
						p.shown = append(p.shown, t.real)
					}
					f = worse(f, got)
				}
			}
		}
	}
	return f
}

// named is the paths that a word may stand for: itself, what it matches, and
// what stands in it behind a flag, = or @.
func named(w shell.Word, dir string) []string {
	names := []string{w.Text}
	if w.Glob {
		pattern := w.Text
		if !path.IsAbs(pattern) {
			pattern = dir + "/" + pattern
		}
		names, _ = filepath.Glob(pattern)
		return names[:min(len(names), 1000)]
	}
	if i := strings.IndexAny(w.Text, "=@"); i >= 0 && i+1 < len(w.Text) {
		names = append(names, strings.TrimLeft(w.Text[i+1:], "=@"))
	}
	if len(w.Text) > 2 && w.Text[0] == '-' && w.Text[1] != '-' {
		names = append(names, w.Text[2:])
	}
	return names
}

// kind is what a command is known to be, "reads" or "builds", else "". doubt
// is a reason why even a rule that names it is not enough.
func (p *judging) kind(c *command) (kind, doubt string) {
	name := c.words[0].Text
	if strings.Contains(name, "/") && !trusted(name) && name != "./gradlew" && name != "./mvnw" {
		return "", ""
	}
	facts, rest := c.facts, c.words[min(max(c.used, 1), len(c.words)):]
	if c.base == "git" {
		if !c.known && c.used < len(c.texts) && facts.Subs != nil {
			if _, ok := facts.Subs[c.texts[len(c.texts)-1]]; !ok && len(c.texts) > 1 && !strings.HasPrefix(c.texts[1], "-") {
				if _, ok := facts.Subs[c.texts[1]]; !ok {
					return "", "it may be an alias"
				}
			}
		}
		for i, g := range c.globals {
			if root, _ := programs.Lookup("git"); root.HasFlag(root.Runs, g) != "" {
				if g != "-c" || i+1 >= len(c.globals) || !safeSetting(c.globals[i+1]) {
					return "", "a flag of git changes what it runs"
				}
			}
		}
		if why := p.planted(c.Dirs); why != "" {
			return "", why
		}
		if len(rest) > 1 && c.texts[1] == "config" && strings.Contains(strings.ToLower(strings.Join(c.texts, " ")), "alias.") && len(rest) > 1 && !strings.HasPrefix(rest[0].Text, "--get") {
			return "", "it sets an alias"
		}
	}
	open := facts.Writes+facts.Runs+facts.Language != "" || facts.Most != 0
	operands, only, seen, valued := 0, false, false, facts.Valued()
	for i, w := range rest {
		if w.Known && w.Text == "--" {
			operands += len(rest) - i - 1
			break
		}
		if f := facts.HasFlag(facts.Runs, w.Text); f != "" {
			return "", f + " makes it run something"
		}
		if f := facts.HasFlag(facts.Writes, w.Text); f != "" {
			return "", ""
		}
		isValue := i > 0 && programs.TakesValue(valued, rest[i-1].Text)
		if !isValue && open && (!w.Known && w.Text == "" || w.Glob && strings.ContainsAny(w.Text[:1], "*?[") && dashed(c.Dirs)) {
			if facts.Reads || facts.Runs != "" {
				return "", "one of its words may be a flag"
			}
		}
		for o := range strings.FieldsSeq(facts.Only) {
			only = only || o == w.Text
		}
		if !isValue && !strings.HasPrefix(w.Text, "-") {
			operands++
			if facts.Builds && facts.Only != "" && !has(facts.Only, w.Text) {
				return "", ""
			}
			if facts.Builds && (strings.HasPrefix(w.Text, "/") || strings.HasPrefix(w.Text, "..")) && !p.within([]string{w.Text}) {
				return "", ""
			}
		}
		if !seen && facts.Language != "" && (!strings.HasPrefix(w.Text, "-") && !isValue || rest[max(i-1, 0)].Text == "-e") {
			if !w.Known || !harmless(facts.Language, w.Text) {
				return "", starts(facts.Language, w.Text)
			}
			seen = facts.Language != "sed" || !strings.HasPrefix(rest[max(i-1, 0)].Text, "-e")
		}
	}
	switch {
	case !c.known || facts.Network:
		return "", ""
	case facts.Builds:
		return "builds", ""
	case facts.Reads && only:
		return "reads", ""
	case facts.Most < 0 && operands > 0 || facts.Most > 0 && operands > facts.Most:
		return "", ""
	case facts.Reads:
		return "reads", ""
	}
	return "", ""
}

func has(list, word string) bool {
	for x := range strings.FieldsSeq(list) {
		if x == word {
			return true
		}
	}
	return false
}

func safeSetting(s string) bool {
	for ok := range strings.FieldsSeq(programs.GitSafeConfig) {
		if strings.HasPrefix(strings.ToLower(s), ok) {
			return true
		}
	}
	return false
}
