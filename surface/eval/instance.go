package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// instancesOf is how a suite uses a file of instances.
type instancesOf struct {
	repos string // what stands before owner/name: a URL or a folder
	check string
	only  []string
}

// instance is a line of SWE-bench's data sets; fields that are not read here are left alone.
// Source: https://www.swebench.com/SWE-bench/guides/datasets/
type instance struct {
	ID         string `json:"instance_id"`
	Repo       string `json:"repo"`
	Base       string `json:"base_commit"`
	Statement  string `json:"problem_statement"`
	Patch      string `json:"patch"`
	TestPatch  string `json:"test_patch"`
	FailToPass names  `json:"FAIL_TO_PASS"`
	PassToPass names  `json:"PASS_TO_PASS"`
}

// names is a list of tests, or a string that holds one as JSON, as the data sets have it.
type names []string

func (n *names) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		if data = []byte(text); text == "" {
			return nil
		}
	}
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return errors.New("must be a list of tests, or a text that holds one")
	}
	*n = list
	return nil
}

// instances reads JSON Lines.
func (r *reader) instances(file string, data []byte, from instancesOf) (tasks []Task) {
	n := 0
	found := map[string]bool{}
	for line := range bytes.Lines(data) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		fail := func(format string, args ...any) {
			r.errs = append(r.errs, fmt.Errorf("%s:%d: %s", file, n, fmt.Sprintf(format, args...)))
		}
		var i instance
		if err := json.Unmarshal(line, &i); err != nil {
			var wrong *json.UnmarshalTypeError
			if errors.As(err, &wrong) {
				fail("%s: must be a text, not %s", wrong.Field, wrong.Value)
			} else {
				fail("%v", err)
			}
			continue
		}
		if len(from.only) > 0 && !slices.Contains(from.only, i.ID) {
			continue
		}
		found[i.ID] = true
		for _, f := range [][2]string{{"instance_id", i.ID}, {"repo", i.Repo}, {"base_commit", i.Base}, {"problem_statement", i.Statement}, {"test_patch", i.TestPatch}} {
			if strings.TrimSpace(f[1]) == "" {
				fail("%s: is missing or empty", f[0])
			}
		}
		if len(i.FailToPass) == 0 {
			fail("FAIL_TO_PASS: names no test")
		}
		repo := i.Repo
		if !strings.Contains(repo, "://") {
			repo = strings.TrimSuffix(from.repos, "/") + "/" + repo
		}
		tasks = append(tasks, Task{Name: i.ID, Repo: repo, Ref: i.Base, Statement: i.Statement, Check: from.check, OwnCheck: true,
			Hidden: Hidden{Patch: i.TestPatch}, FailToPass: i.FailToPass, PassToPass: i.PassToPass})
	}
	for _, id := range from.only {
		if !found[id] {
			r.errs = append(r.errs, fmt.Errorf("%s: has no instance %s", file, id))
		}
	}
	return tasks
}
