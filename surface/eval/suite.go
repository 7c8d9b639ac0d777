package eval

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Load reads a suite: YAML, or a file of SWE-bench instances (.jsonl), which
// are a suite by themselves. All that is wrong is named with file, line and
// field; models may be given on top, and then take the place of the suite's.
func Load(file string, models []string) (*Suite, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	r := &reader{file: file}
	s := &Suite{Name: name, Repeats: 1, Parallel: 2, CheckTime: 20 * time.Minute, Policies: []Policy{{Name: "auto", Auto: true}}}
	for _, m := range models {
		s.Models = append(s.Models, Model{m, m})
	}
	if ext := filepath.Ext(file); ext == ".jsonl" || ext == ".ndjson" {
		s.Tasks = r.instances(file, data, instancesOf{repos: "https://github.com/"})
	} else {
		r.suite(s, data, filepath.Dir(file))
	}
	r.whole(s)
	return s, r.err()
}

func (r *reader) suite(s *Suite, data []byte, dir string) {
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		r.errs = append(r.errs, fmt.Errorf("%s:1: the suite is empty", r.file))
		return
	} else if err != nil {
		r.errs = append(r.errs, fmt.Errorf("%s: %s", r.file, strings.TrimPrefix(err.Error(), "yaml: ")))
		return
	}
	top := node{doc.Content[0], r, ""}
	f := top.fields("name", "models", "policies", "repeats", "parallel", "limits", "check_time", "tasks", "instances")
	if n, ok := f["name"]; ok {
		s.Name = n.text()
	}
	if n, ok := f["models"]; ok && len(s.Models) == 0 {
		for _, m := range n.texts() {
			use := m
			if path, ok := strings.CutPrefix(m, "recorded:"); ok {
				use = "recorded:" + within(dir, path)
			}
			s.Models = append(s.Models, Model{m, use})
		}
	}
	if n, ok := f["policies"]; ok {
		s.Policies = nil
		for _, p := range n.list() {
			s.Policies = append(s.Policies, p.policy(dir))
		}
	}
	s.Repeats, s.Parallel = f["repeats"].number(1, 1), f["parallel"].number(2, 1)
	s.CheckTime = f["check_time"].time(s.CheckTime)
	if n, ok := f["limits"]; ok {
		l := n.fields("turns", "tokens", "time", "budget_usd")
		s.Limits = Limits{l["turns"].number(0, 1), l["tokens"].number(0, 1), l["time"].time(0), l["budget_usd"].amount()}
	}
	for _, t := range f["tasks"].list() {
		s.Tasks = append(s.Tasks, t.task(dir))
	}
	for _, i := range f["instances"].list() {
		g := i.fields("file", "repos", "check", "only")
		from := instancesOf{repos: "https://github.com/", check: g["check"].text(), only: g["only"].texts()}
		if n, ok := g["repos"]; ok {
			from.repos = within(dir, n.text())
		}
		path := within(dir, g["file"].text())
		data, err := os.ReadFile(path)
		if err != nil {
			i.fail("file: %v", err)
			continue
		}
		s.Tasks = append(s.Tasks, r.instances(path, data, from)...)
	}
}

func (n node) policy(dir string) Policy {
	f := n.fields("name", "file", "auto", "plan", "allow", "ask", "deny")
	p := Policy{Name: f["name"].text(), Auto: f["auto"].yes(true), Plan: f["plan"].yes(false),
		Allow: f["allow"].texts(), Ask: f["ask"].texts(), Deny: f["deny"].texts()}
	if file := f["file"]; file.text() != "" {
		p.File = within(dir, file.text())
		if _, err := os.Stat(p.File); err != nil {
			file.fail("%v", err)
		}
	}
	if p.Name == "" {
		n.fail("has no name")
	}
	return p
}

