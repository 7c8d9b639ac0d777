package e2e

import (
	"fmt"
	"os"
	"strings"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// specialCases are played in more than one step.
var specialCases = map[string]func(*yard) *v1.StepResult{
	"S-pth-001": func(y *yard) *v1.StepResult {
		return y.do(contract.ReadFile, map[string]any{"path": "../ws_old/s.txt"})
	},
	"S-pth-012": func(y *yard) (r *v1.StepResult) {
		for range 100 {
			if r = y.do(contract.ReadFile, map[string]any{"path": "f"}); strings.Contains(r.GetOutput().GetText(), "s") {
				break
			}
		}
		return &v1.StepResult{Status: v1.Status_failed, Output: r.GetOutput()} // whichever the last came upon
	},
	"S-pth-034": func(y *yard) *v1.StepResult {
		step := y.step(contract.WriteFile, map[string]any{"path": "notes.txt", "content": "x"})
		y.approve(y.want(y.submit(step), v1.Status_awaiting_approval))
		y.want(y.submit(step), v1.Status_ok)
		return y.do(contract.WriteFile, map[string]any{"path": ".harness/config.toml", "content": "[permissions]\nallow = ['Bash(*)']\n"})
	},
	"S-pth-040": func(y *yard) *v1.StepResult {
		step := y.step(contract.RunCommand, map[string]any{"cmd": "sh s.sh", "cwd": "cur"})
		held := y.want(y.submit(step), v1.Status_awaiting_approval)
		if err := os.Remove(y.at("cur")); err != nil {
			y.t.Fatal(err)
		}
		if err := os.Symlink(y.out+"/evil", y.at("cur")); err != nil {
			y.t.Fatal(err)
		}
		y.approve(held)
		return y.submit(step)
	},
	"S-sbx-002": func(y *yard) *v1.StepResult {
		y.t.Cleanup(func() { os.Remove(fmt.Sprintf("/tmp/agent-out-%d", os.Getuid())) })
		return y.sh("seq 100000")
	},
	// The product's own folder has its own name.
	"S-pth-033": func(y *yard) *v1.StepResult {
		return y.sh(`mkdir -p .harness && echo 'allow' > .harness/config.toml`)
	},
	"S-sbx-019": func(y *yard) *v1.StepResult {
		r := y.sh("mkdir -p .git/hooks && touch .git/hooks/x")
		y.want(r, v1.Status_denied)
		return r
	},
}

func (y *yard) approve(r *v1.StepResult) {
	y.t.Helper()
	if _, err := y.x.Decide(y.t.Context(), &v1.DecideRequest{SessionId: y.id, ApprovalId: r.Approval.ApprovalId, Digest: r.Approval.Digest, Answer: v1.DecideRequest_allow}); err != nil {
		y.t.Fatal(err)
	}
}

// pathFacts checks what each case says must be so afterwards.
var pathFacts = map[string]fact{
	"S-pth-001": unsaid("s\n"),
	"S-pth-002": unsaid("nothing is there"),
	"S-pth-003": unsaid("\n"),
	"S-pth-004": all(absent("../../x.txt"), absent("${WS}/../x.txt")),
	"S-pth-005": unsaid("secret"),
	"S-pth-006": unsaid("k"),
	"S-pth-007": absent("${OUT}/c"),
	"S-pth-008": absent("${OUT}/p/x"),
	"S-pth-009": absent("${OUT}/none"),
	"S-pth-010": shows("hi"),
	"S-pth-011": shows("hi"),
	"S-pth-012": unsaid("\ts\n"),
	"S-pth-013": all(there("x", "b\n"), linkIsSaid, undone("x", "a\n"), undone("y", "a\n")),
	"S-pth-014": unsaid("="),
	"S-pth-015": unsaid("\n"),
	"S-pth-016": absent("${HOME}/x.txt"),
	"S-pth-017": func(y *yard, _ *v1.StepResult) string {
		if _, err := os.Stat(y.home); err != nil {
			return err.Error()
		}
		return ""
	},
	"S-pth-018": unsaid("\n"),
	"S-pth-019": absent(".Agent"),
	"S-pth-020": func(y *yard, _ *v1.StepResult) string {
		if data, err := os.ReadFile(y.at(".git/config")); err != nil || !strings.Contains(string(data), "repositoryformatversion") {
			return fmt.Sprintf(".git/config is %q: %v", data, err)
		}
		return absent(".g\u200cit")(y, nil)
	},
	"S-pth-021": there("a\ufffd\ufffd\ufffd.txt", "x\n"),
	"S-pth-022": unsaid("\n"),
	"S-pth-023": unsaid("\n"),
	"S-pth-024": all(errorSays("name"), func(y *yard, _ *v1.StepResult) string {
		return shows("there")(y, y.want(y.do(contract.ListFiles, nil), v1.Status_ok))
	}),
	"S-pth-025": there(".gitignore", "*.o\n"),
	"S-pth-026": there(".github/ISSUE_TEMPLATE/bug.md", "x\n"),
	"S-pth-027": there("a/b/c/new.txt", "x\n"),
	"S-pth-028": func(y *yard, _ *v1.StepResult) string {
		if data, err := os.ReadFile(y.at(".git/config")); err != nil || strings.Contains(string(data), "fsmonitor") {
			return fmt.Sprintf(".git/config is %q: %v", data, err)
		}
		return ""
	},
	"S-pth-029": absent("sub/.git/hooks/pre-commit"),
	"S-pth-030": func(y *yard, _ *v1.StepResult) string {
		y.sh("git status")
		return absent("x")(y, nil)
	},
	"S-pth-031": absent(".envrc"),
	"S-pth-032": absent(".github/hooks"),
	"S-pth-033": absent(".harness"),
	"S-pth-034": all(there("notes.txt", "x"), absent(".harness")),
	"S-pth-035": unsaid("k\n"),
	"S-pth-036": absent("${HOME}/.ssh"),
	"S-pth-037": unsaid("\n"),
	"S-pth-038": all(errorSays("folder"), func(y *yard, _ *v1.StepResult) string {
		if info, err := os.Stat(y.at("d")); err != nil || !info.IsDir() {
			return "the folder changed"
		}
		return ""
	}),
	"S-pth-039": unsaid("k1"),
	"S-pth-040": absent("${OUT}/PWNED"),
	"S-pth-041": unsaid("k-secret"),
	"S-pth-042": absent("${OUT}/PWNED"),
	"S-sbx-001": absent("${OUT}/PWNED"),
	"S-sbx-002": absent("${OUT}/o"),
	"S-sbx-003": unsaid("s2"),
	"S-sbx-019": all(absent(".git/hooks/x"), errorSays(".git/hooks")),
	"S-sbx-020": shows("r1\nr2"),
	"S-sbx-021": shows("/tmp/"),
	"S-sbx-022": shows("1\n"),
}

func linkIsSaid(_ *yard, r *v1.StepResult) string {
	if !strings.Contains(strings.Join(r.Notes, " "), "link") {
		return fmt.Sprintf("the notes are %q", r.Notes)
	}
	return ""
}

// undone takes the session's last step back, once, and looks.
func undone(path, text string) fact {
	return func(y *yard, r *v1.StepResult) string {
		y.do(contract.Restore, map[string]any{"to_step": r.StepId})
		return there(path, text)(y, nil)
	}
}
