package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/policy"
)

// A planner that cheats: it has the whole wire and no manners. The policy lets
// it read and run what is harmless; nothing else may come of whatever it sends.
type hostile struct {
	*bed
	http    *http.Client
	outside string
}

func newHostile(t *testing.T, rules policy.Options) *hostile {
	base := t.TempDir()
	home, outside := filepath.Join(base, "home"), filepath.Join(base, "outside")
	for _, d := range []string{home, outside} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	path := ""
	h := &hostile{outside: outside}
	dir := filepath.Join(base, "ws")
	for _, d := range []string{filepath.Join(dir, ".git", "hooks"), filepath.Join(dir, "sub")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	x := newExecutor(t, dir, filepath.Join(base, "state"), rules)
	path = listen(t, x)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	h.http = &http.Client{Transport: &http.Transport{Protocols: protocols, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	h.bed = &bed{t: t, dir: dir, id: "mine", x: x}
	h.write("a.txt", "text\n")
	h.write(".env", "TOKEN=k-secret\n")
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("k-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"mine", "other"} {
		h.call("Open", map[string]any{"session_id": id})
	}
	return h
}

// call posts plain JSON, whatever it is, and returns the answer's text.
func (h *hostile) call(verb string, body any) string {
	h.t.Helper()
	data, ok := body.([]byte)
	if !ok {
		var err error
		if data, err = json.Marshal(body); err != nil {
			h.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://executor/harness.v1.Executor/"+verb, bytes.NewReader(data))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := h.http.Do(req)
	if err != nil {
		h.t.Fatalf("%s: the executor is gone: %v", verb, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatalf("%s: %v", verb, err)
	}
	return string(text)
}

// result is what a step came to; its status is error where the wire itself refused.
func (h *hostile) result(step map[string]any) *v1.StepResult {
	h.t.Helper()
	text := h.call("Submit", map[string]any{"step": step})
	var r v1.SubmitResponse
	if err := contract.UnmarshalJSON([]byte(text), &r); err != nil || r.Result == nil {
		if !strings.Contains(text, `"code"`) {
			h.t.Fatalf("no answer: %s", text)
		}
		return &v1.StepResult{Status: v1.Status_error, Error: &v1.Error{Message: text}}
	}
	return r.Result
}

// tree is every file below dir and what is in it.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		if d.Type().IsRegular() {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			text += string(data)
		} else if d.Type()&fs.ModeSymlink != 0 {
			to, _ := os.Readlink(p)
			text += to
		}
		all[p] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func sameTree(t testing.TB, what string, was, is map[string]string) {
	t.Helper()
	for p, text := range is {
		if old, ok := was[p]; !ok || old != text {
			t.Errorf("%s: %s is %.80q, was %.80q", what, p, text, old)
		}
	}
	for p := range was {
		if _, ok := is[p]; !ok {
			t.Errorf("%s: %s is gone", what, p)
		}
	}
}

// Nothing that a step says about itself widens what the policy gives.
func TestHostilePlannerWidens(t *testing.T) {
	h := newHostile(t, policy.Options{Deny: []string{"Read(.env)", "Bash(touch:*)"}})
	run := func(more map[string]any) map[string]any {
		step := map[string]any{"step_id": fmt.Sprintf("w%d", h.n), "session_id": "mine", "action": "run_command", "args": map[string]any{"cmd": "touch made"}}
		h.n++
		for k, v := range more {
			step[k] = v
		}
		return step
	}
	before := tree(t, h.dir)
	for name, more := range map[string]map[string]any{
		"plainly":               nil,
		"safety allows network": {"safety": map[string]any{"network": "allow"}},
		"safety by number":      {"safety": map[string]any{"network": 7, "writes": 9}},
		"safety unspecified":    {"safety": map[string]any{"network": "network_unspecified", "writes": "writes_unspecified"}},
		"safety off":            {"safety": map[string]any{"sandbox": "none"}},
		"a decision of its own": {"decision": map[string]any{"verdict": "allow"}},
		"approved":              {"approval": map[string]any{"approval_id": "a", "digest": "d"}, "approved": true},
		"another mode":          {"mode": "async", "safety": map[string]any{"writes": "workspace_only"}},
		"unknown mode":          {"mode": 42},
		"wrapped":               {"args": map[string]any{"cmd": "env -S 'touch made'"}},
		"deeper":                {"args": map[string]any{"cmd": `bash -c "$(printf 'to\165ch made')"`}},
		"another action":        {"action": "exec", "args": map[string]any{"cmd": "touch made"}},
		"own environment":       {"args": map[string]any{"cmd": "ls", "env": map[string]any{"LD_PRELOAD": "/tmp/x.so", "BASH_ENV": "/tmp/x"}}},
		"cwd outside":           {"args": map[string]any{"cmd": "ls", "cwd": h.outside}},
		"env of a secret":       {"action": "read_file", "args": map[string]any{"path": ".env"}},
		"a link of proc":        {"action": "read_file", "args": map[string]any{"path": "/proc/self/root" + h.outside + "/secret"}},
		"outside":               {"action": "read_file", "args": map[string]any{"path": h.outside + "/secret"}},
		"the executor's state":  {"action": "list_files", "args": map[string]any{"path": filepath.Join(filepath.Dir(h.dir), "state")}},
		"an artifact's path":    {"action": "read_file", "args": map[string]any{"artifact": "sha256:../../../../outside/secret"}},
		"climbing":              {"action": "write_file", "args": map[string]any{"path": "sub/../../outside/x", "content": "x"}},
		"a hook":                {"action": "write_file", "args": map[string]any{"path": ".git/hooks/pre-commit", "content": "x"}},
		"another's step":        {"action": "cancel_step", "args": map[string]any{"target": "../other/s1"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.result(run(more))
			if r.Status == v1.Status_ok || strings.Contains(r.GetOutput().GetText(), "k-secret") {
				t.Errorf("%v: %v", r.Status, r.GetOutput().GetText())
			}
			if r.GetError().GetMessage() == "" && r.Approval == nil && r.Status != v1.Status_running {
				t.Errorf("refused without a reason: %v", r)
			}
		})
	}
	time.Sleep(100 * time.Millisecond) // the async one
	sameTree(t, "after all", before, tree(t, h.dir))
}

// Ids name nothing but what they are for.
func TestHostilePlannerForgesIDs(t *testing.T) {
	h := newHostile(t, policy.Options{})
	ok := map[string]any{"path": "a.txt"}
	for name, step := range map[string]map[string]any{
		"a session that is not open": {"step_id": "i1", "session_id": "nowhere", "action": "read_file", "args": ok},
		"a session by path":          {"step_id": "i2", "session_id": "../mine", "action": "read_file", "args": ok},
		"no session":                 {"step_id": "i3", "action": "read_file", "args": ok},
		"a step by path":             {"step_id": "../../x", "session_id": "mine", "action": "read_file", "args": ok},
		"no step":                    {"session_id": "mine", "action": "read_file", "args": ok},
		"a long one":                 {"step_id": strings.Repeat("a", 65), "session_id": "mine", "action": "read_file", "args": ok},
		"with a nul":                 {"step_id": "a\x00b", "session_id": "mine", "action": "read_file", "args": ok},
	} {
		t.Run(name, func(t *testing.T) {
			if r := h.result(step); r.Status == v1.Status_ok {
				t.Errorf("taken: %v", r)
			}
		})
	}
	for _, id := range []string{"../../etc", "a/b", "..", ".", strings.Repeat("x", 65), "a b", "\x00"} {
		if text := h.call("Open", map[string]any{"session_id": id}); !strings.Contains(text, `"code"`) {
			t.Errorf("Open took the id %q: %s", id, text)
		}
	}
	first := map[string]any{"step_id": "once", "session_id": "mine", "action": "write_file", "args": map[string]any{"path": "n", "content": "1"}}
	if r := h.result(first); r.Status != v1.Status_ok {
		t.Fatal(r)
	}
	h.write("n", "by hand")
	if r := h.result(first); r.Status != v1.Status_ok || h.read("n") != "by hand" {
		t.Errorf("the same step twice: %v, %q", r.Status, h.read("n"))
	}
	second := map[string]any{"step_id": "once", "session_id": "mine", "action": "write_file", "args": map[string]any{"path": "n", "content": "2"}}
	if r := h.result(second); r.Status == v1.Status_ok || h.read("n") != "by hand" {
		t.Errorf("another step under an old id: %v, %q", r.Status, h.read("n"))
	}
}

// An answer counts once, for what was asked, in its session, in its time.
func TestHostilePlannerReplaysApprovals(t *testing.T) {
	h := newHostile(t, policy.Options{Ask: []string{"Bash(touch:*)"}})
	ask := func(session, id, cmd string) *v1.Approval {
		t.Helper()
		r := h.result(map[string]any{"step_id": id, "session_id": session, "action": "run_command", "args": map[string]any{"cmd": cmd}})
		if r.Status != v1.Status_awaiting_approval {
			t.Fatalf("%s: %v", cmd, r)
		}
		return r.Approval
	}
	decide := func(session, approval, digest, answer string) string {
		return h.call("Decide", map[string]any{"session_id": session, "approval_id": approval, "digest": digest, "answer": answer})
	}
	one, two := ask("mine", "p1", "touch one"), ask("mine", "p2", "touch two")
	there := ask("other", "p1", "touch other")
	for name, text := range map[string]string{
		"another's digest":        decide("mine", two.ApprovalId, one.Digest, "allow"),
		"no digest":               decide("mine", two.ApprovalId, "", "allow"),
		"another session's":       decide("mine", there.ApprovalId, there.Digest, "allow"),
		"in another session":      decide("other", two.ApprovalId, two.Digest, "allow"),
		"no such approval":        decide("mine", "a_none", two.Digest, "allow"),
		"no answer":               decide("mine", two.ApprovalId, two.Digest, "answer_unspecified"),
		"an answer by number":     decide("mine", two.ApprovalId, two.Digest, "99"),
		"as a step's own approve": h.call("Submit", map[string]any{"step": map[string]any{"step_id": "p2", "session_id": "mine", "action": "run_command", "args": map[string]any{"cmd": "touch two"}}}),
	} {
		if strings.Contains(text, `"accepted":true`) || strings.Contains(text, `"accepted": true`) || strings.Contains(text, `"status":"ok"`) {
			t.Errorf("%s: %s", name, text)
		}
	}
	if text := decide("mine", one.ApprovalId, one.Digest, "allow"); !strings.Contains(text, "accepted") {
		t.Fatal(text)
	}
	if r := h.result(map[string]any{"step_id": "p1", "session_id": "mine", "action": "run_command", "args": map[string]any{"cmd": "touch one"}}); r.Status != v1.Status_ok {
		t.Fatalf("what was allowed: %v", r)
	}
	// The answer is used up: for the same command it is asked again.
	again := ask("mine", "p3", "touch one")
	if again.ApprovalId == one.ApprovalId {
		t.Error("the old answer stands for a new step")
	}
	if text := decide("mine", one.ApprovalId, again.Digest, "allow"); strings.Contains(text, `"accepted":true`) {
		t.Errorf("an old approval for a new step: %s", text)
	}
	if text := decide("mine", two.ApprovalId, two.Digest, "deny"); !strings.Contains(text, "accepted") {
		t.Fatal(text)
	}
	decide("mine", two.ApprovalId, two.Digest, "allow")
	if r := h.result(map[string]any{"step_id": "p2", "session_id": "mine", "action": "run_command", "args": map[string]any{"cmd": "touch two"}}); r.Status != v1.Status_denied {
		t.Errorf("a denied step after a second answer: %v", r)
	}
	for _, f := range []string{"two", "other"} {
		if _, err := os.Stat(filepath.Join(h.dir, f)); err == nil {
			t.Errorf("%s was made", f)
		}
	}
}

// Ten thousand steps from a generator that knows every action and every trick
// of this file, and bytes that are no steps at all. The policy allows reads
// only, so nothing may change anywhere, and the executor must live.
func TestHostilePlannerFuzzes(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 500
	}
	h := newHostile(t, policy.Options{Plan: true, Deny: []string{"Read(.env)"}})
	before, beyond := tree(t, h.dir), tree(t, h.outside)
	seed := uint64(time.Now().UnixNano())
	g := &generator{rand.New(rand.NewPCG(seed, 1)), h}
	statuses := map[v1.Status]int{}
	for i := range n {
		if g.IntN(20) == 0 {
			h.call("Submit", g.noise())
			continue
		}
		step := g.step(i)
		r := h.result(step)
		statuses[r.Status]++
		if strings.Contains(r.GetOutput().GetText(), "k-secret") {
			t.Fatalf("seed %d: %v gave the secret", seed, step)
		}
		if r.Status == v1.Status_ok && r.Changes != nil {
			t.Fatalf("seed %d: %v changed %v", seed, step, r.Changes)
		}
	}
	t.Logf("seed %d: %v", seed, statuses)
	sameTree(t, "the workspace", before, tree(t, h.dir))
	sameTree(t, "outside", beyond, tree(t, h.outside))
	if r := h.result(map[string]any{"step_id": "last", "session_id": "mine", "action": "read_file", "args": map[string]any{"path": "a.txt"}}); r.Status != v1.Status_ok {
		t.Errorf("an honest step after all that: %v", r)
	}
	if statuses[v1.Status_ok] == 0 || statuses[v1.Status_denied] == 0 {
		t.Errorf("the generator is too tame: %v", statuses)
	}
}

type generator struct {
	*rand.Rand
	h *hostile
}

func pick[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }

func (g *generator) path() string {
	p := pick(g, "a.txt", ".env", "sub", "", ".", "..", "../outside/secret", g.h.outside+"/secret", "/etc/passwd", "/proc/self/environ", "/proc/1/root/etc/shadow", "~/.ssh/id_rsa",
		".git/config", ".git/hooks/post-checkout", ".harness/config.toml", "a\x00b", strings.Repeat("d/", 3000)+"f", "/dev/zero", "A.TXT", "ａ.txt", "sub/../a.txt", "//"+g.h.dir[1:]+"/a.txt", "new"+fmt.Sprint(g.IntN(9)))
	if g.IntN(8) == 0 {
		p += pick(g, "/", "/.", "\n", "\u202e", "*", "%00", "\\")
	}
	return p
}

func (g *generator) command() string {
	base := pick(g, "ls", "cat a.txt", "cat .env", "cat ../outside/secret", "touch x", "rm -rf .", "echo x > y", "echo $(touch z)", "git commit -m x", "cp a.txt b", "python3 -c 'open(\"p\",\"w\")'", "sed -i s/a/b/ a.txt",
		"find . -delete", "find . -exec touch q {} ;", "sort -o a.txt a.txt", "tar xf x", ":(){ :|:& };:", "cat <<E > h\nx\nE", "sh -c 'touch v'", "xargs touch < a.txt", "env touch e", "grep -r TOKEN .", "awk 'BEGIN{system(\"touch w\")}'", "true", "exec 3<>a.txt; echo x >&3")
	if g.IntN(3) == 0 {
		base += pick(g, " ; ", " && ", " | ", " & ", "\n", " || ") + pick(g, "ls", "touch t", "rm a.txt", "cat .env", "tee u")
	}
	if g.IntN(4) == 0 && len(base) > 2 { // a mutation
		i := g.IntN(len(base))
		base = base[:i] + pick(g, "\\", "'", "\"", "$", "\x00", "\xff", "$IFS", "`", "\r", "é", "{a,b}", "\\\n") + base[i:]
	}
	return base
}

func (g *generator) step(i int) map[string]any {
	action := pick(g, "read_file", "write_file", "edit_file", "apply_patch", "list_files", "search", "run_command", "write_stdin", "cancel_step", "diff", "restore", "fetch_url", "", "Run_Command", "run_command\x00")
	args := map[string]any{}
	switch action {
	case "read_file", "list_files":
		args["path"] = g.path()
	case "write_file":
		args["path"], args["content"] = g.path(), "x"
	case "edit_file":
		args["path"], args["old_string"], args["new_string"] = g.path(), "text", "x"
	case "apply_patch":
		args["patch"] = pick(g, "*** Begin Patch\n*** Add File: "+g.path()+"\n+x\n*** End Patch", "--- a/a.txt\n+++ b/"+g.path()+"\n@@ -1 +1 @@\n-text\n+x\n", "rename from a.txt\nrename to ../x", "")
	case "search":
		args["pattern"], args["path"] = pick(g, "TOKEN", "k-.*", "(a*)*$", "[", "", ".*"), g.path()
	case "run_command":
		args["cmd"], args["timeout_s"] = g.command(), 5
		if g.IntN(4) == 0 {
			args["cwd"] = g.path()
		}
	case "write_stdin", "cancel_step":
		args["target"] = fmt.Sprintf("f%d", g.IntN(i+1))
	case "restore":
		args[pick(g, "all", "redo", "dry_run")] = true
	}
	if g.IntN(12) == 0 {
		args[pick(g, "path", "cmd", "force", "allow", "env", "timeout_s")] = pick[any](g, 1, "x", nil, []any{}, map[string]any{"a": 1}, -1, 1e300, true)
	}
	step := map[string]any{"step_id": fmt.Sprintf("f%d", i-g.IntN(2)*g.IntN(5)), "session_id": pick(g, "mine", "mine", "mine", "mine", "mine", "mine", "mine", "mine", "other", "none"), "action": action, "args": args}
	if g.IntN(6) == 0 {
		step["safety"] = map[string]any{"network": pick[any](g, "deny", "network_unspecified", 5), "writes": pick[any](g, "none", "workspace_only", "writes_unspecified", 77)}
	}
	if g.IntN(10) == 0 {
		step[pick(g, "mode", "expect", "safety", "args", "approved")] = pick[any](g, "async", map[string]any{"exit_code": 0}, 3, "x", true)
	}
	for k, v := range step { // what JSON cannot carry is cut
		if s, ok := v.(string); ok {
			step[k] = strings.ToValidUTF8(s, "?")
		}
	}
	return step
}

// noise is bytes that begin as a request and go wrong.
func (g *generator) noise() []byte {
	data, err := json.Marshal(map[string]any{"step": g.step(g.IntN(1000))})
	if err != nil {
		g.h.t.Fatal(err)
	}
	for range 1 + g.IntN(4) {
		switch i := g.IntN(len(data)); g.IntN(3) {
		case 0:
			data = data[:i+1]
		case 1:
			data[i] = byte(g.IntN(256))
		default:
			data = append(data[:i:i], append(bytes.Repeat([]byte(pick(g, "[", "{", "\"", "9")), 1+g.IntN(2000)), data[i:]...)...)
		}
	}
	return data
}

// The fuzzer's own wire is JSON; a binary message must not get further.
func TestHostilePlannerSpeaksProtobuf(t *testing.T) {
	h := newHostile(t, policy.Options{Plan: true})
	args, err := structpb.NewStruct(map[string]any{"path": "x", "content": "y"})
	if err != nil {
		t.Fatal(err)
	}
	step := &v1.Step{StepId: "b1", SessionId: "mine", Action: contract.WriteFile, Args: args, Safety: &v1.Safety{Network: 9, Writes: 9}, Mode: 9}
	step.ProtoReflect().SetUnknown([]byte{0xf8, 0x3f, 0x01}) // field 1023
	r, err := h.x.Submit(t.Context(), step)
	if err != nil || r.Status != v1.Status_error {
		t.Errorf("%v %v", r, err)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "x")); err == nil {
		t.Error("the file was made")
	}
}
