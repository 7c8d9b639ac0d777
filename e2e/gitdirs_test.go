package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	v1 "harness/contract/harness/v1"
)

// What people do with git every day lands.
func TestGitWorks(t *testing.T) {
	b := newBed(t, allowAll, direct)
	for _, text := range []string{
		"git init -q . && git config user.email t@t.test && git config user.name t && git config core.autocrlf input",
		"echo a > a && git add a && git commit -qm a && git branch -q side && git tag v1",
		"git config alias.st status && git config alias.l 'log --oneline' && git remote add up https://example.com/x.git && git config branch.main.rebase true",
		"git config core.fsmonitor false && git config --unset core.fsmonitor && git config core.pager cat",
		"git worktree add -q wt side && cd wt && echo b > b && git add b && git commit -qm b",
		"git worktree remove wt",
		"git init -q lib && cd lib && echo l > l && git add l && git -c user.email=t@t.test -c user.name=t commit -qm l",
		"git -c protocol.file.allow=always submodule add file://$PWD/lib sub 2>/dev/null && git commit -qm sub && git submodule status",
		"cd sub && echo m > m && git add m && git -c user.email=t@t.test -c user.name=t commit -qm m",
		"git clone -q --bare file://$PWD bare.git && git clone -q --no-hardlinks . copy && git stash list && git gc -q",
		"mkdir -p src/hooks && echo x > src/hooks/useThing.ts && echo y > config",
		"mkdir -p fresh/.vscode fresh/.claude && echo '{}' > fresh/.vscode/settings.json && echo '{}' > fresh/.claude/settings.json",
		"mkdir -p .github/workflows && echo 'on: push' > .github/workflows/ci.yml",
		"mkdir bare && cd bare && git init -q --bare .bare && echo 'gitdir: ./.bare' > .git",
		"rm -f .git/hooks/*.sample && git config --unset core.pager",
	} {
		if r := b.script(text); r.Status != v1.Status_ok {
			t.Errorf("%s: %v %v %q", text, r.Status, r.Error, r.GetOutput().GetText())
		}
	}
	if out, err := exec.Command("git", "-C", b.dir, "fsck", "--no-dangling").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// What would run on this machine later, outside of any sandbox, does not land.
func TestNothingIsPlanted(t *testing.T) {
	b := newBed(t, allowAll, direct)
	b.want(b.script("git init -q . && git init -q .bare --bare && mkdir -p .husky evil && git -c user.email=t@t.test -c user.name=t commit -q --allow-empty -m x"), v1.Status_ok)
	for _, c := range [][]string{{"config", "core.hooksPath", ".husky"}, {"config", "core.editor", "vim"}} { // the user's own
		if out, err := exec.Command("git", append([]string{"-C", b.dir}, c...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	bare := "mkdir -p x/objects x/refs && echo 'ref: refs/heads/main' > x/HEAD && "
	for _, text := range []string{
		"git config core.fsmonitor ./x", "git config core.sshCommand ./x", "git config core.hooksPath evil", "git config core.pager ./x",
		"git config alias.st '!./x'", "git config alias.l 'log --ext-diff'", "git config diff.external ./x", "git config diff.a.textconv ./x", "git config filter.a.smudge ./x",
		"git config filter.a.process ./x", "git config credential.helper '!./x'", "git config credential.https://a.test.helper /x", "git config include.path ../evil/c",
		"git config includeIf.onbranch:main.path ../evil/c", "git config core.worktree /etc", "git config gpg.program ./x", "git config submodule.a.update '!./x'",
		"git config remote.up.url 'ext::./x'", "git config protocol.ext.allow always", "git config merge.a.driver ./x", "git config sequence.editor ./x", "git config pager.log ./x",
		"git config core.editor ./x", // another than the user's
		"git config extensions.worktreeConfig true && git config --worktree core.fsmonitor ./x",
		`printf '[core]fsmonitor=./x\n' >> .git/config`, `printf '[CORE "a"]\n[Core] FSMONITOR = ./\\\nx\n' >> .git/config`, `printf '[core\n' >> .git/config`,
		"cp .git/config evil/c && git config -f evil/c core.fsmonitor ./x && ln -sf ../evil/c .git/config",
		"echo x > .git/hooks/pre-commit", "mkdir evil/h && echo x > evil/h/pre-commit && mv .git/hooks .git/h && ln -s ../evil/h .git/hooks",
		"echo x > .husky/pre-commit", "echo x > .bare/hooks/post-checkout", "git -C .bare config core.fsmonitor ./x",
		bare + "echo '[core]fsmonitor=./x' > x/config", bare + "mkdir x/hooks && echo x > x/hooks/pre-commit",
		"mkdir s && echo 'gitdir: ../evil' > s/.git", "mkdir s && ln -s ../evil s/.git",
		"git worktree add -q wt && echo ../../../evil > .git/worktrees/wt/commondir",
		"rm -rf .git", "mv .git g", "mkdir -p .GIT/hooks && echo x > .GIT/hooks/pre-commit",
		"mkdir -p .harness && echo x > .harness/config.toml", "echo x > .envrc", "mkdir -p .claude && echo '{}' > .claude/settings.json",
		"mkdir -p .vscode && echo '{}' > .vscode/tasks.json", "echo '{}' > .mcp.json", "mkdir -p .github/hooks && echo '{}' > .github/hooks/x.json",
	} {
		if r := b.script(text); r.Status != v1.Status_denied {
			t.Errorf("%s: %v %v %q", text, r.Status, r.Error, r.GetOutput().GetText())
		}
	}
	t.Run("in two steps", func(t *testing.T) {
		b.want(b.script("mkdir y && echo '[core]fsmonitor=./x' > y/config && mkdir y/hooks && echo x > y/hooks/pre-commit"), v1.Status_ok)
		if r := b.script("mkdir -p y/objects y/refs && echo 'ref: refs/heads/main' > y/HEAD"); r.Status != v1.Status_denied {
			t.Errorf("%v", r.Status)
		}
	})
	config, err := os.ReadFile(b.dir + "/.git/config")
	if err != nil || strings.Contains(string(config), "./x") {
		t.Errorf("%s %v", config, err)
	}
}

// A .git that is a link to a folder of the workspace is a repository as any other.
func TestLinkedGitFolder(t *testing.T) {
	b := newBed(t, allowAll, direct)
	if out, err := exec.Command("sh", "-c", "cd "+b.dir+" && git init -q . && mv .git data && ln -s data .git").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.want(b.script("echo a > a && git add a && git -c user.email=t@t.test -c user.name=t commit -qm a && git config user.name t"), v1.Status_ok)
	for _, text := range []string{"echo x > .git/hooks/pre-commit", "git config core.fsmonitor ./x", "rm .git && ln -s evil .git"} {
		b.want(b.script(text), v1.Status_denied)
	}
}
