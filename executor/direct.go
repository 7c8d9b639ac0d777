package executor

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"harness/executor/policy/shell"
)

// argv is how a command runs: by the shell; or, where the shell would do no
// more than start one program of the system with the words as they are
// written, that program itself, which saves the start of the shell.
func argv(cmd string, env []string) []string {
	byShell := []string{shellProgram(), "-c", cmd}
	words := shell.Plain(cmd)
	if words == nil || slices.ContainsFunc(env, changesShell) {
		return byShell
	}
	if !startsSystem(words[0], env) {
		return byShell
	}
	return words
}

// changesShell says whether a variable may make a shell do something else.
func changesShell(kv string) bool {
	return strings.HasPrefix(kv, "BASH_") || strings.HasPrefix(kv, "ENV=") || strings.HasPrefix(kv, "SHELLOPTS=")
}

// systemDirs hold programs that no step can change.
var systemDirs = []string{"/usr/", "/bin/", "/sbin/", "/opt/"}

// startsSystem says whether a name stands for a file of the system that the
// kernel runs. What a search for the name meets outside of the system's folders
// first, the shell shall find.
func startsSystem(name string, env []string) bool {
	if strings.Contains(name, "/") {
		return runnable(name)
	}
	i := slices.IndexFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "PATH=") })
	if i < 0 {
		return false
	}
	for _, dir := range filepath.SplitList(env[i][len("PATH="):]) {
		path := filepath.Join(dir, name)
		if runnable(path) {
			return true
		}
		if !inSystem(path) {
			return false
		}
	}
	return false
}

func inSystem(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && slices.ContainsFunc(systemDirs, func(d string) bool { return strings.HasPrefix(path, d) })
}

// runnable says whether the kernel runs the file without a shell's help.
func runnable(path string) bool {
	if !inSystem(path) {
		return false
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil || !inSystem(real) {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 4)
	n, _ := f.Read(head)
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && (bytes.HasPrefix(head[:n], []byte("\x7fELF")) || bytes.HasPrefix(head[:n], []byte("#!")))
}