func (n node) task(dir string) Task {
	f := n.fields("name", "repo", "ref", "module", "statement", "check", "own_check", "hidden", "fail_to_pass", "pass_to_pass")
	t := Task{Name: f["name"].text(), Repo: f["repo"].text(), Ref: f["ref"].text(), Module: f["module"].text(), Statement: strings.TrimSpace(f["statement"].text()),
		Check: f["check"].text(), OwnCheck: f["own_check"].yes(false), FailToPass: f["fail_to_pass"].texts(), PassToPass: f["pass_to_pass"].texts()}
	if t.Repo != "" {
		t.Repo = within(dir, t.Repo)
	}
	n.must(f, "name", t.Name)
	n.must(f, "statement", t.Statement)
	n.must(f, "check", t.Check)
	switch {
	case (t.Repo == "") == (t.Module == ""):
		n.fail("needs a repo or a module, one of them")
	case t.Module != "" && !versioned(t.Module):
		f["module"].fail("must be PATH@VERSION, not %q", t.Module)
	case t.Module != "" && t.Ref != "":
		f["ref"].fail("is of a repo; the module's version is after its @")
	}
	if h, ok := f["hidden"]; ok {
		t.Hidden = h.hidden(dir)
	}
	return t
}

func (n node) hidden(dir string) Hidden {
	g := n.fields("dir", "module", "files", "patch")
	h := Hidden{Module: g["module"].text(), Files: g["files"].texts()}
	if d := g["dir"]; d.text() != "" {
		h.Dir = within(dir, d.text())
		if info, err := os.Stat(h.Dir); err != nil || !info.IsDir() {
			d.fail("there is no folder %s", h.Dir)
		}
	}
	if p := g["patch"]; p.text() != "" {
		h.Patch = p.readFile(dir)
	}
	switch {
	case h.Module != "" && !versioned(h.Module):
		g["module"].fail("must be PATH@VERSION, not %q", h.Module)
	case (h.Module == "") != (len(h.Files) == 0):
		n.fail("module and files go together: which files of which version are the tests")
	case !h.Any():
		n.fail("needs a dir, a patch, or a module and files")
	}
	for _, f := range g["files"].list() {
		if !filepath.IsLocal(f.Value) {
			f.fail("%q is not a path inside the module", f.Value)
		}
	}
	return h
}

func (n node) readFile(dir string) string {
	data, err := os.ReadFile(within(dir, n.Value))
	if err != nil {
		n.fail("%v", err)
	}
	return string(data)
}

func (n node) must(f map[string]node, field, value string) {
	if _, there := f[field]; value != "" || n.Kind != yaml.MappingNode {
		return
	} else if there {
		f[field].fail("is empty")
	} else {
		n.fail("has no %s", field)
	}
}

func versioned(module string) bool {
	path, version, ok := strings.Cut(module, "@")
	return ok && path != "" && strings.HasPrefix(version, "v")
}

// within is a path from the suite's folder; a URL stays as it is.
func within(dir, path string) string {
	if path == "" || filepath.IsAbs(path) || strings.Contains(path, "://") || strings.HasPrefix(path, "git@") {
		return path
	}
	if abs, err := filepath.Abs(filepath.Join(dir, path)); err == nil {
		return abs
	}
	return filepath.Join(dir, path)
}

// whole complains of what the suite as a whole lacks.
func (r *reader) whole(s *Suite) {
	if len(r.errs) > 0 {
		return // the rest follows from these
	}
	say := func(format string, args ...any) {
		r.errs = append(r.errs, fmt.Errorf("%s: %s", r.file, fmt.Sprintf(format, args...)))
	}
	twice(say, "tasks", s.Tasks, func(t Task) string { return t.Name })
	twice(say, "models", s.Models, func(m Model) string { return m.Name })
	twice(say, "policies", s.Policies, func(p Policy) string { return p.Name })
	switch {
	case len(s.Models) == 0:
		say("models: there is none; name them in the suite, or with --model")
	case len(s.Tasks) == 0:
		say("tasks: there is none")
	case len(s.Policies) == 0:
		say("policies: there is none")
	}
}

func twice[T any](say func(string, ...any), what string, list []T, name func(T) string) {
	seen := map[string]bool{}
	for _, v := range list {
		if n := name(v); seen[n] {
			say("%s: %q is there twice", what, n)
		}
		seen[name(v)] = true
	}
}
