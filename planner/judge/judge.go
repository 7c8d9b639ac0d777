// Package judge finds the project's own check and reads its report. The
// executor runs it after the last change; its verdict, not the model's word,
// says whether the task is done.
package judge

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Spec is the check that a run ends with.
type Spec struct {
	Cmd      string
	Off      bool // no check
	Explicit bool // asked for by a flag or config: runs even when nothing changed
}

// Verdicts.
const (
	Proven   = "proven"
	Red      = "red"
	Unproven = "unproven"
)

// Reader reads a file of the workspace, through the executor; an error is a
// file that is not there.
type Reader func(ctx context.Context, path string) (string, error)

// sources are the files that tell how a project is tested, in the order in which they are asked.
var sources = []struct {
	file string
	cmd  func(text string) string
}{
	{"go.mod", func(string) string { return "go test ./..." }},
	{"Cargo.toml", func(string) string { return "cargo test --quiet" }},
	{"package.json", npmTest},
	{"pyproject.toml", func(text string) string { return when(strings.Contains(text, "pytest"), "python3 -m pytest -q") }},
	{"pytest.ini", func(string) string { return "python3 -m pytest -q" }},
	{"tox.ini", func(text string) string { return when(strings.Contains(text, "[pytest]"), "python3 -m pytest -q") }},
	{"setup.cfg", func(text string) string { return when(strings.Contains(text, "[tool:pytest]"), "python3 -m pytest -q") }},
	{"conftest.py", func(string) string { return "python3 -m pytest -q" }},
	{"tests/conftest.py", func(string) string { return "python3 -m pytest -q" }},
	{"pom.xml", func(string) string { return "mvn -q test" }},
	{"build.gradle", func(string) string { return "gradle -q test" }},
	{"build.gradle.kts", func(string) string { return "gradle -q test" }},
	{"mix.exs", func(string) string { return "mix test" }},
	{"Makefile", makeTest},
	{"makefile", makeTest},
	{"GNUmakefile", makeTest},
}

func when(ok bool, cmd string) string {
	if ok {
		return cmd
	}
	return ""
}

func npmTest(text string) string {
	var p struct{ Scripts map[string]string }
	if json.Unmarshal([]byte(text), &p) != nil {
		return ""
	}
	t := p.Scripts["test"]
	return when(t != "" && !strings.Contains(t, "no test specified"), "npm test --silent")
}

// lazy compiles a pattern when it is first used: a short command needs none.
func lazy(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

var target = lazy(`(?m)^(test|check)\s*:([^=]|$)`)

func makeTest(text string) string {
	if m := target().FindStringSubmatch(text); m != nil {
		return "make " + m[1]
	}
	return ""
}

// Find is the project's check and the file that tells, "" if there is none.
func Find(ctx context.Context, read Reader) (cmd, file string) {
	for _, s := range sources {
		text, err := read(ctx, s.file)
		if err != nil {
			continue
		}
		if cmd := s.cmd(text); cmd != "" {
			return cmd, s.file
		}
	}
	return "", ""
}

var failing = []func() *regexp.Regexp{
	lazy(`(?m)^\s*--- FAIL: (\S+)`),                           // go test
	lazy(`"Action":"fail"[^\n]*"Test":"([^"]+)"`),             // go test -json
	lazy(`(?m)^(?:FAILED|ERROR) (\S+)`),                       // pytest
	lazy(`(?m)^test (\S+) \.\.\. FAILED`),                     // cargo test
	lazy(`(?m)^\s*not ok \d+ -? ?([^#\n]+?)\s*(?:#[^\n]*)?$`), // TAP
	lazy(`(?m)^\s+● (.+)$`),                                   // jest
}

// Failing is the names of failing tests in a report, as far as its form is known.
func Failing(report string) []string {
	var names []string
	for _, re := range failing {
		for _, m := range re().FindAllStringSubmatch(report, -1) {
			if !slices.Contains(names, m[1]) {
				names = append(names, m[1])
			}
		}
	}
	return names
}

var testFile = lazy(`(^|/)(tests?|__tests__|spec)/|_test\.(go|py|rb|exs)$|(^|/)test_[^/]*\.py$|\.(test|spec)\.[jt]sx?$|Test\.java$|(^|/)conftest\.py$`)

// IsTest says whether a path looks like a test.
func IsTest(path string) bool { return testFile().MatchString(path) }

var skips = lazy(`\bt\.Skip|\bb\.Skip|pytest\.mark\.(skip|xfail)|unittest\.skip|\b(it|test|describe)\.(skip|only)\(|\bx(it|describe)\(|#\[ignore|@Disabled|@Ignore|//go:build ignore`)

// Skips is the lines that a diff adds and that keep a test from running.
func Skips(diff string) []string {
	var lines []string
	file := ""
	for line := range strings.Lines(diff) {
		if name, ok := strings.CutPrefix(line, "+++ b/"); ok {
			file = strings.TrimSpace(name)
		} else if strings.HasPrefix(line, "+") && skips().MatchString(line) {
			lines = append(lines, file+": "+strings.TrimSpace(line[1:]))
		}
	}
	return lines
}
