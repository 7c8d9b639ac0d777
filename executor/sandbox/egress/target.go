package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	v1 "harness/contract/harness/v1"
	"harness/executor/policy"
)

// target is what a client asked for.
type target struct {
	host string // a name in lower case without a dot at its end, or addr
	addr netip.Addr
	port uint16
	bad  string // why it is no host
}

func newTarget(host, port string) target {
	host, odd := policy.Hostname(host)
	t := target{host: host}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		t.bad = "its port is no number from 1 to 65535"
	}
	if odd != nil {
		t.host, t.bad = strings.ToValidUTF8(t.host, "\uFFFD"), "it is not a host's name: "+odd.Error()
	}
	t.port = uint16(n)
	if addr, err := netip.ParseAddr(t.host); err == nil {
		t.addr = addr.Unmap()
		t.host = t.addr.String()
		if addr.Zone() != "" {
			t.bad = "it is an address of one link only"
		}
		return t
	}
	if len(t.host) > 253 {
		t.host, t.bad = t.host[:253], "it is too long for a name"
	}
	labels := strings.Split(t.host, ".")
	for _, l := range labels {
		if l == "" || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.host, t.bad = strings.ToValidUTF8(t.host, "\uFFFD"), "it is not a host's name"
		}
	}
	// What ends in a number is an address to the C library, in one of its many spellings.
	if last := labels[len(labels)-1]; t.bad == "" && (strings.HasPrefix(last, "0x") || strings.Trim(last, "0123456789") == "") {
		t.bad = "it is an address in another spelling"
	}
	return t
}

func (t target) String() string { return net.JoinHostPort(t.host, strconv.Itoa(int(t.port))) }

// notPublic are addresses of this machine, its link, its site or none at all,
// from the registries of special-purpose addresses. Those of IPv6 that carry
// one of IPv4 are among them, whichever they carry.
var notPublic = prefixes("0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 " +
	"192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3 " +
	"::/96 ::ffff:0:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16 3fff::/20 5f00::/16 fc00::/7 fe80::/9 ff00::/8")

func prefixes(text string) (list []netip.Prefix) {
	for _, f := range strings.Fields(text) {
		list = append(list, netip.MustParsePrefix(f))
	}
	return list
}

func within(a netip.Addr, list []netip.Prefix) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// reachable is whether an address may be connected to.
func (p *Proxy) reachable(a netip.Addr) bool {
	if within(a, p.config.Private) {
		return true
	}
	return !within(a, notPublic) && !ours(a)
}

// ours: the machine's services are not public because its address is.
func ours(a netip.Addr) bool {
	list, err := net.InterfaceAddrs()
	for _, x := range list {
		if n, ok := x.(*net.IPNet); ok && n.IP.Equal(a.AsSlice()) {
			return true
		}
	}
	return err != nil
}

func no(part, reason string) *v1.Decision {
	return &v1.Decision{Verdict: v1.Decision_deny, Rule: "default", Source: "built-in", Reason: reason, Part: part}
}

// judge is the refusal of a target, or nil and the addresses to connect to.
func (p *Proxy) judge(ctx context.Context, t target) (refused *v1.Decision, addrs []netip.Addr, err error) {
	if t.bad != "" {
		return no(t.String(), t.bad), nil, nil
	}
	d := p.config.Decide(t.host)
	if d.Verdict == v1.Decision_ask {
		d = p.config.Ask(ctx, t.host, t.port)
	}
	if d.Verdict != v1.Decision_allow {
		d.Part = t.String()
		return d, nil, nil
	}
	found := []netip.Addr{t.addr}
	if !t.addr.IsValid() {
		if found, err = p.config.Resolve(ctx, t.host); err != nil {
			return nil, nil, fmt.Errorf("the name %s: %w", t.host, err)
		}
	}
	for _, a := range found {
		if a = a.Unmap().WithZone(""); p.reachable(a) {
			addrs = append(addrs, a)
		}
	}
	if len(addrs) == 0 {
		return no(t.String(), fmt.Sprintf("its address %v is not public; an administrator or the user may open it with private_networks", found)), nil, nil
	}
	return nil, addrs, nil
}

// dial connects to the first address that answers.
func (p *Proxy) dial(addrs []netip.Addr, t target, r *v1.Connection) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(p.ctx, dialTimeout)
	defer cancel()
	var d net.Dialer
	var err error
	for _, a := range addrs {
		var conn net.Conn
		if conn, err = d.DialContext(ctx, "tcp", netip.AddrPortFrom(a, t.port).String()); err == nil {
			r.Address = a.String()
			if !p.keep(conn) {
				return nil, net.ErrClosed
			}
			return conn.(*net.TCPConn), nil
		}
	}
	return nil, err
}

// connect judges a target, records it and connects to it. Its end is the caller's to drop.
func (p *Proxy) connect(protocol string, t target) (up *net.TCPConn, r *v1.Connection, err error) {
	refused, addrs, err := p.judge(p.ctx, t)
	r = p.begun(protocol, t, refused)
	if refused != nil || err != nil {
		return nil, r, err
	}
	up, err = p.dial(addrs, t, r)
	return up, r, err
}

// Says is a refusal in words.
func Says(c *v1.Connection) string {
	return fmt.Sprintf("refused: %s, %s", c.Refused.Part, c.Refused.Reason)
}
