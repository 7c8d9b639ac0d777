package policy

import (
	"fmt"

	"harness/executor/policy/shell"
)

// Example is one that a rule carries, and whether it holds.
type Example struct {
	Rule, Source, Text string
	Match              bool // the rule is to match the text
	Holds              bool
}

func (e Example) String() string {
	if e.Match {
		return fmt.Sprintf("%s: the rule %s does not match its example %q", e.Source, e.Rule, e.Text)
	}
	return fmt.Sprintf("%s: the rule %s matches %q, which it should not", e.Source, e.Rule, e.Text)
}

// Examples tries the examples of every rule.
func (p *Policy) Examples() (list []Example) {
	for i := range p.rules {
		r := &p.rules[i]
		for _, text := range r.match {
			list = append(list, Example{r.text, r.source, text, true, p.hits(r, text)})
		}
		for _, text := range r.notMatch {
			list = append(list, Example{r.text, r.source, text, false, !p.hits(r, text)})
		}
	}
	return list
}

// hits says whether a rule names a command, a path, a host or a tool.
func (p *Policy) hits(r *rule, text string) bool {
	switch r.tool {
	case "Read", "Edit":
		t, err := (&judging{Policy: p}).locate(text, p.root)
		return err == nil && (r.any || r.path.covers(t.named, false) || r.list != allow && r.path.covers(fold(t.named), true))
	case "Bash":
		s := shell.Analyse(text, shell.Env{Cwd: p.root, Home: p.home})
		for i := range s.Commands {
			c := newCommand(&s.Commands[i])
			if len(c.words) > 0 && (r.list == allow && r.allows(c) || r.list != allow && r.forbids(c) == 1) {
				return true
			}
		}
		return false
	}
	return r.any || r.spec == text || r.spec == "domain:"+text
}
