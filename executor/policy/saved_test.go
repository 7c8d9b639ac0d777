package policy

import (
	"os"
	"strings"
	"testing"

	"harness/executor/policy/shell"
)

// Every rule that an "always" would save is one that can be read again.
func TestSavedRulesCanBeRead(t *testing.T) {
	data, err := os.ReadFile("testdata/commands.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n") // also as commands, odd as they are
	for _, cmd := range append(lines, "git add x", "git add *", "git add -- 'a b'", "*x y", "a?b c", "ls :*", "ls *", "x\ny", "a ) b", "(a)", "a:*", "git switch -c x && ls", "  ls  ") {
		cmd = strings.TrimSpace(cmd)
		if cmd == "" || strings.HasSuffix(cmd, "*") {
			continue // the caller has sorted these out
		}
		rule := saved(shell.Analyse(cmd, shell.Env{Cwd: "/"}), cmd)
		if rule == "" {
			continue
		}
		r, err := parseRule(rule, allow)
		if err != nil {
			t.Errorf("%q gives the rule %q: %v", cmd, rule, err)
		} else if !r.prefix && r.spec != cmd {
			t.Errorf("%q gives the rule %q, which says %q", cmd, rule, r.spec)
		}
	}
}
