package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"harness/executor/sandbox/hands"
)

// masked are the folders that commands find empty and private.
var masked = []string{"/tmp", "/var/tmp", "/run", "/var/run", "/home", "/root"}

// secretFiles lie outside of homes, and root could read them.
var secretFiles = []string{"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d",
	"/etc/ssh/ssh_host_*_key", "/etc/ssl/private", "/etc/krb5.keytab", "/etc/kubernetes", "/var/lib/kubelet",
	"/var/lib/docker", "/var/lib/containerd", "/var/spool/cron", "/var/backups"}

// secretsOfHome are hidden where the workspace holds the home.
var secretsOfHome = []string{".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc", ".pgpass",
	".git-credentials", ".config/gcloud", ".config/gh", ".config/harness", ".config/git/credentials", ".local/share/harness", ".local/share/keyrings",
	".cargo/credentials", ".cargo/credentials.toml", ".mozilla", ".config/google-chrome", ".config/chromium",
	".bash_history", ".zsh_history", ".password-store", ".vault-token", ".terraform.d", ".claude", ".codex", ".gemini"}

// shownOfHome are the toolchains and settings that builds read.
var shownOfHome = []string{"sdk", "go/bin", "go/src", ".local/bin", ".local/lib", ".local/share/uv", ".local/share/pnpm", ".local/share/mise",
	".local/pipx", ".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes", ".config/go",
	".cargo/bin", ".cargo/env", ".cargo/config.toml", ".rustup", ".pyenv", ".nvm", ".asdf", ".volta", ".fnm", ".bun", ".deno", ".sdkman", ".jdks",
	".rbenv", ".gem", ".opam", ".ghcup", ".dotnet", "miniconda3", "anaconda3", ".juliaup"}

// cachesOfHome are written by builds; what they write stays in the session.
var cachesOfHome = []string{"go/pkg", ".cache/go-build", ".cache/golangci-lint", ".cache/staticcheck", ".cache/pip", ".cache/uv", ".cache/pnpm", ".cache/yarn", ".cache/bazel",
	".cache/ccache", ".cache/node", ".npm/_cacache", ".cargo/registry", ".cargo/git", ".m2/repository", ".gradle/caches", ".gradle/wrapper",
	".nuget/packages", ".ivy2/cache", ".cabal/packages", ".stack"}

// plan is the tree that commands see, by real paths that exist.
func plan(c Config) hands.Setup {
	home := real(c.Home)
	if home == "/" {
		home = ""
	}
	s := hands.Setup{Workspace: c.Workspace, State: c.State}
	for _, m := range append(slices.Clone(masked), home) {
		if m = real(m); m != "" && !under(m, s.Masks) {
			s.Masks = append(s.Masks, m)
		}
	}
	if home != "" {
		s.Homes = []string{home}
	}
	bind := func(path string, cache bool) {
		p := real(path)
		if p == "" || p == home || within(home, p) || within(p, c.Workspace) || !under(p, s.Masks) || slices.Contains(s.Masks, p) {
			return
		}
		for _, b := range s.Binds {
			if b.Path == p {
				return
			}
		}
		s.Binds = append(s.Binds, hands.Bind{Path: p, Cache: cache})
	}
	for _, v := range []string{"GOCACHE", "GOMODCACHE"} {
		bind(os.Getenv(v), true)
	}
	for _, p := range filepath.SplitList(os.Getenv("GOPATH")) {
		bind(filepath.Join(p, "pkg"), true)
	}
	bind(os.Getenv("GOROOT"), false)
	if home != "" {
		for _, p := range cachesOfHome {
			bind(filepath.Join(home, p), true)
		}
		for _, p := range shownOfHome {
			bind(filepath.Join(home, p), false)
		}
	}
	for _, p := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(p) && !shown(real(p), s.Binds) {
			bind(p, false)
		}
	}
	slices.SortFunc(s.Binds, func(a, b hands.Bind) int { return strings.Compare(a.Path, b.Path) })
	for _, h := range append(append(slices.Clone(secretFiles), c.Hide...), c.State) {
		for _, m := range glob(h) {
			if m = real(m); m != "" && m != c.Workspace && !within(c.Workspace, m) {
				s.Hide = append(s.Hide, m)
			}
		}
	}
	if home != "" && within(home, c.Workspace) {
		for _, h := range secretsOfHome {
			if p := real(filepath.Join(home, h)); p != "" && !within(c.Workspace, p) {
				s.Hide = append(s.Hide, p)
			}
		}
	}
	return s
}

func shown(path string, binds []hands.Bind) bool {
	return slices.ContainsFunc(binds, func(b hands.Bind) bool { return within(path, b.Path) })
}

func glob(pattern string) []string {
	if !strings.Contains(pattern, "*") {
		return []string{pattern}
	}
	list, _ := filepath.Glob(pattern)
	return list
}

// real is a path without links, "" where nothing is there.
func real(path string) string {
	if path == "" {
		return ""
	}
	p, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	return p
}

func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func under(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return within(path, d) })
}
