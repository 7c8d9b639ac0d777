package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor"
	"harness/executor/audit"
	"harness/executor/policy"
)

// sessionCases is how each case of an executor's session is tried. The ones
// that are not here are a planner's, or tried elsewhere: see elsewhere.
var sessionCases = map[string]func(t *testing.T){
	"S-ses-008": func(t *testing.T) {
		a := newAsking(t, nil)
		step, q := a.hold("touch a", "")
		d := yes(q)
		d.Scope = v1.DecideRequest_session
		a.decide(d)
		a.want(a.submit(step), v1.Status_ok)
		a.want(a.sh("touch a"), v1.Status_awaiting_approval) // another timeout: not the same action
		a.want(a.do(contract.RunCommand, map[string]any{"cmd": "touch a", "cwd": "", "timeout_s": 5}), v1.Status_ok)
		a.end()
		a.start()
		a.hold("touch a", "")
	},
	"S-ses-010": TestAnswersAreNotMixedUp,
	"S-ses-011": TestAnswersAreNotMixedUp,
	"S-ses-012": func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "config.toml")
		a := newAsking(t, func(c *executor.Config) { c.Policy = policy.Options{UserFile: file, Ask: []string{"Bash(sh:*)"}} })
		step, q := a.hold(`sh -c "echo a"`, "")
		d := yes(q)
		d.Scope = v1.DecideRequest_always
		a.decide(d)
		a.want(a.submit(step), v1.Status_ok)
		a.hold(`sh -c "touch PWNED"`, "")
		if data, err := os.ReadFile(file); err == nil && bytes.Contains(data, []byte("sh")) {
			t.Errorf("saved: %s", data)
		}
	},
	"S-ses-013": TestExpiryDenies,
	"S-ses-014": func(t *testing.T) {
		b, state := newBedAt(t, allowAll)
		for range 3 {
			b.want(b.sh("echo abc"), v1.Status_ok)
		}
		file := filepath.Join(audit.Dir(state, "x1"), audit.File)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitAfter(data, []byte("\n"))
		n := len(lines) / 2
		for !bytes.Contains(lines[n], []byte("echo abc")) {
			n++
		}
		lines[n] = bytes.Replace(lines[n], []byte("echo abc"), []byte("echo abd"), 1)
		if err := os.WriteFile(file, bytes.Join(lines, nil), 0o600); err != nil {
			t.Fatal(err)
		}
		if f := verified(t, state); len(f) != 1 || f[0].Line != int64(n) || f[0].Problem != "changed" {
			t.Errorf("%v", f)
		}
	},
	"S-ses-015": TestAuditIsOutOfReach,
	"S-ses-017": func(t *testing.T) {
		t.Setenv("MODEL_API_KEY", "k-secret-3")
		b, state := newBedAt(t, allowAll)
		b.want(b.sh("env; echo $MODEL_API_KEY"), v1.Status_ok)
		filepath.WalkDir(state, func(p string, e os.DirEntry, err error) error {
			if data, err := os.ReadFile(p); err == nil && bytes.Contains(data, []byte("k-secret-3")) {
				t.Errorf("it is in %s", p)
			}
			return nil
		})
	},
}

// elsewhere is where the other cases are tried, or why they are not.
var elsewhere = map[string]string{
	"S-ses-001": "planner: the log is SQLite; cmd/harness TestKilledProgram kills and goes on",
	"S-ses-002": "planner: the log has no lines",
	"S-ses-003": "planner/session: a store that is no database is set aside",
	"S-ses-004": "planner/session: SQLite finds a damaged page",
	"S-ses-005": "TestDiskFullAndReadOnly",
	"S-ses-006": "a lease is a lock of the kernel and ends with its holder: cmd/harness TestKilledExecutor opens after each kill",
	"S-ses-007": "planner/session: one store, one transaction a session",
	"S-ses-009": "planner: the size of a session",
	"S-ses-016": "cmd/harness TestKilledExecutor compares the audit log with the results",
	"S-ses-018": "planner: compaction", "S-ses-019": "planner: compaction", "S-ses-020": "planner: compaction",
	"S-ses-021": "planner: helpers", "S-ses-022": "planner: budget",
}

func TestSessionCases(t *testing.T) {
	f, err := os.Open("testdata/sessions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		var c struct{ ID, Why string }
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.ID, func(t *testing.T) {
			switch try, why := sessionCases[c.ID], elsewhere[c.ID]; {
			case try != nil:
				try(t)
			case why != "":
				t.Skip(why)
			default:
				t.Error("nothing tries it: ", c.Why)
			}
		})
	}
}
