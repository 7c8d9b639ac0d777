// Package policy says whether a step may run: allow, ask or deny, and which
// rule says so.
//
// Rules are written Tool or Tool(spec) in the lists allow, ask and deny:
//
//	Bash(git status:*)   commands that begin with these words
//	Bash(npm run test)   exactly this command
//	Read(./secrets/**)   files, gitignore-style: //x absolute, ~/x home,
//	Edit(/src/**)        /x from the workspace root, x from the working folder
//	WebFetch(domain:example.com)  hosts that commands may reach; *.example.com
//	                     is all names below
//	mcp__server__tool    a tool of an MCP server; mcp__server and mcp__server__*
//	                     are all of them
//
// The strictest rule that matches wins, wherever it stands; no tier can loosen
// another's ask or deny, and what is built in (built-in rules, protected files,
// secrets) cannot be loosened either. A command is judged by every simple
// command in it (policy/shell) and by what is known of programs
// (policy/programs); what cannot be reduced to plain words is asked.
//
// In files the lists stand in [permissions]; an item is a string or a table
// {rule, reason, match = […], not_match = […]}, whose examples are checked when
// the file is loaded. A file with an error is not used at all.
package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sort"

	v1 "harness/contract/harness/v1"
)

// Options says where rules come from and what holds where none matches.
type Options struct {
	AdminFiles            []string
	UserFile, ProjectFile string // "": absent or not trusted
	PolicyFile            string // of --policy
	Allow, Ask, Deny      []string
	Auto                  bool // what no rule names runs where the sandbox enforces in full
	AskEdits              bool // edits in the workspace are asked
	Plan                  bool // reads only
	Unsandboxed           bool // commands run without a sandbox, as the admin's allow_unsandboxed permits
	AllowAll              bool // what would be asked is allowed, as the admin's allow_all permits
	Examples              bool // a rule whose example does not hold is no error: Policy.Examples says so
	Workspace, Home       string
}

// Policy is a set of rules. It does not change: Narrow and Grant return another.
type Policy struct {
	opts        Options
	root        string // the workspace without symlinks
	home        string
	rules       []rule
	byTool      map[string][]*rule
	sources     []string
	unsandboxed bool // the admin permits commands without a sandbox
	allowAll    bool // the admin permits that nothing is asked
	private     []netip.Prefix
	newDomains  verdict // on hosts that no rule names, where commands have a proxy: ask, else deny
	safety      *v1.Safety
	version     string
	reads       bool     // there are Read rules that reach the sandbox
	tree        *tree    // what they match, shared by all that come of this policy
	denied      *denials // deny rules as the exec gate needs them
}

// Load reads every source of rules. Any error in one means no policy.
func Load(o Options) (*Policy, error) {
	p := &Policy{opts: o, root: physical(o.Workspace), home: o.Home, tree: new(tree)}
	if p.root == "" {
		return nil, fmt.Errorf("policy: the workspace is not given")
	}
	p.rules = append(p.rules, builtIn()...)
	p.sources = append(p.sources, fmt.Sprintf("built-in: %d rules", len(p.rules)))
	for _, f := range o.AdminFiles {
		if err := p.file("admin", f, true); err != nil {
			return nil, err
		}
	}
	for _, f := range []struct{ tier, path string }{{"user", o.UserFile}, {"project", o.ProjectFile}, {"--policy", o.PolicyFile}} {
		if err := p.file(f.tier, f.path, f.tier == "--policy"); err != nil {
			return nil, err
		}
	}
	for _, f := range []struct {
		flag  string
		list  verdict
		rules []string
	}{{"--allow", allow, o.Allow}, {"--ask", ask, o.Ask}, {"--deny", deny, o.Deny}} {
		for _, text := range f.rules {
			r, err := parseRule(text, f.list)
			if err != nil {
				return nil, fmt.Errorf("flag %s: %w", f.flag, err)
			}
			r.source = "flag " + f.flag
			p.rules = append(p.rules, r)
		}
	}
	if n := len(o.Allow) + len(o.Ask) + len(o.Deny); n > 0 {
		p.sources = append(p.sources, fmt.Sprintf("flags: %d rules", n))
	}
	switch {
	case o.Unsandboxed && !p.unsandboxed:
		return nil, notPermitted("--sandbox none", "allow_unsandboxed")
	case o.AllowAll && !p.allowAll:
		return nil, notPermitted("--allow-all", "allow_all")
	}
	p.seal()
	if o.Examples {
		return p, nil
	}
	for _, e := range p.Examples() {
		if !e.Holds {
			return nil, errors.New(e.String())
		}
	}
	return p, nil
}

