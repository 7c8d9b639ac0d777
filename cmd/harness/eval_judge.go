package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"google.golang.org/protobuf/types/known/structpb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/artifact"
	"harness/planner/judge"
	"harness/surface/eval"
)

// judge runs the check in a sandbox of its own, under the default policy whatever that of the run was.
func (r *evalRun) judge(ctx context.Context, t eval.Task, dir, ws string, o *eval.Outcome) (err error) {
	cmd := t.Check
	if cmd == "" {
		if cmd = t.TestCommand(); cmd == "" {
			return errors.New("how its tests are run is not known: the suite needs a check for these instances")
		}
	}
	state := filepath.Join(dir, "judge")
	x, stop, err := startExecutor(ws, policyFlags{Auto: true, Sandbox: r.sandbox}, cellEnv(state)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	const id = "judge"
	opened, err := open(ctx, x, stop, &v1.OpenRequest{SessionId: id, Workspace: ws, Planner: version})
	if err != nil {
		return err
	}
	if !opened.MeetsMinimum {
		return errors.New("the sandbox here is below what the policy needs; harness doctor says what is missing")
	}
	args, err := structpb.NewStruct(map[string]any{"cmd": cmd, "timeout_s": int(r.checkTime.Seconds())})
	if err != nil {
		return err
	}
	res, err := x.Submit(ctx, &v1.Step{StepId: "s_judge", SessionId: id, Action: contract.RunCommand, Args: args, Expect: &v1.Expect{MaxOutputBytes: 1 << 20}})
	if err != nil {
		return err
	}
	switch res.Status {
	case v1.Status_ok, v1.Status_failed, v1.Status_timed_out:
	default:
		return fmt.Errorf("the check was not run: %v: %s", res.Status, contract.FromProto(res.Error).Error())
	}
	out, err := wholeOutput(filepath.Join(state, "state"), id, res)
	if err != nil {
		return err
	}
	if len(t.FailToPass)+len(t.PassToPass) > 0 {
		failing, regression := t.Score(out)
		o.Judge(len(failing) == 0, failing, regression)
	} else {
		names, _ := judge.Failures(res)
		o.Judge(res.Status == v1.Status_ok, names, false)
	}
	switch {
	case o.Resolved:
	case res.Status == v1.Status_timed_out:
		o.Why = fmt.Sprintf("the check did not end within %v", r.checkTime)
	case o.Why == "" || o.StopReason == "done":
		o.Why = lastLine(out)
	}
	return nil
}

// wholeOutput is what a command printed, also where the result has only head and tail.
func wholeOutput(state, id string, r *v1.StepResult) (string, error) {
	if r.GetOutput().GetArtifact() == "" {
		return r.GetOutput().GetText(), nil
	}
	store, err := artifact.Open(filepath.Join(state, "harness", "executor", "sessions", id, "artifacts"))
	if err != nil {
		return "", err
	}
	f, err := store.Get(r.Output.Artifact)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 64<<20))
	return string(data), err
}

// savedTests are the files of a workspace that look like tests, and those that
// hidden ones replace, as they were before the run.
type savedTests struct {
	dir     string
	patched []string
}

func keepTests(ws, dir string, h eval.Hidden) (savedTests, error) {
	t := savedTests{dir: dir}
	if !h.Any() {
		return t, nil
	}
	if h.Patch != "" {
		files, _, err := gitdiff.Parse(strings.NewReader(h.Patch))
		if err != nil {
			return t, fmt.Errorf("the patch of hidden tests: %w", err)
		}
		for _, f := range files {
			t.patched = append(t.patched, f.OldName, f.NewName)
		}
	}
	return t, filepath.WalkDir(ws, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(ws, path)
		if err != nil {
			return err
		}
		if d.IsDir() && rel == ".git" {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || !t.holds(rel) {
			return nil
		}
		return includeFile(path, filepath.Join(dir, rel))
	})
}

func (t savedTests) holds(path string) bool {
	for _, p := range t.patched {
		if p == path {
			return true
		}
	}
	return judge.IsTest(filepath.ToSlash(path))
}

// putBack removes the tests that were not there, and writes the others as they were.
func (t savedTests) putBack(ws string) error {
	root, err := os.OpenRoot(ws)
	if err != nil {
		return err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path == ".git":
			return fs.SkipDir
		case d.IsDir() || !t.holds(path):
			return nil
		}
		return root.Remove(path)
	})
	if err != nil {
		return err
	}
	if _, err := os.Stat(t.dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return putTree(root, t.dir)
}

// putTree writes all files of a folder.
func putTree(root *os.Root, dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return putFile(root, rel, path)
	})
}

func putFile(root *os.Root, name, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return put(root, name, data)
}

// put writes a file in the place of whatever stands in its way.
func put(root *os.Root, name string, data []byte) error {
	for at := filepath.Dir(name); at != "."; at = filepath.Dir(at) {
		if info, err := root.Lstat(at); err == nil && !info.IsDir() {
			if err := root.Remove(at); err != nil {
				return err
			}
		}
	}
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return root.WriteFile(name, data, 0o644)
}

// putPatch applies a unified diff to files that are as the diff expects them.
func putPatch(root *os.Root, patch string) error {
	files, _, err := gitdiff.Parse(strings.NewReader(patch))
	if err != nil {
		return err
	}
	for _, f := range files {
		var was []byte
		if !f.IsNew {
			if was, err = root.ReadFile(f.OldName); err != nil {
				return err
			}
		}
		if f.IsDelete || f.IsRename {
			if err := root.Remove(f.OldName); err != nil {
				return err
			}
		}
		if f.IsDelete {
			continue
		}
		var now strings.Builder
		if err := gitdiff.Apply(&now, strings.NewReader(string(was)), f); err != nil {
			return fmt.Errorf("%s: %w", f.NewName, err)
		}
		if err := put(root, f.NewName, []byte(now.String())); err != nil {
			return err
		}
	}
	return nil
}
