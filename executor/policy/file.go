package policy

import (
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// parseFile reads the [permissions] of a TOML file. only: there may be nothing else.
func parseFile(name string, data []byte, only bool) (rules []rule, err error) {
	p := unstable.Parser{}
	p.Reset(data)
	line := func(n *unstable.Node) int {
		for n != nil && n.Raw.Length == 0 && n.Child() != nil {
			n = n.Child()
		}
		if n == nil {
			return 1
		}
		return p.Shape(n.Raw).Start.Line
	}
	table := ""
	for p.NextExpression() {
		e := p.Expression()
		key := keyOf(e)
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = key
			if only && table != "permissions" {
				return nil, fmt.Errorf("%s: unknown table [%s]; a policy file has [permissions] only", name, table)
			}
			continue
		case unstable.KeyValue:
		default:
			continue
		}
		full := strings.TrimPrefix(table+"."+key, ".")
		list, ok := map[string]verdict{"permissions.allow": allow, "permissions.ask": ask, "permissions.deny": deny}[full]
		if !ok {
			if only || strings.HasPrefix(full, "permissions") {
				return nil, fmt.Errorf("%s: unknown key %q; [permissions] has allow, ask and deny", name, full)
			}
			continue
		}
		if e.Value().Kind != unstable.Array {
			return nil, fmt.Errorf("%s: %s must be a list of rules", name, full)
		}
		for it := e.Value().Children(); it.Next(); {
			n := it.Node()
			if n.Kind == unstable.Comment {
				continue
			}
			at := fmt.Sprintf("%s:%d", name, line(n))
			r, err := item(n, list)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", at, err)
			}
			r.source = at
			rules = append(rules, r)
		}
	}
	if err := p.Error(); err != nil {
		at := 1
		if pe, ok := err.(*unstable.ParserError); ok {
			at = p.Shape(p.Range(pe.Highlight)).Start.Line
		}
		return nil, fmt.Errorf("%s:%d: not valid TOML: %v", name, at, err)
	}
	return rules, nil
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
	var text, reason string
	var match, not []string
	for it := n.Children(); it.Next(); {
		kv := it.Node()
		v, key := kv.Value(), keyOf(kv)
		switch key {
		case "rule":
			text = string(v.Data)
		case "reason":
			reason = string(v.Data)
		case "match", "not_match":
			for x := v.Children(); x.Next(); {
				if key == "match" {
					match = append(match, string(x.Node().Data))
				} else {
					not = append(not, string(x.Node().Data))
				}
			}
		default:
			return rule{}, fmt.Errorf("unknown key %q in a rule; there are rule, reason, match and not_match", key)
		}
	}
	r, err := parseRule(text, list)
	r.reason, r.match, r.notMatch = reason, match, not
	return r, err
}