func (p *Policy) file(tier, path string, only bool) error {
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) && tier != "--policy" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	f, err := parseFile(path, data, only)
	if err != nil {
		return err
	}
	if f.unsandboxed != "" && tier != "admin" {
		return fmt.Errorf("%s: allow_unsandboxed stands in the admin's policy only, /etc/harness/policy.toml", f.unsandboxed)
	}
	if f.allowAll != "" && tier != "admin" {
		return fmt.Errorf("%s: allow_all stands in the admin's policy only, /etc/harness/policy.toml", f.allowAll)
	}
	if f.privateAt != "" && tier != "admin" && tier != "user" {
		return fmt.Errorf("%s: private_networks stands in the admin's policy and the user's configuration only", f.privateAt)
	}
	if f.newDomainsAt != "" && tier == "project" {
		return fmt.Errorf("%s: new_domains does not stand in a project's configuration", f.newDomainsAt)
	}
	p.private = append(p.private, f.private...)
	p.newDomains = max(p.newDomains, f.newDomains)
	p.unsandboxed = p.unsandboxed || f.unsandboxed != ""
	p.allowAll = p.allowAll || f.allowAll != ""
	p.rules = append(p.rules, f.rules...)
	p.sources = append(p.sources, fmt.Sprintf("%s %s: %d rules", tier, path, len(f.rules)))
	return nil
}

// notPermitted says what a flag needs that nobody but the admin can give.
func notPermitted(flag, key string) error {
	return fmt.Errorf("%s needs %s = true under [permissions] of the admin's policy, /etc/harness/policy.toml", flag, key)
}

// Waived names what is not in force because a flag asked for it and the admin
// permits that. It belongs on every record of what runs.
func (p *Policy) Waived() (list []string) {
	if p.opts.Unsandboxed {
		list = append(list, "sandbox")
	}
	if p.opts.AllowAll {
		list = append(list, "asking")
	}
	return list
}

// Sources is one line a source of rules, strongest first.
func (p *Policy) Sources() []string { return p.sources }

// Version is a digest of all that verdicts depend on.
func (p *Policy) Version() string { return p.version }

// seal places the rules' paths and computes the version.
func (p *Policy) seal() {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %v %v %v %v %v %v %v %v\n", p.root, p.home, p.opts.Auto, p.opts.AskEdits, p.opts.Plan, p.unsandboxed, p.Waived(), p.safety, p.private, p.newDomains)
	var lines []string
	for i := range p.rules {
		p.rules[i].place(p.root, p.home)
		lines = append(lines, fmt.Sprintf("%d %s", p.rules[i].list, p.rules[i].text))
	}
	sort.Strings(lines)
	for _, l := range lines {
		fmt.Fprintln(h, l)
	}
	p.byTool = map[string][]*rule{}
	for i := range p.rules {
		p.byTool[p.rules[i].tool] = append(p.byTool[p.rules[i].tool], &p.rules[i])
	}
	p.version = hex.EncodeToString(h.Sum(nil)[:8])
	p.reads = len(p.hiding()) > 0
	p.denied = new(denials)
}

func (p *Policy) with(rules []rule) *Policy {
	q := *p
	q.rules = slices.Concat(p.rules, rules) // never the same ones: seal writes to them
	q.seal()
	return &q
}

// Narrow is p with further ask and deny rules and a safety for every step.
func (p *Policy) Narrow(askRules, denyRules []string, s *v1.Safety) (*Policy, error) {
	var rules []rule
	for list, texts := range map[verdict][]string{ask: askRules, deny: denyRules} {
		for _, text := range texts {
			r, err := parseRule(text, list)
			if err != nil {
				return nil, fmt.Errorf("%v rule of the session: %w", list, err)
			}
			r.source = "session"
			rules = append(rules, r)
		}
	}
	q := p.with(rules)
	if s != nil {
		q.safety = strictest(p.safety, s)
		q.seal()
	}
	return q, nil
}

// Grant is p with an allow rule for this session.
func (p *Policy) Grant(text string) (*Policy, error) {
	r, err := parseRule(text, allow)
	if err != nil {
		return nil, err
	}
	r.source = "session grant"
	return p.with([]rule{r}), nil
}

func strictest(a, b *v1.Safety) *v1.Safety {
	return &v1.Safety{Network: max(a.GetNetwork(), b.GetNetwork()), Writes: max(a.GetWrites(), b.GetWrites())}
}

func physical(dir string) string {
	if dir == "" {
		return ""
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	return abs
}
