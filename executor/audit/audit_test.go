package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "harness/contract/harness/v1"
)

// sample is a log with every kind of record, and the heads that were given out.
func sample(t testing.TB) (dir string, key *Key, heads []string) {
	t.Helper()
	dir = t.TempDir()
	key, err := OpenKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(dir, "x1", key)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	decision := &v1.Decision{Verdict: v1.Decision_allow, Rule: "Bash(make:*)", Source: "flag", Reason: "allowed"}
	add := func(r ...Record) {
		if err := l.Add(r...); err != nil {
			t.Fatal(err)
		}
	}
	add(Session("test", &v1.OpenResponse{Executor: "e", Rung: "namespaces", Capabilities: []*v1.Capability{{Name: "landlock", Enforced: true}}}, "v1"))
	for i := range 4 {
		id := fmt.Sprintf("s%d", i)
		cmd, err := structpb.NewStruct(map[string]any{"cmd": "make " + id})
		if err != nil {
			t.Fatal(err)
		}
		approval := &v1.Approval{ApprovalId: "a" + id, StepId: id, Digest: "sha256:1", Decision: decision}
		add(Question(&v1.Step{StepId: id, Action: "run_command", Args: cmd}, approval))
		add(Step(Refused, &v1.Step{StepId: id, Action: "run_command", Args: cmd}, "sha256:2", decision))
		add(Answer(id, &v1.DecideRequest{ApprovalId: "a" + id, Approver: "someone", Answer: v1.DecideRequest_allow}), Record{Kind: Policy, Policy: "v2"})
		add(Step(Started, &v1.Step{StepId: id, Action: "run_command", Args: cmd}, "sha256:2", decision))
		head, err := l.Seal(Result(&v1.StepResult{StepId: id, Action: "run_command", Status: v1.Status_ok, Decision: decision,
			Execs: []*v1.Exec{{Program: "/bin/make", Argv: []string{"make", id}}}, Connections: []*v1.Connection{{Host: "example.test", Port: 443}},
			Changes: &v1.ChangeSet{Changes: []*v1.Change{{Kind: v1.Change_created, Path: "a/" + id}}}})...)
		if err != nil {
			t.Fatal(err)
		}
		heads = append(heads, head)
	}
	return dir, key, heads
}

func linesOf(t testing.TB, dir string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
}

