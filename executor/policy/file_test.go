package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// What is wrong with a file is said with its line, and what was meant.
func TestFileErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.toml")
	for text, says := range map[string]string{
		"[permissions]\nallow = [\n  \"Bash(ls)\",\n  \"Bash(ls\",\n]\n":                     "p.toml:4: the rule \"Bash(ls\": its bracket is not closed; was Bash(ls) meant?",
		"[permissions]\n\nalow = []\n":                                                       "p.toml:3: unknown key \"alow\"; [permissions] has allow, ask, deny, allow_unsandboxed, allow_all, private_networks and new_domains; was allow meant?",
		"[permission]\ndeny = []\n":                                                          "p.toml:1: unknown table [permission]; a policy file has [permissions] only; was permissions meant?",
		"[permissions]\ndeny = \"Bash(rm:*)\"\n":                                             "p.toml:2: deny must be a list of rules",
		"[permissions]\ndeny = [\"Raed(.env)\"]\n":                                           "p.toml:2: the rule \"Raed(.env)\": there is no tool \"Raed\"",
		"[permissions]\ndeny = [\"Raed(.envs)\"]\n":                                          "was Read meant?",
		"[permissions]\ndeny = [\"bash(rm:*)\"]\n":                                           "Bash was meant",
		"[permissions]\ndeny = [3]\n":                                                        "p.toml:2: a rule is a string or a table",
		"[permissions]\ndeny = [\n{rule = \"Bash(rm:*)\", matches = [\"rm x\"]}]\n":          "p.toml:3: unknown key \"matches\" in a rule; there are rule, reason, match and not_match; was match meant?",
		"[permissions]\ndeny = [{rule = \"Bash(rm:*)\", match = \"rm x\"}]\n":                "p.toml:2: match must be a list of examples",
		"[permissions]\ndeny = [{reason = \"x\"}]\n":                                         "p.toml:2: a rule given as a table needs the key rule",
		"[permissions]\ndeny = [\n\n{rule = \"Bash(touch:*)\", match = [\"ls\"]}]\n":         "p.toml:4: the rule Bash(touch:*) does not match its example \"ls\"",
		"[permissions]\ndeny = [{rule = \"Bash(touch:*)\", not_match = [\"a; touch x\"]}]\n": "p.toml:2: the rule Bash(touch:*) matches \"a; touch x\", which it should not",
		"[permissions]\nallow_unsandboxed = true\n":                                          "p.toml:2: allow_unsandboxed stands in the admin's policy only",
		"[permissions]\nallow_all = true\n":                                                  "p.toml:2: allow_all stands in the admin's policy only",
		"permissions = {deny = [\"Bash(\"]}\n":                                               "p.toml:1: ",
		"[permissions]\ndeny = [\"Bash(rm:*)\"\n":                                            "p.toml:2: not valid TOML",
		"[permissions]\nallow = [\"Bash(cp *.a b:*)\"]\n":                                    "p.toml:2: the rule",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(Options{PolicyFile: file, Workspace: "/w", Home: "/h"}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q:\n got %v\nwant %s", text, err, says)
		}
	}
}

// No weaker tier loosens what the admin set, whatever kind of rule it is.
func TestEachTierAgainstTheAdmin(t *testing.T) {
	dir := t.TempDir()
	admin, weaker := filepath.Join(dir, "admin.toml"), filepath.Join(dir, "weaker.toml")
	root := filepath.Join(dir, "ws")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rule, all, one string
		q              Request
	}{
		{"Bash(touch:*)", "Bash", "Bash(touch x)", Request{Action: contract.RunCommand, Cmd: "touch x"}},
		{"Read(./secret/**)", "Read", "Read(./secret/a)", Request{Action: contract.ReadFile, Reads: []string{"secret/a"}}},
		{"Edit(/src/**)", "Edit", "Edit(/src/a)", Request{Action: contract.WriteFile, Writes: []string{"src/a"}}},
		{"mcp__a__b", "mcp__a__b", "mcp__a__b", Request{Action: "mcp__a__b"}},
	} {
		for list, want := range map[string]v1.Decision_Verdict{"deny": v1.Decision_deny, "ask": v1.Decision_ask} {
			write(t, admin, fmt.Sprintf("[permissions]\n%s = [%q]\n", list, c.rule))
			write(t, weaker, fmt.Sprintf("[permissions]\nallow = [%q, %q]\n", c.all, c.one))
			for tier, o := range map[string]Options{"user": {UserFile: weaker}, "project": {ProjectFile: weaker}, "--policy": {PolicyFile: weaker}, "flag": {Allow: []string{c.all, c.one}}, "grant": {}} {
				o.AdminFiles, o.Workspace, o.Home, o.Auto = []string{admin}, root, "/home/somebody", true
				p, err := Load(o)
				if err != nil {
					t.Fatal(err)
				}
				if tier == "grant" {
					if p, err = p.Grant(c.one); err != nil {
						t.Fatal(err)
					}
				}
				c.q.Sandboxed = true
				if d := p.Judge(c.q).Decision; d.Verdict != want || d.Source != admin+":2" {
					t.Errorf("%s %s of the admin, loosened by %s: %v from %s", list, c.rule, tier, d.Verdict, d.Source)
				}
			}
		}
	}
}

