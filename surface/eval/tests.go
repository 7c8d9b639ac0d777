package eval

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// What programs print of single tests; the first group is the name, or the
// second where the word of its state stands first.
var (
	stateFirst = regexp.MustCompile(`(?m)^\s*(?:--- )?(PASS|FAIL|SKIP|PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS|ok|not ok)(?:: | +\d+ +-? *| )(\S.*?)(?: \([0-9.]+m?s\)| - .*| # .*)?$`) // go test -v, pytest -rA, TAP
	stateLast  = regexp.MustCompile(`(?m)^(?:test )?(\S.*?) +(?:\.\.\. )?(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS|ok|FAIL)(?: +\[ *\d+%\])?$`)                                         // pytest -v, unittest, cargo test
	goJSON     = regexp.MustCompile(`"Action":"(pass|fail|skip)"[^\n]*?"Test":"([^"]+)"`)                                                                                              // go test -json
)

// Tests says which tests passed, from what a check printed: go test -v or
// -json, pytest -rA or -v, unittest, cargo test, TAP. A name that is there
// several times passed only if it did each time.
func Tests(output string) map[string]bool {
	passed := map[string]bool{}
	set := func(name, state string) {
		ok := slices.Contains([]string{"PASS", "PASSED", "XFAIL", "ok", "pass"}, state)
		was, there := passed[name]
		passed[name] = ok && (was || !there)
	}
	for _, m := range stateFirst.FindAllStringSubmatch(output, -1) {
		set(m[2], m[1])
	}
	for _, m := range stateLast.FindAllStringSubmatch(output, -1) {
		set(m[1], m[2])
	}
	for _, m := range goJSON.FindAllStringSubmatch(output, -1) {
		set(m[2], m[1])
	}
	return passed
}

// Score holds a check's output against the tests that a task names: which of
// them did not pass, and whether only those that passed before are among them.
func (t Task) Score(output string) (failing []string, regression bool) {
	passed := Tests(output)
	missing := func(names []string) (list []string) {
		for _, n := range names {
			if !passed[n] {
				list = append(list, n)
			}
		}
		return list
	}
	failing = missing(t.FailToPass)
	broken := missing(t.PassToPass)
	return append(failing, broken...), len(failing) == 0 && len(broken) > 0
}

var touched = regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)`)

// TestCommand is the check of a task that names none: the tests that its patch
// touches, by what they are written in; "" where that is not known.
func (t Task) TestCommand() string {
	var py, golang []string
	for _, m := range touched.FindAllStringSubmatch(t.Hidden.Patch, -1) {
		switch file := m[1]; {
		case strings.HasSuffix(file, "_test.go"):
			if dir := "./" + path.Dir(file); !slices.Contains(golang, dir) {
				golang = append(golang, dir)
			}
		case strings.HasSuffix(file, ".py") && path.Base(file) != "conftest.py":
			py = append(py, file)
		}
	}
	switch {
	case len(golang) > 0:
		return "go test -count=1 -v" + quoted(golang)
	case len(py) > 0:
		return "python3 -m pytest -rA -p no:cacheprovider" + quoted(py)
	}
	return ""
}

func quoted(words []string) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteString(" '" + strings.ReplaceAll(w, "'", `'\''`) + "'")
	}
	return b.String()
}
