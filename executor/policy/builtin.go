package policy

import (
	"strings"
	"sync"
)

// denied and asked are the rules that everybody has. They can be narrowed only.
var denied = []struct{ reason, rules string }{
	{"it holds secrets", `~/.ssh/** ~/.aws/** ~/.gnupg/** ~/.azure/** ~/.kube/** ~/.docker/config.json ~/.netrc ~/.git-credentials ~/.npmrc ~/.pypirc ~/.config/gh/** ~/.config/gcloud/** ~/.config/git/credentials ~/.cargo/credentials ~/.cargo/credentials.toml ~/.password-store/** ~/.local/share/keyrings/** ~/.mozilla/** ~/.config/google-chrome/** ~/.config/chromium/** ~/.config/BraveSoftware/** ~/.bash_history ~/.zsh_history ~/.config/op/** ~/.terraform.d/** ~/.local/share/harness/** ~/.local/state/harness/** //etc/shadow //etc/gshadow //etc/sudoers //etc/sudoers.d/** //proc/*/environ //proc/*/mem //proc/*/root/** //proc/kcore //dev/mem //dev/fd/** //proc/*/fd/**`},
}

// protected are files of a project that something runs, by who runs them. An
// edit that names one is denied or asked. What a command leaves in one that is
// run here, on this machine, without a further question is put in place only
// if a person said yes to the command; but for a folder that the command itself
// made, as a clone, since nobody works in it yet. Build services' files may be
// left by a command: they run elsewhere, after a push that a person sees.
var protected = []struct {
	list   verdict
	here   bool
	reason string
	files  string
}{
	{deny, true, "git's own files start programs", `.git .git/**`},
	{deny, true, "it is this program's own configuration", `.harness .harness/**`},
	{ask, true, "a shell runs it by itself", `.envrc .direnv/** .bashrc .bash_profile .bash_login .bash_logout .profile .zshrc .zshenv .zprofile .zlogin .inputrc`},
	{ask, true, "an agent runs what it says", `.claude/settings.json .claude/settings.local.json .claude/hooks/** .codex/** .gemini/settings.json .cursor/hooks.json .cursor/mcp.json .github/hooks/** .opencode/opencode.json .mcp.json .agent/hooks/** .agents/hooks/** .windsurf/hooks.json`},
	{ask, true, "an editor runs what it says", `.vscode/settings.json .vscode/tasks.json .vscode/launch.json .vscode/mcp.json .idea/runConfigurations/** .idea/workspace.xml .zed/settings.json .zed/tasks.json .nvim.lua .nvimrc .exrc .dir-locals.el`},
	{ask, false, "it configures an editor or an agent", `.vscode/** .idea/** .zed/** .claude/** .cursor/** .gemini/** .agents/** .agent/** .opencode/** .crush/** .windsurf/** .cursorrules .clinerules`},
	{ask, false, "a build service runs it", `.github/workflows/** .github/actions/** .gitlab-ci.yml .circleci/** .travis.yml Jenkinsfile azure-pipelines.yml .buildkite/** .drone.yml .woodpecker/** bitbucket-pipelines.yml`},
	{ask, false, "another program runs what it says", `.husky/** .pre-commit-config.yaml .lefthook.yml lefthook.yml .gitmodules .gitconfig .npmrc .yarnrc .yarnrc.yml .cargo/config .cargo/config.toml .mise.toml .devcontainer/**`},
}

// destructive commands have no place in a project.
var destructive = []struct{ reason, rules string }{
	{"it destroys disks", "mkfs mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.vfat mkfs.ntfs mkswap wipefs fdisk sfdisk cfdisk parted sgdisk blkdiscard hdparm"},
	{"it stops the machine", "shutdown reboot halt poweroff telinit"},
	{"it changes accounts", "passwd chpasswd useradd userdel usermod groupadd visudo"},
	{"it loads code into the kernel", "insmod modprobe rmmod kexec"},
}

// homeCaches are folders of the home that builds read.
var homeCaches = []string{"go", ".cargo", ".rustup", ".cache", ".npm", ".nvm", ".local/lib", ".local/bin", ".local/share/uv", ".m2", ".gradle", ".pyenv", ".rbenv", ".bun", ".deno", "sdk", ".gitconfig", ".config/git"}

var builtIn = sync.OnceValue(func() (rules []rule) {
	add := func(text string, list verdict, reason string) {
		r, err := parseRule(text, list)
		if err != nil {
			panic("policy: built-in " + err.Error())
		}
		r.source, r.reason = "built-in", reason
		rules = append(rules, r)
	}
	for _, d := range denied {
		for _, f := range strings.Fields(d.rules) {
			add("Read("+f+")", deny, d.reason)
			add("Edit("+f+")", deny, d.reason)
		}
	}
	for _, g := range protected {
		for _, f := range strings.Fields(g.files) {
			add("Edit(**/"+f+")", g.list, g.reason)
			if g.here {
				rules[len(rules)-1].here = strings.Split(f, "/")
			}
		}
	}
	for _, d := range destructive {
		for _, name := range strings.Fields(d.rules) {
			add("Bash("+name+":*)", deny, d.reason)
		}
	}
	return rules
})