// Everything is allowed only where the sandbox holds it, or the admin says so.
func TestAllowAllNeedsASandboxOrTheAdmin(t *testing.T) {
	admin := filepath.Join(t.TempDir(), "admin.toml")
	write(t, admin, "[permissions]\nallow_unsandboxed = true\n")
	q := Request{Action: contract.RunCommand, Cmd: "frobnicate"}
	for _, rule := range []string{"Bash", "Bash(*)"} {
		p := load(t, Options{Allow: []string{rule}})
		if d := p.Judge(q).Decision; d.Verdict != v1.Decision_ask {
			t.Errorf("%s without a sandbox: %v", rule, d.Verdict)
		}
		p = load(t, Options{Allow: []string{rule}, AdminFiles: []string{admin}})
		if d := p.Judge(q).Decision; d.Verdict != v1.Decision_allow || d.Rule != rule {
			t.Errorf("%s with the admin's yes: %v by %s", rule, d.Verdict, d.Rule)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Savers at once lose no rule, a link stays a link, and nothing is left beside.
func TestSaveRule(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real", "config.toml"), filepath.Join(dir, "config.toml")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, file, "model = \"a/b\"\n[permissions]\nask = [\"Bash(rm:*)\"] # mine\n")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := SaveRule(link, fmt.Sprintf("Bash(make t%d)", i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parseFile(file, data, false)
	if err != nil || len(f.rules) != 21 || !strings.Contains(string(data), "# mine") {
		t.Errorf("%d rules, %v:\n%s", len(f.rules), err, data)
	}
	if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 1 {
		t.Errorf("left beside: %v", left)
	}
}

// No sandbox and no questions need the flag and the admin; what a rule denies stays denied.
func TestWaived(t *testing.T) {
	admin, user := filepath.Join(t.TempDir(), "admin.toml"), filepath.Join(t.TempDir(), "user.toml")
	write(t, admin, "[permissions]\nallow_unsandboxed = true\nallow_all = true\n")
	write(t, user, "[permissions]\nallow = [\"Bash\"]\n")
	for _, o := range []Options{{Unsandboxed: true}, {AllowAll: true}} {
		o.Workspace, o.Home, o.UserFile = "/w", "/h", user
		if _, err := Load(o); err == nil || !strings.Contains(err.Error(), "of the admin's policy") {
			t.Errorf("%+v without the admin: %v", o, err)
		}
	}
	if p := load(t, Options{AdminFiles: []string{admin}}); p.Waived() != nil {
		t.Error("waived without a flag:", p.Waived())
	}
	p := load(t, Options{AdminFiles: []string{admin}, AllowAll: true, Unsandboxed: true, Deny: []string{"Bash(seq:*)"}, Ask: []string{"WebFetch(domain:a.example)"}})
	if got := strings.Join(p.Waived(), " "); got != "sandbox asking" {
		t.Error(got)
	}
	for cmd, want := range map[string]v1.Decision_Verdict{"frobnicate": v1.Decision_allow, "make; seq 9": v1.Decision_deny, "sh -c 'seq 9'": v1.Decision_deny} {
		if d := p.Judge(Request{Action: contract.RunCommand, Cmd: cmd}).Decision; d.Verdict != want {
			t.Errorf("%s: %v", cmd, d)
		}
	}
	if d := p.Connect("a.example").Decision; d.Verdict != v1.Decision_allow {
		t.Error(d)
	}
}
