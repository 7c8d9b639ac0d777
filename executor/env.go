package executor

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
)

// shellProgram is the program that runs a command: bash where there is one, since
// that is what models write.
var shellProgram = sync.OnceValue(func() string {
	for _, name := range []string{"bash", "sh"} {
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	return "/bin/sh"
})

// passed are the variables that a command inherits. All others stay outside:
// keys, tokens, sockets of agents and desktops.
var passed = []string{
	"PATH", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "CI", "TRACEPARENT", "COLUMNS", "LINES",
	"GOROOT", "GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GOFLAGS", "GOTOOLCHAIN", "GOBIN", "GOMAXPROCS", "CGO_ENABLED",
	"CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "JAVA_HOME", "MAVEN_HOME", "GRADLE_HOME",
	"NODE_ENV", "NODE_PATH", "NVM_DIR", "PYENV_ROOT", "PYENV_VERSION", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NO_COLOR",
}

// fixed are the variables that keep a command from waiting for a person
// (pagers, editors, questions) and from touching the user's git index.
var fixed = map[string]string{
	"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "MANPAGER": "cat", "SYSTEMD_PAGER": "cat", "LESS": "-FRX",
	"EDITOR": "false", "VISUAL": "false", "GIT_EDITOR": "false", "GIT_SEQUENCE_EDITOR": "false",
	"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "false", "SSH_ASKPASS": "false", "GIT_OPTIONAL_LOCKS": "0",
	"DEBIAN_FRONTEND": "noninteractive", "PIP_NO_INPUT": "1", "NPM_CONFIG_YES": "true",
	"SHELL": "/bin/sh", "TMPDIR": "/tmp",
}

// commandEnv is the whole environment of a command.
func commandEnv(home, dir string, extra map[string]string) []string {
	env := map[string]string{"LANG": "C.UTF-8", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		if slices.Contains(passed, k) || strings.HasPrefix(k, "LC_") {
			env[k] = v
		}
	}
	if l := env["LC_ALL"] + env["LC_CTYPE"] + env["LANG"]; l == "C" || l == "POSIX" {
		env["LANG"] = "C.UTF-8"
		delete(env, "LC_ALL")
	}
	maps.Copy(env, fixed)
	maps.Copy(env, extra)
	env["PWD"] = dir
	list := make([]string, 0, len(env))
	for k, v := range env {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return list
}
