package policy

import (
	"os"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/policy/shell"
)

// Request is one step to be judged.
type Request struct {
	Action        string
	Cmd, Cwd      string
	Env           map[string]string
	Reads, Writes []string // absolute or relative to the workspace
	Safety        *v1.Safety
	Sandboxed     bool // the sandbox enforces files, network and limits in full
	Left          bool // Writes are what a command left that no person said yes to
}

// Verdict is the decision, and the rule that an "always" would save ("": none).
type Verdict struct {
	Decision *v1.Decision
	Rule     string
	Shown    []string // files that a Read rule asks for: what a yes to this step opens
}

// finding is the verdict on one part of a step.
type finding struct {
	list                       verdict
	rule, source, reason, part string
}

func found(r *rule, part string) finding {
	return finding{list: r.list, rule: r.text, source: r.source, reason: r.reason, part: part}
}

func builtin(list verdict, reason, part string) finding {
	return finding{list: list, rule: "default", source: "built-in", reason: reason, part: part}
}

func worse(a, b finding) finding {
	if b.list > a.list || b.list == a.list && (a.rule == "default" || a.source == "built-in" && b.source != "built-in") {
		return b
	}
	return a
}

// judging is one call of Judge.
type judging struct {
	*Policy
	shown []string
	left  bool
	repos map[string]string // folders that git was looked at in, and what was found
}

// Judge decides on a step. It changes nothing and may be called by many at once.
func (policy *Policy) Judge(q Request) Verdict {
	p := &judging{Policy: policy, left: q.Left}
	q.Safety = strictest(p.safety, q.Safety)
	if q.Cwd == "" {
		q.Cwd = p.root
	} else if !strings.HasPrefix(q.Cwd, "/") {
		q.Cwd = p.root + "/" + q.Cwd
	}
	var f finding
	save := ""
	switch q.Action {
	case contract.RunCommand:
		f, save = p.script(q)
	case contract.ReadFile, contract.ListFiles, contract.Search, contract.WriteFile, contract.EditFile, contract.ApplyPatch:
		f = p.files(q)
	case contract.Diff, contract.CancelStep, contract.ReadOutput:
		f = builtin(allow, "it changes nothing", "")
	case contract.Restore, contract.WriteStdin:
		f = builtin(allow, "it belongs to steps that were allowed", "")
		if p.readOnly(q) {
			f = builtin(deny, "only reads are allowed now", "")
		}
	default:
		f, save = p.mcp(q)
	}
	return p.verdict(f, save)
}

// verdict is what comes of a finding; save is the rule that an "always" would save.
func (p *judging) verdict(f finding, save string) Verdict {
	if f.list == ask && p.opts.AllowAll {
		f.list, f.source, f.reason = allow, "flag --allow-all", strings.TrimSuffix("nothing is asked; else: "+f.reason, ": ")
	}
	if f.list != ask {
		save = ""
	}
	d := &v1.Decision{Verdict: v1.Decision_Verdict(f.list), Rule: f.rule, Source: f.source, Reason: f.reason, Part: f.part}
	return Verdict{Decision: d, Rule: save, Shown: p.shown}
}

func (p *judging) readOnly(q Request) bool {
	return p.opts.Plan || q.Safety.GetWrites() == v1.Safety_none
}

func (p *judging) files(q Request) finding {
	f := builtin(allow, "it only reads", "")
	if len(q.Writes) > 0 {
		f = finding{}
	}
	for _, path := range q.Reads {
		f = worse(f, p.path(q, path, []string{p.root}, false, false))
	}
	for _, path := range q.Writes {
		f = worse(f, p.path(q, path, []string{p.root}, true, false))
	}
	return f
}

// path judges the use of one path, from each folder that it may be relative to.
func (p *judging) path(q Request, path string, dirs []string, write, byShell bool) finding {
	var f finding
	for _, dir := range dirs {
		t, err := p.locate(path, dir)
		if err != nil {
			return builtin(deny, err.Error(), path)
		}
		f = worse(f, p.target(q, t, path, write, byShell))
	}
	return f
}

func (p *judging) target(q Request, t target, path string, write, byShell bool) finding {
	tool := "Read"
	if write {
		tool = "Edit"
	}
	f, granted := p.ruled(tool, t, path)
	if f.list == ask && !write {
		p.shown = append(p.shown, t.real)
	}
	if !write && f.list < deny && p.reads {
		f = worse(f, p.linked(t, path))
	}
	switch {
	case f.list == deny:
		return f
	case write && p.readOnly(q):
		return builtin(deny, "only reads are allowed now", path)
	case f.list == ask:
		return f
	case granted.list == allow:
		return granted
	case p.inside(t) && write && p.opts.AskEdits:
		return builtin(ask, "edits are asked", path)
	case p.inside(t):
		return builtin(allow, "it is in the workspace, and can be undone", path)
	case write && byShell && q.Sandboxed && strings.HasPrefix(t.real, "/tmp/"):
		return builtin(allow, "the sandbox has a /tmp of its own", path)
	case write || !byShell:
		return builtin(deny, "it is outside the workspace", path)
	}
	if rel, ok := below(p.home, t.real); ok && p.home != "" {
		for _, c := range homeCaches {
			if _, ok := below(c, rel); ok {
				return builtin(allow, "builds read it", path)
			}
		}
		return builtin(ask, "it is in the home, outside the workspace", path)
	}
	return builtin(allow, "it only reads", path)
}

