package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

// Imported is what rules of another agent come to here.
type Imported struct {
	rules []rule
	Notes []string // what could not be translated, with file and line
}

// Import translates a Claude Code settings file (.json, its permissions) or
// codex rules (.rules, .codexpolicy: prefix_rule) into rules of this program.
// What has no equal here is left out and named.
func Import(file string, data []byte) (*Imported, error) {
	x := &Imported{}
	switch filepath.Ext(file) {
	case ".json":
		return x, x.claude(file, data)
	case ".rules", ".codexpolicy":
		return x, x.codex(file, string(data))
	}
	return nil, fmt.Errorf("%s: Claude Code's settings end in .json, codex rules in .rules or .codexpolicy", file)
}

func (x *Imported) note(file string, line int, format string, a ...any) {
	x.Notes = append(x.Notes, fmt.Sprintf("%s:%d: %s", file, line, fmt.Sprintf(format, a...)))
}

// lineOf is where a text stands first.
func lineOf(data []byte, text string) int {
	quoted, _ := json.Marshal(text)
	if i := bytes.Index(data, quoted); i >= 0 {
		return 1 + bytes.Count(data[:i], []byte("\n"))
	}
	return 1
}

// claude reads the permissions of a settings file. Format: the vendor's
// reference of settings.json, permissions.
func (x *Imported) claude(file string, data []byte) error {
	var s struct {
		Permissions struct {
			Allow, Ask, Deny      []string
			DefaultMode           string
			AdditionalDirectories []string
		}
	}
	if err := json.Unmarshal(data, &s); err != nil {
		line := 1
		if e, ok := err.(*json.SyntaxError); ok {
			line += bytes.Count(data[:min(int(e.Offset), len(data))], []byte("\n"))
		}
		return fmt.Errorf("%s:%d: %w", file, line, err)
	}
	p := s.Permissions
	for _, l := range []struct {
		list  verdict
		rules []string
	}{{allow, p.Allow}, {ask, p.Ask}, {deny, p.Deny}} {
		for _, text := range l.rules {
			if why := x.claudeRule(file, data, text, l.list); why != "" {
				x.note(file, lineOf(data, text), "left out: %s %s: %s", l.list, text, why)
			}
		}
	}
	switch p.DefaultMode {
	case "", "default", "acceptEdits": // edits in the workspace are allowed here, since each can be undone
	case "plan":
		x.note(file, lineOf(data, "plan"), "left out: defaultMode plan; --plan is that")
	default:
		x.note(file, lineOf(data, p.DefaultMode), "left out: defaultMode %s; --auto runs what no rule names where the sandbox enforces all", p.DefaultMode)
	}
	for _, d := range p.AdditionalDirectories {
		x.note(file, lineOf(data, d), "left out: additionalDirectories %s; commands work in one workspace", d)
	}
	return nil
}

func (x *Imported) claudeRule(file string, data []byte, text string, list verdict) (why string) {
	r, err := parseRule(text, list)
	switch {
	case err != nil:
		return strings.TrimPrefix(err.Error(), fmt.Sprintf("the rule %q: ", text))
	case r.tool == "Bash" && !r.any && r.words == nil && strings.ContainsAny(r.spec, "*"):
		return "a * stands only at the end of a command"
	case r.tool == "Bash" && r.any && list == allow:
		x.note(file, lineOf(data, text), "allow %s counts only where the sandbox enforces in full", text)
	}
	r.source = fmt.Sprintf("%s:%d", file, lineOf(data, text))
	x.rules = append(x.rules, r)
	return ""
}

// TOML is the rules as a policy file, with where each comes from.
func (x *Imported) TOML() string {
	var b strings.Builder
	b.WriteString("[permissions]\n")
	for _, list := range []verdict{allow, ask, deny} {
		source, any := "", false
		for _, r := range x.rules {
			if r.list != list {
				continue
			}
			if !any {
				fmt.Fprintf(&b, "%v = [\n", list)
				any = true
			}
			if file, _, _ := strings.Cut(r.source, ":"); file != source {
				source = file
				fmt.Fprintf(&b, "  # from %s\n", file)
			}
			b.WriteString("  " + r.toml() + ",\n")
		}
		if any {
			b.WriteString("]\n")
		}
	}
	return b.String()
}

func (r *rule) toml() string {
	if r.reason == "" && r.match == nil && r.notMatch == nil {
		return quote(r.text)
	}
	parts := []string{"rule = " + quote(r.text)}
	if r.reason != "" {
		parts = append(parts, "reason = "+quote(r.reason))
	}
	for _, l := range []struct {
		key  string
		list []string
	}{{"match", r.match}, {"not_match", r.notMatch}} {
		var texts []string
		for _, t := range l.list {
			texts = append(texts, quote(t))
		}
		if texts != nil {
			parts = append(parts, l.key+" = ["+strings.Join(texts, ", ")+"]")
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// quote is a basic string of TOML.
func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Add takes in what another file came to.
func (x *Imported) Add(y *Imported) {
	x.rules, x.Notes = append(x.rules, y.rules...), append(x.Notes, y.Notes...)
}
