package executor

import (
	"net"
	"strconv"

	v1 "harness/contract/harness/v1"
	"harness/executor/sandbox"
	"harness/executor/sandbox/egress"
)

const maxRefusedNotes = 5

// network gives a command a proxy where the policy lets it reach any domain. What it
// returns ends it and puts its connections into the result.
func (s *session) network(c *sandbox.Command, l *live) func(*v1.StepResult) {
	p := s.currentPolicy()
	if !p.Network(l.step.Safety) {
		return func(*v1.StepResult) {}
	}
	var proxy *egress.Proxy
	c.Network = func(ln net.Listener, clock func(bool)) {
		q := &questions{s: s, l: l, clock: clock, turn: make(chan struct{}, 1), answered: map[string]*v1.Decision{}}
		proxy = egress.Serve(ln, egress.Config{Ask: q.ask, Private: p.Private(), Resolve: egress.SystemResolver,
			Decide: func(host string) *v1.Decision { return s.currentPolicy().Connect(host).Decision }})
	}
	c.Env = append(c.Env, proxyEnv()...)
	return func(r *v1.StepResult) {
		if proxy == nil {
			return
		}
		list, total := proxy.Close()
		r.Connections, r.ConnectionsTotal = list, uint32(total)
		said := map[string]bool{}
		for _, x := range list {
			if x.Refused == nil || len(said) == maxRefusedNotes || said[egress.Says(x)] {
				continue
			}
			said[egress.Says(x)] = true
			r.Notes = append(r.Notes, egress.Says(x))
		}
	}
}

// proxyEnv is how programs find the proxy; there is no other way out.
func proxyEnv() []string {
	at := "127.0.0.1:" + strconv.Itoa(sandbox.ProxyPort)
	return []string{"HTTP_PROXY=http://" + at, "http_proxy=http://" + at, "HTTPS_PROXY=http://" + at, "https_proxy=http://" + at,
		"ALL_PROXY=socks5h://" + at, "all_proxy=socks5h://" + at, "NO_PROXY=localhost,127.0.0.1,::1", "no_proxy=localhost,127.0.0.1,::1"}
}
