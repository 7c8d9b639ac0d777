package e2e

import (
	"strings"
	"testing"

	v1 "harness/contract/harness/v1"
	"harness/executor/policy"
)

// In a staged session the files of earlier steps lie in layers, and are held to
// the same rules.
func TestRulesHoldInStagedSessions(t *testing.T) {
	dir := t.TempDir()
	x := newExecutor(t, dir, t.TempDir(), policy.Options{Allow: []string{"Bash(*)"}, Deny: []string{"Read(.env)"}})
	b := &bed{t: t, dir: dir, id: "x1", x: x}
	if _, err := x.Open(t.Context(), &v1.OpenRequest{SessionId: b.id, Staged: true}); err != nil {
		t.Fatal(err)
	}
	b.write("run.sh", "mkdir sub && echo k-secret > sub/.env && git init -q .")
	b.want(b.sh("bash ./run.sh"), v1.Status_ok)
	b.write("run.sh", "cat sub/.env; grep -r k-secre[t] sub; git config user.name t && git config user.email t@t.test && git commit -q --allow-empty -m x")
	r := b.want(b.sh("bash ./run.sh"), v1.Status_ok)
	if strings.Contains(r.GetOutput().GetText(), "k-secret") {
		t.Errorf("read: %q", r.GetOutput().GetText())
	}
	for _, text := range []string{"git config core.fsmonitor ./x", "echo x > .git/hooks/pre-commit"} {
		b.write("run.sh", text)
		b.want(b.sh("bash ./run.sh"), v1.Status_denied)
	}
}
