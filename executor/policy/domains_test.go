package policy

import (
	"os"
	"path/filepath"
	"testing"

	v1 "harness/contract/harness/v1"
)

func TestDomains(t *testing.T) {
	ws := t.TempDir()
	load := func(allow, ask, deny []string) *Policy {
		p, err := Load(Options{Workspace: ws, Allow: allow, Ask: ask, Deny: deny})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := load([]string{"WebFetch(domain:Good.test)", "WebFetch(domain:*.good.test)", "WebFetch(domain:*)", "WebFetch(domain:10.0.0.1)"}, []string{"WebFetch(domain:ask.test)"}, []string{"WebFetch(domain:bad.good.test)", "WebFetch(domain:*.evil.test)"})
	for host, want := range map[string]v1.Decision_Verdict{"good.test": v1.Decision_allow, "a.good.test": v1.Decision_allow, "bad.good.test": v1.Decision_deny,
		"x.evil.test": v1.Decision_deny, "ask.test": v1.Decision_ask, "any.test": v1.Decision_allow, "10.0.0.1": v1.Decision_allow, "10.0.0.2": v1.Decision_deny} {
		if d := p.Connect(host).Decision; d.Verdict != want {
			t.Errorf("%s: %v", host, d)
		}
	}
	for _, name := range []string{"b\u00fccher.test", "XN--BCHER-KVA.test.", "B\u00dcCHER\u3002test"} { // one host
		if d := load([]string{"WebFetch(domain:" + name + ")"}, nil, nil).Connect("xn--bcher-kva.test").Decision; d.Verdict != v1.Decision_allow {
			t.Errorf("%s: %v", name, d)
		}
	}
	p = load([]string{"WebFetch(domain:*.good.test)"}, nil, nil)
	for _, host := range []string{"good.test", "notgood.test", "a.good.test.evil.test"} {
		if d := p.Connect(host).Decision; d.Verdict != v1.Decision_deny || d.Reason != "no rule allows it; add WebFetch(domain:"+host+")" {
			t.Errorf("%s: %v", host, d)
		}
	}
	if !p.Network(nil) || p.Network(&v1.Safety{Network: v1.Safety_deny}) {
		t.Error("a step's safety does not narrow")
	}
	if load(nil, nil, []string{"WebFetch(domain:a.test)"}).Network(nil) || !load(nil, []string{"WebFetch(domain:a.test)"}, nil).Network(nil) {
		t.Error("a network is there where a domain is allowed or asked for")
	}
	if load([]string{"WebFetch", "Bash(curl:*)"}, nil, nil).Network(nil) {
		t.Error("a network without a domain that is allowed")
	}
	if n, err := p.Narrow(nil, nil, &v1.Safety{Network: v1.Safety_deny}); err != nil || n.Network(nil) {
		t.Error("a session's safety does not narrow")
	}
	for _, bad := range []string{"http://a.test", "a.test/x", "a.test:80", "*a.test", "a.*.test", "", "a..test"} {
		if _, err := parseRule("WebFetch(domain:"+bad+")", allow); err == nil {
			t.Errorf("%q is taken for a domain", bad)
		}
	}
}

// A host that no rule names is asked for where the user or the admin says so, never a project.
func TestNewDomains(t *testing.T) {
	ws := t.TempDir()
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file, []byte("[permissions]\nnew_domains = \"ask\"\nallow = [\"WebFetch(domain:a.test)\"]\nask = [\"WebFetch(domain:q.test)\"]\ndeny = [\"WebFetch(domain:*.evil.test)\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Load(Options{Workspace: ws, UserFile: file})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]struct {
		v    v1.Decision_Verdict
		rule string
	}{"a.test": {v1.Decision_allow, ""}, "q.test": {v1.Decision_ask, ""}, "b.test": {v1.Decision_ask, "WebFetch(domain:b.test)"}, "x.evil.test": {v1.Decision_deny, ""}} {
		v := p.Connect(host)
		if v.Decision.Verdict != want.v || v.Rule != want.rule {
			t.Errorf("%s: %v", host, v)
		}
		if want.rule == "" {
			continue
		}
		if q, err := p.Grant(want.rule); err != nil || q.Connect(host).Decision.Verdict != v1.Decision_allow {
			t.Errorf("the rule of an always does not allow %s: %v", host, err)
		}
	}
	if _, err := Load(Options{Workspace: ws, ProjectFile: file}); err == nil {
		t.Error("a project has new domains asked for")
	}
	if err := os.WriteFile(file, []byte("[permissions]\nnew_domains = \"allow\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(Options{Workspace: ws, UserFile: file}); err == nil {
		t.Error("new domains are allowed")
	}
}

func TestPrivateNetworks(t *testing.T) {
	ws := t.TempDir()
	file := filepath.Join(t.TempDir(), "policy.toml")
	for text, ok := range map[string]bool{`["10.1.0.0/16"]`: true, `["10.1.0.1/16"]`: false, `["x"]`: false, `"10.1.0.0/16"`: false} {
		if err := os.WriteFile(file, []byte("[permissions]\nprivate_networks = "+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := Load(Options{Workspace: ws, UserFile: file})
		if (err == nil) != ok || ok && len(p.Private()) != 1 {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := Load(Options{Workspace: ws, ProjectFile: file}); err == nil {
			t.Errorf("%s: a project opens private networks", text)
		}
	}
}
