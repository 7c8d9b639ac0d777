package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/policy"
)

// What a Read rule keeps from read_file it keeps from every command too,
// whatever way leads there, and nothing of that shows as a change.
func TestReadRulesReachTheSandbox(t *testing.T) {
	outside := t.TempDir()
	deep, err := filepath.EvalSymlinks(outside)
	if err != nil {
		t.Fatal(err)
	}
	b := newBed(t, policy.Options{Allow: []string{"Bash(*)"}, Ask: []string{"Read(/asked/**)"},
		Deny: []string{"Read(./secrets/**)", "Read(.env)", "Read(/conf/*.key)", "Read(//" + deep[1:] + "/far)"}}, direct)
	for _, name := range []string{"secrets/a", "secrets/deep/b", ".env", "sub/.env", "conf/x.key", "asked/q"} {
		b.write(name, "k-secret of "+name)
	}
	b.write("conf/x.pub", "public")
	b.write("asked-not", "public")
	for from, to := range map[string]string{"link": ".env", "dir": "secrets"} {
		if err := os.Symlink(to, filepath.Join(b.dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"hard": "sub/.env", "asked/x": ".env"} {
		if err := os.Link(filepath.Join(b.dir, to), filepath.Join(b.dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(deep, "far"), []byte("k-secret of far"), 0o644); err != nil {
		t.Fatal(err)
	}
	cat := `python3 -c 'import sys
for p in sys.argv[1:]:
    try: print(open(p).read())
    except OSError as e: print(e)' `
	for name, text := range map[string]string{
		"by name":         cat + "secrets/a secrets/deep/b .env sub/.env conf/x.key asked/q " + deep + "/far",
		"in the tree":     "cp -r . /tmp/copy; grep -ra k-secre[t] . /tmp/copy; tar -cf - . | grep -ao k-secre[t]",
		"through links":   cat + "link dir/a hard asked/x",
		"under /proc":     cat + "/proc/self/root$PWD/.env /proc/self/cwd/.env /proc/self/cwd/secrets/a; exec 3< .env; cat <&3 /dev/fd/3",
		"by a descriptor": `python3 -c 'import os; d = os.open(".", os.O_RDONLY); print(os.read(os.open(".env", os.O_RDONLY, dir_fd=d), 99))'`,
		"after a move":    "mv secrets s2; mv sub sub2; mv .env e; chmod 644 .env; cat s2/* sub2/.env e .env; ln .env e2; cat e2; true",
	} {
		t.Run(name, func(t *testing.T) {
			r := b.script(text)
			if strings.Contains(r.GetOutput().GetText(), "k-secret") {
				t.Errorf("read: %q", r.GetOutput().GetText())
			}
		})
	}
	t.Run("the rest is there", func(t *testing.T) {
		contains(t, b.want(b.script("cat conf/x.pub asked-not"), v1.Status_ok).GetOutput().GetText(), "publicpublic")
	})
	t.Run("nothing shows as a change", func(t *testing.T) {
		if r := b.want(b.script("ls -la . conf > /dev/null; echo y > y"), v1.Status_ok); len(r.Changes.Changes) != 1 {
			t.Errorf("changes: %v", r.Changes)
		}
		if got := b.read(".env"); got != "k-secret of .env" {
			t.Errorf(".env is now %q", got)
		}
	})
	t.Run("what comes later", func(t *testing.T) {
		b.want(b.script("mkdir -p new/secrets && echo k-secret > new/.env && echo k-secret > conf/y.key"), v1.Status_ok)
		r := b.script("cat new/.env conf/y.key")
		if strings.Contains(r.GetOutput().GetText(), "k-secret") {
			t.Errorf("read: %q", r.GetOutput().GetText())
		}
	})
	t.Run("other ways", func(t *testing.T) {
		for _, r := range []*v1.StepResult{
			b.do(contract.Search, map[string]any{"pattern": "k-secret", "include_ignored": true}),
			b.do(contract.ListFiles, map[string]any{"include_ignored": true}),
			b.do(contract.ReadFile, map[string]any{"path": "hard"}),
			b.do(contract.ReadFile, map[string]any{"path": "link"}),
		} {
			if text := r.GetOutput().GetText(); strings.Contains(text, "k-secret") || strings.Contains(text, "x.key") {
				t.Errorf("%s: %q", r.Action, text)
			}
		}
		step := b.step(contract.RunCommand, map[string]any{"cmd": "true"})
		step.Expect = &v1.Expect{Artifacts: []string{".env"}}
		if r := b.submit(step); len(r.Artifacts) > 0 {
			t.Errorf("kept as an artifact: %v", r.Artifacts)
		}
		b.want(b.do(contract.WriteFile, map[string]any{"path": ".env", "content": "mine"}), v1.Status_ok)
		if r := b.do(contract.Diff, nil); strings.Contains(r.GetOutput().GetText(), "k-secret") {
			t.Errorf("the diff shows it: %q", r.GetOutput().GetText())
		}
	})
	t.Run("a word names it", func(t *testing.T) {
		for _, cmd := range []string{"cat .env", "cat .ENV", "head -3 sub/.env", "grep x conf/x.key", "cat secrets/*", "cat .e*", "dd if=.env", "sort --files0-from=.env", "wc -l < .env", "cat link", "cat hard"} {
			if r := b.sh(cmd); r.Status != v1.Status_denied {
				t.Errorf("%s: %v", cmd, r.Status)
			}
		}
		for _, cmd := range []string{"echo .env", "grep .env asked-not", "cat asked-not", "test -f .env", "cat conf/*.pub"} {
			if r := b.sh(cmd); r.Status == v1.Status_denied {
				t.Errorf("%s: %v", cmd, r.Error)
			}
		}
	})
	t.Run("a yes opens what was asked, and no more", func(t *testing.T) {
		step := b.step(contract.RunCommand, map[string]any{"cmd": "cat asked/q; bash ./attack.sh"})
		b.write("attack.sh", "cat secrets/a .env asked/x")
		r := b.want(b.submit(step), v1.Status_awaiting_approval)
		if _, err := b.x.Decide(t.Context(), &v1.DecideRequest{SessionId: b.id, ApprovalId: r.Approval.ApprovalId, Digest: r.Approval.Digest, Answer: v1.DecideRequest_allow}); err != nil {
			t.Fatal(err)
		}
		r = b.submit(step)
		if text := r.GetOutput().GetText(); strings.Count(text, "k-secret") != 1 || !strings.Contains(text, "k-secret of asked/q") {
			t.Errorf("%v: %q", r.Status, text)
		}
	})
}

// A repository with a hidden file is still one to work in.
func TestGitBesideHiddenFiles(t *testing.T) {
	b := newBed(t, policy.Options{Allow: []string{"Bash(*)"}, Deny: []string{"Read(.env)", "Read(./secrets/**)"}}, direct)
	b.write(".gitignore", ".env\nsecrets/\n")
	b.write(".env", "k-secret")
	b.write("secrets/a", "k-secret")
	if out, err := exec.Command("git", "init", "-q", b.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.write("go.mod", "module x\n")
	b.write("x.go", "package x\n")
	b.want(b.script("go vet ./..."), v1.Status_ok)
	r := b.script("git add -A && git -c user.email=t@t.test -c user.name=t commit -qm a && git status --short && git ls-files")
	b.want(r, v1.Status_ok)
	if strings.Contains(r.GetOutput().GetText(), "secrets/a") {
		t.Errorf("%q", r.GetOutput().GetText())
	}
}