// ruled is what the rules of a tool say of a path, and the one that allows it.
func (p *judging) ruled(tool string, t target, path string) (f, granted finding) {
	named, real := fold(t.named), fold(t.real)
	for _, r := range p.byTool[tool] {
		if r.list == allow {
			if r.any && p.inside(t) || !r.any && r.path.covers(t.real, false) {
				granted = found(r, path)
			}
		} else if r.any || r.path.covers(named, true) || real != named && r.path.covers(real, true) {
			x := found(r, path)
			if p.left && r.list == ask && r.here != nil && p.livesIn(r.here, t.real) {
				x.list, x.reason = deny, r.reason+", and no person was asked; write_file asks"
			}
			f = worse(f, x)
		}
	}
	return f, granted
}

// livesIn says whether a path is what the pattern names in a folder that is
// there already: what a step made anew, nobody works in yet.
func (p *judging) livesIn(pattern []string, path string) bool {
	parts := strings.Split(path, "/")
	for i := 1; i < len(parts); i++ {
		if doublestar.MatchUnvalidated(fold(strings.Join(pattern, "/")), fold(strings.Join(parts[i:], "/"))) {
			info, err := os.Stat(strings.Join(parts[:i], "/") + "/")
			return err == nil && info.IsDir()
		}
	}
	return false
}

// linked holds a file with several names against the rules on its others.
func (p *judging) linked(t target, path string) (f finding) {
	if id, ok := inodeOf(t.real); !ok || id.links < 2 {
		return f
	}
	for _, h := range p.tree.find(p.Policy, p.hiding(), nil) {
		if h.path == t.real {
			if h.list == ask {
				p.shown = append(p.shown, t.real)
			}
			f = worse(f, finding{list: h.list, rule: h.rule, source: h.source, reason: h.reason, part: path})
		}
	}
	return f
}

// script judges every simple command of a command line.
func (p *judging) script(q Request) (finding, string) {
	cmd := strings.TrimSpace(q.Cmd)
	for _, r := range cmd {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == 0x200b || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return builtin(ask, "it has characters that do not show", ""), ""
		}
	}
	s := shell.Analyse(q.Cmd, shell.Env{Cwd: q.Cwd, Home: p.home, Vars: q.Env})
	f := builtin(allow, "it does nothing", "")
	f.list = none
	if s.Err != "" {
		f = builtin(ask, "it cannot be read as a script: "+s.Err, "")
	}
	for i := range p.rules {
		if r := &p.rules[i]; r.tool == "Read" && r.any && r.list >= ask {
			f = worse(f, found(r, "")) // whatever runs reads files
		}
	}
	for name, value := range q.Env {
		if why := shell.Dangerous(name, shell.Word{Text: value, Known: true}); why != "" {
			f = worse(f, builtin(ask, why, name))
		}
	}
	for i := range s.Commands {
		f = worse(f, p.command(q, newCommand(&s.Commands[i])))
	}
	if f.list == none {
		f.list = allow
	}
	if f.list == ask {
		for i := range p.rules {
			if r := &p.rules[i]; r.list == allow && r.tool == "Bash" && !r.any && !r.prefix && r.spec == cmd && f.source == "built-in" && f.rule == "default" && !p.readOnly(q) {
				return found(r, ""), ""
			}
		}
	}
	if f.list == ask && f.rule == "default" && !strings.HasSuffix(cmd, "*") {
		return f, saved(s, cmd)
	}
	return f, ""
}

// saved is the narrowest rule that would have allowed the command.
func saved(s shell.Script, cmd string) string {
	if len(s.Commands) == 1 && len(s.Commands[0].Words) >= 2 {
		if w := s.Commands[0].Words; harmlessPrefix[w[0].Text+" "+w[1].Text] {
			if words, ok := plainWords(cmd); ok {
				return "Bash(" + words[0] + " " + words[1] + ":*)"
			}
		}
	}
	// What a rule's own text means would be read again, unless nothing in it is special to a rule.
	rule := "Bash(" + cmd + ")"
	if first, _, _ := strings.Cut(cmd, " "); cmd != "" && !strings.ContainsAny(first, "*?") && !strings.HasSuffix(cmd, "*") {
		return rule
	}
	if _, err := parseRule(rule, allow); err != nil {
		return ""
	}
	return rule
}

// harmlessPrefix lists beginnings that are safe with any further words.
var harmlessPrefix = map[string]bool{"git add": true, "git switch": true}
