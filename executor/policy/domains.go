package policy

import (
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"

	v1 "harness/contract/harness/v1"
)

// domain reads the name of a WebFetch rule: a name, an address, or *.name for
// all names below it.
func (r *rule) domain() error {
	name, ok := strings.CutPrefix(r.spec, "domain:")
	if !ok {
		return fmt.Errorf("WebFetch takes domain:NAME, as WebFetch(domain:example.com)")
	}
	name, err := Hostname(name)
	if err != nil {
		return fmt.Errorf("%q is no domain: %w", name, err)
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		r.host = addr.Unmap().String()
		return nil
	}
	for _, l := range strings.Split(strings.TrimPrefix(name, "*."), ".") {
		if l == "" || name != "*" && strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return fmt.Errorf("%q is no domain: a name as example.com, *.example.com for all below it, without scheme, port or path", name)
		}
	}
	r.host = name
	return nil
}

// letters maps names as browsers do, but lets underscores stand.
var letters = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(), idna.StrictDomainName(false))

// Hostname is the one form of a host's name: lower case, xn--… where it has
// other letters, no dot at its end. An error: it is none, and stays as it is.
func Hostname(name string) (string, error) {
	lower := strings.ToLower(name)
	if wild := strings.TrimPrefix(lower, "*."); strings.Contains(wild, "xn--") || strings.IndexFunc(wild, func(r rune) bool { return r >= 0x80 }) >= 0 {
		ascii, err := letters.ToASCII(wild)
		if err != nil {
			return name, err
		}
		lower = lower[:len(lower)-len(wild)] + ascii
	}
	return strings.TrimSuffix(lower, "."), nil
}

// reaches: the rule names the host. An address is allowed only by its own rule.
func (r *rule) reaches(host string) bool {
	if r.any {
		return r.list != allow // fetching pages is no network for commands
	}
	below, ok := strings.CutPrefix(r.host, "*")
	if _, err := netip.ParseAddr(host); err == nil && r.list == allow {
		return r.host == host
	}
	return r.host == host || ok && strings.HasSuffix(host, below)
}

// Network says whether commands of a step with this safety have a proxy: where
// a host is allowed, or could be asked for.
func (p *Policy) Network(safety *v1.Safety) bool {
	if strictest(p.safety, safety).Network == v1.Safety_deny {
		return false
	}
	for _, r := range p.byTool["WebFetch"] {
		if r.list < deny && !r.any {
			return true
		}
	}
	return p.newDomains == ask
}

// Connect decides on a connection of a command to a host: a name in lower
// case, or an address.
func (p *Policy) Connect(host string) Verdict {
	f, save := finding{}, ""
	for _, r := range p.byTool["WebFetch"] {
		if r.reaches(host) {
			f = worse(f, found(r, host))
		}
	}
	rule := fmt.Sprintf("WebFetch(domain:%s)", host)
	switch {
	case f.list == none && p.newDomains == ask:
		f, save = builtin(ask, "no rule names it, and new domains are asked for", host), rule
	case f.list == none:
		f = builtin(deny, "no rule allows it; add "+rule, host)
	case f.list == ask:
		f.reason = strings.TrimSuffix(fmt.Sprintf("%s asks for it: %s", f.rule, f.reason), ": ")
	case f.list == deny:
		f.reason = strings.TrimSuffix(fmt.Sprintf("%s denies it: %s", f.rule, f.reason), ": ")
	}
	return (&judging{Policy: p}).verdict(f, save)
}

// Private are networks that are not public and that commands may reach all
// the same, at hosts that a rule allows.
func (p *Policy) Private() []netip.Prefix { return p.private }

func parsePrivate(list []string) (prefixes []netip.Prefix, err error) {
	for _, text := range list {
		p, err := netip.ParsePrefix(text)
		if err != nil || p != p.Masked() {
			return nil, fmt.Errorf("private_networks: %q is no network, as 10.1.0.0/16", text)
		}
		prefixes = append(prefixes, p)
	}
	return prefixes, nil
}
