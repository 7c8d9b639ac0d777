package policy

import "strings"

// mcp judges the call of a tool of an MCP server, whose action is
// mcp__server__tool. A rule may name the tool or the whole server.
func (p *judging) mcp(q Request) (finding, string) {
	f := finding{}
	for i := range p.rules {
		if r := &p.rules[i]; r.tool == q.Action || isServer(r.tool) && strings.HasPrefix(q.Action, r.tool+"__") {
			f = worse(f, found(r, q.Action))
		}
	}
	switch {
	case f.list == deny:
		return f, ""
	case p.readOnly(q):
		return builtin(deny, "only reads are allowed now", q.Action), ""
	case f.list != none:
		return f, ""
	case p.opts.Auto && q.Sandboxed:
		return builtin(allow, "no rule names it, and the sandbox holds it", q.Action), ""
	}
	return builtin(ask, "no rule names it", q.Action), q.Action
}

// isServer: the rule's tool is a server, all of whose tools are meant.
func isServer(tool string) bool {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	return ok && !strings.Contains(rest, "__")
}
