package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/audit"
	"harness/executor/policy"
)

// newBedAt is a bed whose executor keeps its state in a known folder.
func newBedAt(t *testing.T, rules policy.Options) (b *bed, state string) {
	state = t.TempDir()
	b = &bed{t: t, dir: t.TempDir(), id: "x1"}
	b.x = newExecutor(t, b.dir, state, rules)
	var err error
	if b.open, err = b.x.Open(t.Context(), &v1.OpenRequest{SessionId: b.id, Planner: "test"}); err != nil {
		t.Fatal(err)
	}
	return b, state
}

func records(t *testing.T, state string, q audit.Query) (list []audit.Entry) {
	t.Helper()
	if err := audit.Each(state, q, func(e audit.Entry) error {
		list = append(list, e)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

func verified(t *testing.T, state string, heads ...string) []audit.Finding {
	t.Helper()
	key, err := audit.ReadKey(state)
	if err != nil {
		t.Fatal(err)
	}
	r, err := audit.Verify(audit.Dir(state, "x1"), "x1", key.Public(), heads)
	if err != nil {
		t.Fatal(err)
	}
	return r.Findings
}

// Whatever a step comes to, it is on record, and its result carries the head of a log that verifies.
func TestAuditOfSteps(t *testing.T) {
	b, state := newBedAt(t, policy.Options{Allow: []string{"Bash(*)"}, Deny: []string{"Read(secret.txt)"}})
	b.write("secret.txt", "x")
	steps := []*v1.StepResult{
		b.want(b.sh("echo a > made.txt"), v1.Status_ok),
		b.want(b.sh("exit 3"), v1.Status_failed),
		b.want(b.do(contract.ReadFile, map[string]any{"path": "secret.txt"}), v1.Status_denied),
		b.want(b.do(contract.WriteFile, map[string]any{"path": "w.txt", "content": "x"}), v1.Status_ok),
		b.want(b.do(contract.ReadFile, map[string]any{"path": "none.txt"}), v1.Status_error),
	}
	var heads []string
	for _, r := range steps {
		if r.AuditHead == "" {
			t.Errorf("%s: no head", r.Action)
		}
		heads = append(heads, r.AuditHead)
		list := records(t, state, audit.Query{Step: r.StepId})
		last := list[len(list)-1]
		if last.Kind != audit.Finished || last.Status != r.Status.String() || last.Decision.Rule != r.Decision.Rule {
			t.Errorf("%s: %+v", r.Action, last)
		}
		if ran := list[0].Kind == audit.Started; ran == (r.Status == v1.Status_denied) || len(list[0].Args) == 0 {
			t.Errorf("%s, %v: begins with %s", r.Action, r.Status, list[0].Kind)
		}
	}
	if f := verified(t, state, heads...); len(f) > 0 {
		t.Errorf("%v", f)
	}
	if list := records(t, state, audit.Query{Path: "made.txt"}); len(list) != 1 || list[0].Changes[0].Kind != "created" {
		t.Errorf("by path: %+v", list)
	}
	if o := records(t, state, audit.Query{}); o[0].Kind != audit.Opened || o[0].Policy == "" || !slices.Contains(o[0].Capabilities, "landlock") {
		t.Errorf("the session: %+v", o[0])
	}
}

// What runs in the sandbox can neither read the key nor reach the log, and the try is on record.
func TestAuditIsOutOfReach(t *testing.T) {
	b, state := newBedAt(t, allowAll)
	b.want(b.sh("true"), v1.Status_ok)
	before, err := os.ReadFile(filepath.Join(audit.Dir(state, "x1"), audit.File))
	if err != nil {
		t.Fatal(err)
	}
	r := b.sh("cat " + state + "/a*; cat /proc/*/root" + state + "/a*; ls -R " + state + "; cd " + state +
		" && for f in $(find . -name audit.jsonl); do echo x > $f; rm -f $f; done; true")
	if text := r.GetOutput().GetText(); strings.Contains(text, "PRIVATE+KEY") || strings.Contains(text, audit.File) {
		t.Errorf("the executor's state is seen: %s", text)
	}
	b.do(contract.ReadFile, map[string]any{"path": filepath.Join(state, "audit.key")})
	b.do(contract.WriteFile, map[string]any{"path": filepath.Join(audit.Dir(state, "x1"), audit.File), "content": ""})
	after, err := os.ReadFile(filepath.Join(audit.Dir(state, "x1"), audit.File))
	if err != nil || !strings.HasPrefix(string(after), string(before)) {
		t.Errorf("the log was changed: %v", err)
	}
	if f := verified(t, state); len(f) > 0 {
		t.Errorf("%v", f)
	}
	tried := records(t, state, audit.Query{Step: r.StepId})
	if cmd, _ := tried[0].Args["cmd"].(string); !strings.Contains(cmd, "/a*; ls") {
		t.Errorf("the try is not on record: %+v", tried)
	}
	info, err := os.Stat(filepath.Join(state, "audit.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v %v", info.Mode(), err)
	}
}
