package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor"
	"harness/executor/policy"
)

// The same contract, whatever carries it.
func TestConformance(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			bed := func(t *testing.T, rules policy.Options) *bed {
				return newBed(t, rules, func(x *executor.Executor) contract.Executor { return way(t, x) })
			}
			for name, test := range conformance {
				t.Run(name, func(t *testing.T) { test(t, bed) })
			}
		})
	}
}

type makeBed func(*testing.T, policy.Options) *bed

var conformance = map[string]func(*testing.T, makeBed){
	"open says what is enforced": func(t *testing.T, bed makeBed) {
		b := bed(t, policy.Options{})
		if b.open.Workspace != b.dir || b.open.Rung != rung() || len(b.open.Actions) == 0 {
			t.Errorf("%v", b.open)
		}
		var names []string
		for _, c := range b.open.Capabilities {
			if c.Enforced {
				names = append(names, c.Name)
			}
		}
		if rung() == "landlock" {
			contains(t, strings.Join(names, " "), "landlock", "seccomp", "no_new_privs", "exec_gate", "network_denied")
			return
		}
		contains(t, strings.Join(names, " "), "user_namespace", "mount_namespace", "pid_namespace", "network_namespace", "seccomp", "no_new_privs")
	},
	"one id is one effect and one result": func(t *testing.T, bed makeBed) {
		b := bed(t, allowAll)
		step := b.step(contract.RunCommand, map[string]any{"cmd": "echo x >> f; cat f; sleep 0.2"})
		var wg sync.WaitGroup
		results := make([]*v1.StepResult, 5)
		for i := range results {
			wg.Go(func() { results[i], _ = b.x.Submit(t.Context(), step) })
		}
		wg.Wait()
		results = append(results, b.submit(step))
		for _, r := range results {
			if r.GetStatus() != v1.Status_ok || r.GetOutput().GetText() != "x\n" {
				t.Errorf("%v", r)
			}
		}
		if got := b.read("f"); got != "x\n" {
			t.Errorf("the effect: %q", got)
		}
		other := b.step(contract.RunCommand, map[string]any{"cmd": "echo y"})
		other.StepId = step.StepId
		if _, err := b.x.Submit(t.Context(), other); contract.AsError(err).Kind != v1.Error_id_reused {
			t.Errorf("another step under the same id: %v", err)
		}
	},
	"typed errors": func(t *testing.T, bed makeBed) {
		b := bed(t, allowAll)
		for _, c := range []struct {
			action string
			args   map[string]any
			kind   v1.Error_Kind
			field  string
		}{
			{"fly", nil, v1.Error_unknown_action, "action"},
			{contract.ReadFile, map[string]any{"path": "a", "x": 1}, v1.Error_invalid, "args.x"},
			{contract.ReadFile, map[string]any{"path": 1}, v1.Error_invalid, "args.path"},
			{contract.ReadFile, map[string]any{"path": "a\x00"}, v1.Error_invalid, "args.path"},
			{contract.RunCommand, map[string]any{}, v1.Error_invalid, "args.cmd"},
			{contract.RunCommand, map[string]any{"cmd": "true", "cwd": "nowhere"}, v1.Error_not_found, "args.cwd"},
			{contract.RunCommand, map[string]any{"cmd": "true", "cwd": "/etc"}, v1.Error_outside_workspace, "args.cwd"},
		} {
			r := b.do(c.action, c.args)
			if r.Status != v1.Status_error || r.Error.Kind != c.kind || r.Error.Field != c.field {
				t.Errorf("%s %v: %v %v", c.action, c.args, r.Status, r.Error)
			}
		}
		if r := b.do(contract.ReadFile, map[string]any{"path": "none"}); r.Error.GetKind() != v1.Error_not_found {
			t.Errorf("%v", r)
		}
		step := b.step(contract.Diff, nil)
		step.StepId = "a/b"
		if _, err := b.x.Submit(t.Context(), step); contract.AsError(err).Kind != v1.Error_invalid || contract.AsError(err).Field != "step_id" {
			t.Errorf("a bad id: %v", err)
		}
		step = b.step(contract.Diff, nil)
		step.SessionId = "other"
		if _, err := b.x.Submit(t.Context(), step); contract.AsError(err).Kind != v1.Error_not_found {
			t.Errorf("a session that is not open: %v", err)
		}
	},
	"safety narrows": func(t *testing.T, bed makeBed) {
		b := bed(t, allowAll)
		step := b.step(contract.RunCommand, map[string]any{"cmd": "echo x > f"})
		step.Safety = &v1.Safety{Writes: v1.Safety_none}
		if r := b.submit(step); r.Status == v1.Status_ok {
			t.Errorf("wrote: %v", r)
		}
		step = b.step(contract.WriteFile, map[string]any{"path": "f", "content": "x"})
		step.Safety = &v1.Safety{Writes: v1.Safety_none}
		b.want(b.submit(step), v1.Status_denied)
		if _, err := os.Stat(filepath.Join(b.dir, "f")); err == nil {
			t.Error("f is there")
		}
	},
	"expectations": func(t *testing.T, bed makeBed) {
		b := bed(t, allowAll)
		code := int32(3)
		step := b.step(contract.RunCommand, map[string]any{"cmd": "echo r > report.xml; exit 3"})
		step.Expect = &v1.Expect{ExitCode: &code, Artifacts: []string{"report.xml"}}
		r := b.want(b.submit(step), v1.Status_ok)
		if len(r.Artifacts) != 1 || r.Artifacts[0].Size != 2 {
			t.Fatalf("artifacts %v", r.Artifacts)
		}
		contains(t, b.do(contract.ReadFile, map[string]any{"artifact": r.Artifacts[0].Digest}).GetOutput().GetText(), "r")
		step = b.step(contract.RunCommand, map[string]any{"cmd": "true"})
		step.Expect = &v1.Expect{Artifacts: []string{"none.xml"}}
		r = b.want(b.submit(step), v1.Status_failed)
		contains(t, strings.Join(r.Unmet, "\n"), "none.xml")
		step = b.step(contract.RunCommand, map[string]any{"cmd": "seq 100000"})
		step.Expect = &v1.Expect{MaxOutputBytes: 1000}
		r = b.want(b.submit(step), v1.Status_ok)
		if len(r.GetOutput().GetText()) > 1100 || r.Output.OmittedBytes == 0 {
			t.Errorf("%d bytes of text", len(r.GetOutput().GetText()))
		}
		whole := b.do(contract.ReadFile, map[string]any{"artifact": r.Output.Artifact, "offset": 50000, "limit": 1})
		contains(t, whole.GetOutput().GetText(), "50000")
	},
	"a held step waits for its answer": func(t *testing.T, bed makeBed) {
		b := bed(t, policy.Options{})
		ask := func(cmd string) (*v1.Step, *v1.Approval) {
			step := b.step(contract.RunCommand, map[string]any{"cmd": cmd})
			return step, b.want(b.submit(step), v1.Status_awaiting_approval).Approval
		}
		decide := func(a *v1.Approval, answer v1.DecideRequest_Answer, scope v1.DecideRequest_Scope) *v1.DecideResponse {
			d, err := b.x.Decide(t.Context(), &v1.DecideRequest{SessionId: b.id, ApprovalId: a.ApprovalId, Digest: a.Digest, Answer: answer, Scope: scope, Message: "as you like"})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		no, a := ask("touch no")
		yes, b2 := ask("touch yes")
		if _, err := b.x.Decide(t.Context(), &v1.DecideRequest{SessionId: b.id, ApprovalId: b2.ApprovalId, Digest: a.Digest, Answer: v1.DecideRequest_allow}); err == nil {
			t.Error("an answer to another question was taken")
		}
		if !decide(b2, v1.DecideRequest_allow, v1.DecideRequest_once).Accepted || !decide(a, v1.DecideRequest_deny, v1.DecideRequest_once).Accepted {
			t.Error("not accepted")
		}
		b.want(b.submit(yes), v1.Status_ok)
		contains(t, b.want(b.submit(no), v1.Status_denied).Error.Message, "as you like")
		if decide(a, v1.DecideRequest_allow, v1.DecideRequest_once).Accepted {
			t.Error("a second answer was accepted")
		}
		if _, err := os.Stat(filepath.Join(b.dir, "no")); err == nil {
			t.Error("the denied one ran")
		}
		b.read("yes")
		_, again := ask("touch yes")
		decide(again, v1.DecideRequest_allow, v1.DecideRequest_session)
		b.want(b.do(contract.RunCommand, map[string]any{"cmd": "touch yes"}), v1.Status_ok)
	},
	"async steps, input and cancel": func(t *testing.T, bed makeBed) {
		b := bed(t, allowAll)
		step := b.step(contract.RunCommand, map[string]any{"cmd": "read x; echo got:$x; sleep 60"})
		step.Mode = v1.Step_async
		b.want(b.submit(step), v1.Status_running)
		b.want(b.do(contract.WriteStdin, map[string]any{"target": step.StepId, "text": "hello\n"}), v1.Status_ok)
		var text string
		var finished *v1.StepResult
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var seq uint64
		errDone := errors.New("done")
		err := b.x.Watch(ctx, &v1.WatchRequest{SessionId: b.id, FromSeq: 1, Follow: true}, func(e *v1.Event) error {
			if seq++; e.Seq != seq {
				t.Errorf("event %d after %d", e.Seq, seq-1)
			}
			if o := e.GetOutput(); o != nil && e.StepId == step.StepId {
				if text += o.Text; strings.Contains(text, "got:hello") {
					b.want(b.do(contract.CancelStep, map[string]any{"target": step.StepId}), v1.Status_ok)
				}
			}
			if f := e.GetFinished(); f != nil && e.StepId == step.StepId {
				finished = f
				return errDone
			}
			return nil
		})
		if !errors.Is(err, errDone) {
			t.Fatalf("watching: %v, output %q", err, text)
		}
		b.want(finished, v1.Status_cancelled)
		contains(t, finished.GetOutput().GetText(), "got:hello")
		if r := b.do(contract.CancelStep, map[string]any{"target": step.StepId}); r.Error.GetKind() != v1.Error_not_found {
			t.Errorf("cancelling what ended: %v", r)
		}
	},
	"changes, undo and redo": func(t *testing.T, bed makeBed) {
		b := bed(t, allowAll)
		b.write("a", "1\n")
		b.want(b.do(contract.EditFile, map[string]any{"path": "a", "old_string": "1", "new_string": "2"}), v1.Status_ok)
		r := b.want(b.sh("echo 3 > a; mkdir -p d/e; echo n > d/e/f; ln -s a l"), v1.Status_ok)
		kinds := map[string]v1.Change_Kind{}
		for _, c := range r.Changes.GetChanges() {
			kinds[c.Path] = c.Kind
		}
		if kinds["a"] != v1.Change_modified || kinds["d/e/f"] != v1.Change_created || kinds["l"] != v1.Change_created {
			t.Errorf("changes %v", r.Changes)
		}
		contains(t, b.do(contract.Diff, nil).GetOutput().GetText(), "-1\n", "+3\n", "d/e/f")
		b.want(b.do(contract.Restore, nil), v1.Status_ok)
		if b.read("a") != "2\n" {
			t.Errorf("after undo: %q", b.read("a"))
		}
		if _, err := os.Stat(filepath.Join(b.dir, "d")); err == nil {
			t.Error("d is still there")
		}
		b.want(b.do(contract.Restore, map[string]any{"redo": true}), v1.Status_ok)
		if b.read("a") != "3\n" || b.read("d/e/f") != "n\n" {
			t.Error("redo")
		}
		b.want(b.do(contract.Restore, map[string]any{"all": true}), v1.Status_ok)
		if b.read("a") != "1\n" {
			t.Errorf("after undo of all: %q", b.read("a"))
		}
	},
}

// Plain HTTP and JSON speak to the same handler.
func TestCurl(t *testing.T) {
	b := newBed(t, allowAll, func(x *executor.Executor) contract.Executor { return x })
	path := listen(t, b.x.(*executor.Executor))
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	defer client.CloseIdleConnections()
	post := func(body string) (int, string) {
		resp, err := client.Post("http://executor/harness.v1.Executor/Submit", "application/json", bytes.NewBufferString(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	code, text := post(`{"step":{"step_id":"c1","session_id":"x1","action":"run_command","args":{"cmd":"echo hi"}}}`)
	if code != 200 {
		t.Errorf("%d %s", code, text)
	}
	contains(t, strings.ReplaceAll(text, " ", ""), `"status":"ok"`, `"text":"hi\n"`, `"exit_code":0`)
	code, text = post(`{"step":{"step_id":"c2","session_id":"x1","action":"run_command","args":{"cmd":"echo hi"},"sudo":true}}`)
	if code != 400 {
		t.Errorf("an unknown field: %d %s", code, text)
	}
	contains(t, text, "sudo")
}

// A planner that cheats: whatever it sends, nothing outside the policy happens.
func TestWidenedSafetyGrantsNothing(t *testing.T) {
	b := newBed(t, policy.Options{Deny: []string{"Bash(touch:*)"}}, direct)
	for _, cmd := range []string{"touch PWNED", "sh -c 'touch PWNED'", "env touch PWNED", "true && touch PWNED", "echo $(touch PWNED)"} {
		step := &v1.Step{StepId: "w" + contract.StepDigest(b.step("x", map[string]any{"c": cmd}))[8:40], SessionId: b.id, Action: contract.RunCommand,
			Args:   &structpb.Struct{Fields: map[string]*structpb.Value{"cmd": structpb.NewStringValue(cmd)}},
			Safety: &v1.Safety{Network: v1.Safety_deny, Writes: v1.Safety_workspace_only}}
		b.want(b.submit(step), v1.Status_denied)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "PWNED")); err == nil {
		t.Error("a denied command ran")
	}
}
