package policy

import (
	"strings"
	"sync"
)

// denied and asked are the rules that everybody has. They can be narrowed only.
var denied = []struct{ reason, rules string }{
	{"it holds secrets", `~/.ssh/** ~/.aws/** ~/.gnupg/** ~/.azure/** ~/.kube/** ~/.docker/config.json ~/.netrc ~/.git-credentials ~/.npmrc ~/.pypirc ~/.config/gh/** ~/.config/gcloud/** ~/.config/git/credentials ~/.cargo/credentials ~/.cargo/credentials.toml ~/.password-store/** ~/.local/share/keyrings/** ~/.mozilla/** ~/.config/google-chrome/** ~/.config/chromium/** ~/.config/BraveSoftware/** ~/.bash_history ~/.zsh_history ~/.config/op/** ~/.terraform.d/** ~/.local/share/harness/** ~/.local/state/harness/** //etc/shadow //etc/gshadow //etc/sudoers //etc/sudoers.d/** //proc/*/environ //proc/*/mem //proc/*/root/** //proc/kcore //dev/mem //dev/fd/** //proc/*/fd/**`},
}

var protected = []struct {
	list   verdict
	reason string
	files  string
}{
	{deny, "git's own files start programs", `.git .git/**`},
	{deny, "it is this program's own configuration", `.harness .harness/**`},
	{ask, "a shell runs it by itself", `.envrc .direnv/** .bashrc .bash_profile .bash_login .bash_logout .profile .zshrc .zshenv .zprofile .zlogin .inputrc`},
	{ask, "a build service runs it", `.github/workflows/** .github/actions/** .gitlab-ci.yml .circleci/** .travis.yml Jenkinsfile azure-pipelines.yml .buildkite/** .drone.yml bitbucket-pipelines.yml`},
	{ask, "another program runs what it says", `.github/hooks/** .husky/** .pre-commit-config.yaml .lefthook.yml lefthook.yml .gitmodules .gitconfig .npmrc .yarnrc .yarnrc.yml .cargo/config .cargo/config.toml .mise.toml .devcontainer/**`},
	{ask, "it configures an editor or an agent", `.vscode/** .idea/** .zed/** .nvim.lua .exrc .claude/** .cursor/** .codex/** .gemini/** .agents/** .agent/** .opencode/** .crush/** .windsurf/** .mcp.json .cursorrules .clinerules`},
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
		}
	}
	for _, d := range destructive {
		for _, name := range strings.Fields(d.rules) {
			add("Bash("+name+":*)", deny, d.reason)
		}
	}
	return rules
})