func put(t testing.TB, dir string, lines [][]byte) {
	t.Helper()
	data := append(bytes.Join(lines, []byte("\n")), '\n')
	if len(lines) == 0 {
		data = nil
	}
	if err := os.WriteFile(filepath.Join(dir, File), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func verify(t testing.TB, dir string, key *Key, heads []string) *Report {
	t.Helper()
	r, err := Verify(dir, "x1", key.Public(), heads)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// one checks that a report has exactly one finding, and that it is this one.
func one(t *testing.T, r *Report, line int64, problem string) {
	t.Helper()
	if len(r.Findings) != 1 || r.Findings[0].Line != line || r.Findings[0].Problem != problem {
		t.Errorf("want line %d %s, got %+v", line, problem, r.Findings)
	}
}

func TestClean(t *testing.T) {
	dir, key, heads := sample(t)
	if r := verify(t, dir, key, heads); len(r.Findings) > 0 || r.Witness != 4 || r.Signed != r.Lines-1 {
		t.Errorf("%+v", r)
	}
}

// Every line of the log, of every kind and the heads too, is changed in one
// bit, removed, doubled, forged and moved; verifying names that line.
func TestTampering(t *testing.T) {
	dir, key, heads := sample(t)
	good := linesOf(t, dir)
	kinds := map[string]bool{}
	for n := range good {
		var r struct {
			Kind Kind
			Head string
		}
		if err := json.Unmarshal(good[n], &r); err != nil {
			t.Fatal(err)
		}
		kind := string(r.Kind)
		if r.Head != "" {
			kind = "head"
		}
		kinds[kind] = true
		last := n == len(good)-1
		t.Run(fmt.Sprintf("%s of line %d", kind, n), func(t *testing.T) {
			for bit := range len(good[n]) * 8 {
				if bit%31 != n%31 { // some bits of each line, others in the next
					continue
				}
				lines := slices.Clone(good)
				lines[n] = bytes.Clone(good[n])
				lines[n][bit/8] ^= 1 << (bit % 8)
				if bytes.IndexByte(lines[n], '\n') >= 0 {
					continue
				}
				put(t, dir, lines)
				one(t, verify(t, dir, key, nil), int64(n), "changed")
			}
			put(t, dir, slices.Delete(slices.Clone(good), n, n+1))
			if last { // only a witness can know of it
				one(t, verify(t, dir, key, heads), int64(n), "cut off")
			} else {
				one(t, verify(t, dir, key, heads), int64(n), "removed")
			}
			put(t, dir, slices.Insert(slices.Clone(good), n, good[n]))
			if r := verify(t, dir, key, heads); len(r.Findings) != 1 || r.Findings[0].Line > int64(n)+1 || r.Findings[0].Line < int64(n) {
				t.Errorf("doubled: %+v", r.Findings)
			}
			forged := bytes.Replace(good[3], []byte(`"someone"`), []byte(`"nobody"`), 1)
			forged = bytes.Replace(forged, []byte("approval"), []byte("apprival"), 1)
			put(t, dir, slices.Insert(slices.Clone(good), n, forged))
			one(t, verify(t, dir, key, heads), int64(n), "inserted")
			if !last {
				lines := slices.Clone(good)
				lines[n], lines[n+1] = lines[n+1], lines[n]
				put(t, dir, lines)
				if r := verify(t, dir, key, heads); len(r.Findings) != 1 || r.Findings[0].Problem != "reordered" ||
					r.Findings[0].Line != int64(n) && r.Findings[0].Line != int64(n)+1 {
					t.Errorf("swapped: %+v", r.Findings)
				}
			}
			put(t, dir, good[:n])
			if r := verify(t, dir, key, heads); len(r.Findings) != 1 || r.Findings[0].Problem != "cut off" || r.Findings[0].Line != int64(n) {
				t.Errorf("cut off: %+v", r.Findings)
			}
		})
	}
	for _, k := range []Kind{Opened, Policy, Started, Asked, Refused, Decided, Program, Connected, Finished, "head"} {
		if !kinds[string(k)] {
			t.Errorf("no %s was tampered with", k)
		}
	}
}

// A log that was written anew, whole and well signed, is not the one that the witnesses saw.
func TestRewritten(t *testing.T) {
	dir, key, heads := sample(t)
	good := linesOf(t, dir)
	if err := os.Remove(filepath.Join(dir, File)); err != nil {
		t.Fatal(err)
	}
	l, err := Open(dir, "x1", key)
	if err != nil {
		t.Fatal(err)
	}
	for range good {
		if _, err := l.Seal(Record{Kind: Finished, Step: "s0", Status: "ok"}); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	if r := verify(t, dir, key, nil); len(r.Findings) > 0 {
		t.Errorf("it is well signed: %+v", r.Findings)
	}
	if r := verify(t, dir, key, heads); len(r.Findings) == 0 || r.Findings[0].Problem != "rewritten" {
		t.Errorf("%+v", r.Findings)
	}
	other, err := OpenKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if r := verify(t, dir, other, nil); len(r.Findings) == 0 {
		t.Error("another key verifies it")
	}
}

// What a kill in the middle of a write left is taken off and said; a log that
// was changed is not gone on with.
func TestOpenAgain(t *testing.T) {
	dir, key, heads := sample(t)
	good := linesOf(t, dir)
	for _, torn := range []string{`{"n":`, `{"head":"`, strings.Repeat("x", 1<<17)} {
		put(t, dir, good)
		f, err := os.OpenFile(filepath.Join(dir, File), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString(torn)
		f.Close()
		l, err := Open(dir, "x1", key)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		if r := verify(t, dir, key, heads); len(r.Findings) > 0 || r.Lines != int64(len(good))+2 {
			t.Errorf("%+v", r)
		}
	}
	lines := slices.Clone(good)
	lines[1] = bytes.Replace(lines[1], []byte("make"), []byte("fake"), 1)
	put(t, dir, lines)
	if _, err := Open(dir, "x1", key); err == nil || !strings.Contains(err.Error(), "was changed") {
		t.Errorf("a changed log was opened: %v", err)
	}
}

// The tree is the one of the transparency logs.
func TestTree(t *testing.T) {
	var mine tree
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(idx []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(idx))
		for i, n := range idx {
			out[i] = stored[n]
		}
		return out, nil
	})
	for n := range int64(200) {
		data := []byte(fmt.Sprint(rand.Uint64()))
		hs, err := tlog.StoredHashes(n, data, reader)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, hs...)
		mine.add(tlog.RecordHash(data))
		want, err := tlog.TreeHash(n+1, reader)
		if err != nil || want != mine.root() {
			t.Fatalf("%d leaves: %v, want %v (%v)", n+1, mine.root(), want, err)
		}
	}
}

// A secret is in no line, whatever field it stands in, and the line is still a record.
func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	key, err := OpenKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(dir, "x1", key)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	token := "ghp_" + strings.Repeat("a1B2c3", 6)
	pem := "-----BEGIN RSA PRIVATE " + "KEY-----\n" + strings.Repeat("q7", 3000)
	for _, text := range []string{token, "x=\"" + token + "\" <&> \n", pem, "a\n" + token} {
		args, err := structpb.NewStruct(map[string]any{"cmd": text, "env": map[string]any{"T": text}})
		if err != nil {
			t.Fatal(err)
		}
		d := &v1.Decision{Reason: text, Part: text}
		step := &v1.Step{StepId: "s", Action: "run_command", Args: args}
		if _, err := l.Seal(append(Result(&v1.StepResult{StepId: "s", Decision: d, Error: &v1.Error{Message: text},
			Execs:       []*v1.Exec{{Program: "/bin/x", Argv: []string{text}, Refused: d}},
			Connections: []*v1.Connection{{Host: text}}, Changes: &v1.ChangeSet{Changes: []*v1.Change{{Path: text}}}}),
			Step(Started, step, "", d), Question(step, &v1.Approval{Decision: d}), Answer("s", &v1.DecideRequest{Message: text}))...); err != nil {
			t.Fatal(err)
		}
	}
	for i, line := range linesOf(t, dir) {
		if !json.Valid(line) || bytes.Contains(line, []byte(token)) || bytes.Contains(line, []byte("q7q7")) {
			t.Errorf("line %d: %s", i, line)
		}
	}
}
