package policy

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// parsed is what a file says.
type parsed struct {
	rules        []rule
	private      []netip.Prefix
	privateAt    string // where they stand
	newDomains   verdict
	newDomainsAt string
	unsandboxed  string // where it permits commands without a sandbox; "" it does not
	allowAll     string // where it permits that nothing is asked; "" it does not
}

// reader reads one file, and knows the line of all that it finds.
type reader struct {
	unstable.Parser
	name string
}

func (p *reader) errorf(n *unstable.Node, format string, a ...any) error {
	return fmt.Errorf("%s:%d: %w", p.name, p.line(n), fmt.Errorf(format, a...))
}

func (p *reader) line(n *unstable.Node) int {
	for n != nil && n.Raw.Length == 0 {
		if n.Kind == unstable.KeyValue || n.Kind == unstable.Table || n.Kind == unstable.ArrayTable {
			it := n.Key()
			if it.Next() {
				n = it.Node()
				continue
			}
		}
		n = n.Child()
	}
	if n == nil {
		return 1
	}
	return p.Shape(n.Raw).Start.Line
}

// parseFile reads the [permissions] of a TOML file. only: there may be nothing else.
func parseFile(name string, data []byte, only bool) (f parsed, err error) {
	p := &reader{name: name}
	p.Reset(data)
	table := ""
	for p.NextExpression() {
		e := p.Expression()
		key := keyOf(e)
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = key
			if only && table != "permissions" || table != "permissions" && near(table, []string{"permissions"}) != "" {
				return f, p.errorf(e, "unknown table [%s]; a policy file has [permissions] only%s", table, meant(table, []string{"permissions"}))
			}
		case unstable.KeyValue:
			full := strings.TrimPrefix(table+"."+key, ".")
			name, ours := strings.CutPrefix(full, "permissions.")
			if !ours && full != "permissions" && !only {
				continue
			}
			if err := p.setting(&f, e, name); err != nil {
				return f, err
			}
		}
	}
	if err := p.Error(); err != nil {
		at := 1
		if pe, ok := err.(*unstable.ParserError); ok {
			at = p.Shape(p.Range(pe.Highlight)).Start.Line
		}
		return f, fmt.Errorf("%s:%d: not valid TOML: %v", name, at, err)
	}
	return f, nil
}

var settings = []string{"allow", "ask", "deny", "allow_unsandboxed", "allow_all", "private_networks", "new_domains"}

// setting reads one key of [permissions].
func (p *reader) setting(f *parsed, e *unstable.Node, name string) error {
	if name == "permissions" && e.Value().Kind == unstable.InlineTable {
		for it := e.Value().Children(); it.Next(); {
			if err := p.setting(f, it.Node(), keyOf(it.Node())); err != nil {
				return err
			}
		}
		return nil
	}
	if at := map[string]*string{"allow_unsandboxed": &f.unsandboxed, "allow_all": &f.allowAll}[name]; at != nil {
		switch string(e.Value().Data) {
		case "true":
			*at = fmt.Sprintf("%s:%d", p.name, p.line(e))
		case "false":
		default:
			return p.errorf(e, "%s is true or false", name)
		}
		return nil
	}
	if name == "private_networks" {
		if e.Value().Kind != unstable.Array {
			return p.errorf(e, "private_networks must be a list of networks, as [\"10.1.0.0/16\"]")
		}
		var list []string
		for it := e.Value().Children(); it.Next(); {
			if n := it.Node(); n.Kind != unstable.Comment {
				list = append(list, string(n.Data))
			}
		}
		var err error
		if f.private, err = parsePrivate(list); err != nil {
			return p.errorf(e, "%w", err)
		}
		f.privateAt = fmt.Sprintf("%s:%d", p.name, p.line(e))
		return nil
	}
	if name == "new_domains" {
		var ok bool
		if f.newDomains, ok = map[string]verdict{"ask": ask, "deny": deny}[string(e.Value().Data)]; !ok {
			return p.errorf(e, "new_domains is \"ask\" or \"deny\"")
		}
		f.newDomainsAt = fmt.Sprintf("%s:%d", p.name, p.line(e))
		return nil
	}
	list, ok := map[string]verdict{"allow": allow, "ask": ask, "deny": deny}[name]
	if !ok {
		return p.errorf(e, "unknown key %q; [permissions] has allow, ask, deny, allow_unsandboxed, allow_all, private_networks and new_domains%s", name, meant(name, settings))
	}
	if e.Value().Kind != unstable.Array {
		return p.errorf(e, "%s must be a list of rules, as %s = [\"Bash(make:*)\"]", name, name)
	}
	for it := e.Value().Children(); it.Next(); {
		n := it.Node()
		if n.Kind == unstable.Comment {
			continue
		}
		r, err := item(n, list)
		if err != nil {
			return p.errorf(n, "%w", err)
		}
		r.source = fmt.Sprintf("%s:%d", p.name, p.line(n))
		f.rules = append(f.rules, r)
	}
	return nil
}

func keyOf(n *unstable.Node) string {
	var parts []string
	for it := n.Key(); it.Next(); {
		parts = append(parts, string(it.Node().Data))
	}
	return strings.Join(parts, ".")
}

func item(n *unstable.Node, list verdict) (rule, error) {
	if n.Kind == unstable.String {
		return parseRule(string(n.Data), list)
	}
	if n.Kind != unstable.InlineTable {
		return rule{}, fmt.Errorf("a rule is a string or a table {rule, reason, match, not_match}")
	}
	fields := map[string][]string{}
	for it := n.Children(); it.Next(); {
		key := keyOf(it.Node())
		text, err := texts(it.Node().Value(), key)
		if err != nil {
			return rule{}, err
		}
		fields[key] = text
	}
	if fields["rule"] == nil {
		return rule{}, fmt.Errorf("a rule given as a table needs the key rule, as {rule = \"Bash(rm:*)\", reason = \"…\"}")
	}
	r, err := parseRule(fields["rule"][0], list)
	r.reason, r.match, r.notMatch = strings.Join(fields["reason"], ""), fields["match"], fields["not_match"]
	return r, err
}

var ruleKeys = []string{"rule", "reason", "match", "not_match"}

// texts is the value of a key of a rule: a text, or for examples a list of them.
func texts(v *unstable.Node, key string) (list []string, err error) {
	switch key {
	case "rule", "reason":
		if v.Kind != unstable.String {
			return nil, fmt.Errorf("%s must be a text in quotes", key)
		}
		return []string{string(v.Data)}, nil
	case "match", "not_match":
		if v.Kind != unstable.Array {
			return nil, fmt.Errorf("%s must be a list of examples, as %s = [\"rm x\"]", key, key)
		}
		for x := v.Children(); x.Next(); {
			switch n := x.Node(); n.Kind {
			case unstable.String:
				list = append(list, string(n.Data))
			case unstable.Comment:
			default:
				return nil, fmt.Errorf("each example in %s must be a text in quotes", key)
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("unknown key %q in a rule; there are rule, reason, match and not_match%s", key, meant(key, ruleKeys))
}

// meant proposes a known word for an unknown one.
func meant(word string, known []string) string {
	if best := near(word, known); best != "" {
		return "; was " + best + " meant?"
	}
	return ""
}

// near is the known word that few changes make out of another, "" where none is.
func near(word string, known []string) (best string) {
	least := len(word)/3 + 2
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d > 0 && d < least && d <= len(k)/2 {
			best, least = k, d
		}
	}
	return best
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost++
			}
			corner = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
