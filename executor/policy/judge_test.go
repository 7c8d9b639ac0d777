package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

func load(t testing.TB, o Options) *Policy {
	t.Helper()
	if o.Workspace == "" {
		o.Workspace, o.Home = "/work-space", "/home/somebody"
	}
	p, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestStrictestWins(t *testing.T) {
	for _, c := range []struct {
		name, action, cmd string
		o                 Options
		want              v1.Decision_Verdict
		rule              string
	}{
		{"deny over allow", contract.RunCommand, "touch x", Options{Allow: []string{"Bash(*)"}, Deny: []string{"Bash(touch:*)"}}, v1.Decision_deny, "Bash(touch:*)"},
		{"ask over allow", contract.RunCommand, "touch x", Options{Allow: []string{"Bash(touch:*)"}, Ask: []string{"Bash(touch:*)"}}, v1.Decision_ask, "Bash(touch:*)"},
		{"an ask rule is not hidden by a built-in ask before it", contract.RunCommand, "frobnicate; touch x", Options{Ask: []string{"Bash(touch:*)"}}, v1.Decision_ask, "Bash(touch:*)"},
		{"nor overridden by an allow rule for the whole text", contract.RunCommand, "frobnicate; touch x", Options{Allow: []string{"Bash(frobnicate; touch x)"}, Ask: []string{"Bash(touch:*)"}}, v1.Decision_ask, "Bash(touch:*)"},
		{"a tool's deny, whatever the order", "mcp__a__b", "", Options{Deny: []string{"mcp__a__b"}, Allow: []string{"mcp__a__b"}}, v1.Decision_deny, "mcp__a__b"},
		{"a tool's allow", "mcp__a__b", "", Options{Allow: []string{"mcp__a__b"}}, v1.Decision_allow, "mcp__a__b"},
		{"a server's deny, over its tool's allow", "mcp__a__b", "", Options{Deny: []string{"mcp__a__*"}, Allow: []string{"mcp__a__b"}}, v1.Decision_deny, "mcp__a__*"},
		{"a server's allow", "mcp__a__b", "", Options{Allow: []string{"mcp__a"}}, v1.Decision_allow, "mcp__a"},
		{"another server of a like name", "mcp__ab__c", "", Options{Allow: []string{"mcp__a"}}, v1.Decision_ask, "default"},
		{"no rule for a tool", "mcp__a__b", "", Options{}, v1.Decision_ask, "default"},
		{"flags in any order", contract.RunCommand, "rm -f -r x", Options{Allow: []string{"Bash(*)"}, Deny: []string{"Bash(rm -rf:*)"}}, v1.Decision_deny, "Bash(rm -rf:*)"},
		{"other flags", contract.RunCommand, "rm -f x", Options{Allow: []string{"Bash(*)"}, Deny: []string{"Bash(rm -rf:*)"}}, v1.Decision_allow, "Bash(*)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := load(t, c.o).Judge(Request{Action: c.action, Cmd: c.cmd, Sandboxed: true}).Decision
			if d.Verdict != c.want || d.Rule != c.rule {
				t.Errorf("%v by %q, want %v by %q: %s", d.Verdict, d.Rule, c.want, c.rule, d.Reason)
			}
		})
	}
}

// What "always" saves must not be wider than what was asked.
func TestAlwaysIsNarrow(t *testing.T) {
	for cmd, want := range map[string]string{
		"git commit -m x":    "Bash(git commit -m x)",
		"npm run deploy":     "Bash(npm run deploy)",
		"sh -c 'touch a'":    "Bash(sh -c 'touch a')",
		"git add new/":       "Bash(git add:*)",
		"go get example.com": "Bash(go get example.com)",
	} {
		v := load(t, Options{}).Judge(Request{Action: contract.RunCommand, Cmd: cmd})
		if v.Decision.Verdict == v1.Decision_ask && v.Rule != want {
			t.Errorf("%s: would save %q, want %q", cmd, v.Rule, want)
		}
	}
}

func TestAdminCannotBeLoosened(t *testing.T) {
	admin := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(admin, []byte("[permissions]\ndeny = [\"Bash(touch:*)\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := load(t, Options{AdminFiles: []string{admin}, Allow: []string{"Bash(*)", "Bash(touch:*)"}, Auto: true})
	if p, err := p.Grant("Bash(touch x)"); err != nil {
		t.Fatal(err)
	} else if d := p.Judge(Request{Action: contract.RunCommand, Cmd: "touch x", Sandboxed: true}).Decision; d.Verdict != v1.Decision_deny || !strings.HasPrefix(d.Source, admin+":2") {
		t.Errorf("%v from %s", d.Verdict, d.Source)
	}
}

func TestBadRulesAreErrors(t *testing.T) {
	for _, rule := range []string{"", "Bash(", "Bash()", "Terminal(ls)", "bash(ls)", "Read(", "WebFetch(example.com)"} {
		if _, err := Load(Options{Allow: []string{rule}, Workspace: "/w", Home: "/h"}); err == nil {
			t.Errorf("%q was taken", rule)
		}
	}
	file := filepath.Join(t.TempDir(), "p.toml")
	for text, says := range map[string]string{
		"[permissions]\nallow = [\"Bash(\"]\n":                                   ":2",
		"[permissions]\nalow = []\n":                                             "alow",
		"[permissions]\ndeny = [{rule = \"Bash(touch:*)\", match = [\"ls\"]}]\n": "ls",
		"[permissions\n": "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(Options{PolicyFile: file, Workspace: "/w", Home: "/h"}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Whatever the text, there is a verdict; and a denied program that stands
// plainly in front is denied.
func FuzzJudge(f *testing.F) {
	for _, s := range []string{"ls | wc", "a=$(b) c <(d)", "for i in *; do x; done", "[", "{a,b}", "find . -exec touch {} +", "sh -c \"$x\"", "''", "\x00", "a <<E\nb\nE"} {
		f.Add(s)
	}
	p := load(f, Options{Allow: []string{"Bash(*)"}, Deny: []string{"Bash(touch:*)"}})
	f.Fuzz(func(t *testing.T, cmd string) {
		if d := p.Judge(Request{Action: contract.RunCommand, Cmd: cmd}).Decision; d.Verdict == v1.Decision_verdict_unspecified {
			t.Errorf("no verdict on %q", cmd)
		}
		if d := p.Judge(Request{Action: contract.RunCommand, Cmd: "touch x\n" + cmd, Sandboxed: true}).Decision; d.Verdict == v1.Decision_allow {
			t.Errorf("allowed: touch before %q", cmd)
		}
	})
}

func BenchmarkJudge(b *testing.B) {
	p := load(b, Options{Allow: []string{"Bash(make:*)"}, Deny: []string{"Bash(git push:*)"}})
	cmd := "cd src && git status --short | grep -v vendor | head -20; go test ./... 2>&1 | tail -40 && find . -name '*.go' -newer go.mod | xargs wc -l | sort -n > /tmp/sizes; echo $(git rev-parse HEAD) done; ls -la"
	for b.Loop() {
		p.Judge(Request{Action: contract.RunCommand, Cmd: cmd, Sandboxed: true})
	}
}
