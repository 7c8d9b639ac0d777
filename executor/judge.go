package executor

import (
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/action"
	"harness/executor/mcp"
	"harness/executor/policy"
	"harness/executor/workspace"
)

// judge asks the policy whether a step may run.
func (s *session) judge(step *v1.Step, args proto.Message) policy.Verdict {
	req := policy.Request{Action: step.Action, Safety: step.Safety, Sandboxed: s.ws == nil || s.sandbox != nil && s.sandbox.MeetsMinimum() && s.sandbox.Rung() != "none"} // without a workspace: Rejudge
	switch a := args.(type) {
	case *v1.RunCommandArgs:
		req.Cmd, req.Cwd, req.Env = a.Cmd, s.abs(a.Cwd), a.Env
	case *v1.ReadFileArgs:
		if a.Artifact == "" {
			req.Reads = s.named(a.Path)
		}
	case *v1.ListFilesArgs:
		req.Reads = s.named(a.Path)
	case *v1.SearchArgs:
		req.Reads = s.named(a.Path)
	case *v1.WriteFileArgs:
		req.Writes = s.named(a.Path)
	case *v1.EditFileArgs:
		req.Reads, req.Writes = s.named(a.Path), s.named(a.Path)
	case *v1.ApplyPatchArgs:
		paths, err := action.PatchPaths(a.Patch)
		if err != nil {
			break // the action says what is wrong with it, and changes nothing
		}
		for _, p := range paths {
			req.Writes = append(req.Writes, s.named(p)...)
		}
	case *v1.RestoreArgs:
		if step.GetSafety().GetWrites() == v1.Safety_none && !a.DryRun {
			return policy.Verdict{Decision: &v1.Decision{Verdict: v1.Decision_deny, Rule: "safety.writes", Source: "step", Reason: "the step allows no writes"}}
		}
		return control
	case *v1.ApplyArgs, *v1.DiscardArgs:
		if step.GetSafety().GetWrites() == v1.Safety_none {
			return policy.Verdict{Decision: &v1.Decision{Verdict: v1.Decision_deny, Rule: "safety.writes", Source: "step", Reason: "the step allows no writes"}}
		}
		return control
	case *v1.CallMcpToolArgs:
		req.Action = mcp.Name(a.Server, a.Tool)
	case *v1.ListMcpToolsArgs:
		return control // each server and tool is judged by itself
	case *v1.DiffArgs, *v1.CancelStepArgs, *v1.WriteStdinArgs, *v1.ReadOutputArgs:
		return control
	}
	return s.currentPolicy().Judge(req)
}

// control is the verdict on what only steers the session's own steps.
var control = policy.Verdict{Decision: &v1.Decision{Verdict: v1.Decision_allow, Rule: "default", Source: "built-in",
	Reason: "concerns the session's own steps"}}

func (s *session) currentPolicy() *policy.Policy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.policy
}

func (s *session) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(s.x.cfg.Workspace, path)
}

// named is a path under the name that the step gives it and, where links lead
// elsewhere, under the one that it really has.
func (s *session) named(path string) []string {
	if strings.Contains(path, "://") || strings.HasPrefix(path, "~/") {
		return []string{path, s.abs(path)} // what a person would mean by it is judged too
	}
	abs := s.abs(path)
	real := s.resolve(abs)
	if real == abs {
		return []string{abs}
	}
	return []string{abs, real}
}

// resolve follows the links of the longest part of path that exists.
func resolve(path string) string { return resolveBy(filepath.EvalSymlinks, path) }

func resolveBy(follow func(string) (string, error), path string) string {
	for dir, rest := path, ""; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if real, err := follow(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
	}
}

// resolve also follows the links that only a staged layer has.
func (s *session) resolve(path string) string {
	if s.ws == nil {
		return resolve(path)
	}
	tree, err := s.ws.Tree()
	if err != nil || !s.ws.Staged() || !inside(s.ws.Root(), path) {
		return resolve(path)
	}
	return resolveBy(func(p string) (string, error) {
		rel, err := filepath.Rel(s.ws.Root(), p)
		if err != nil || !filepath.IsLocal(rel) {
			return filepath.EvalSymlinks(p)
		}
		return tree.RealPath(filepath.ToSlash(rel))
	}, path)
}

// onDisk is where the content of a resolved path lies: in a staged layer, perhaps.
func (s *session) onDisk(path string) string {
	tree, err := s.ws.Tree()
	rel, rerr := filepath.Rel(s.ws.Root(), path)
	if err != nil || rerr != nil || !s.ws.Staged() || !filepath.IsLocal(rel) {
		return path
	}
	return tree.OnDisk(filepath.ToSlash(rel))
}

// judgeChanges is the decision against a change set, nil if there is none:
// what a command wrote is held to the same rules as what an edit names. Only
// git's own data is apart: an edit must not touch it, "git commit" does.
func (s *session) judgeChanges(cs *v1.ChangeSet, tx *workspace.Tx, r *v1.StepResult) *v1.Decision {
	left := false
	if r.Action == contract.RunCommand || r.Action == contract.Apply { // of what is staged the user's git sees nothing before
		if d := s.gitDenied(cs, tx); d != nil {
			return d
		}
		left = r.Action == contract.RunCommand && r.Decision.GetVerdict() != v1.Decision_ask // what was asked was agreed to
	}
	var paths, data []string
	for _, c := range cs.Changes {
		if slices.Contains(strings.Split(c.Path, "/"), ".git") {
			data = append(data, s.abs(c.Path))
		} else {
			paths = append(paths, s.abs(c.Path))
		}
	}
	p := s.currentPolicy()
	if d := p.Judge(policy.Request{Action: contract.WriteFile, Writes: paths, Left: left}).Decision; len(paths) > 0 && d.Verdict == v1.Decision_deny {
		return d
	}
	if d := p.Judge(policy.Request{Action: contract.WriteFile, Writes: data}).Decision; len(data) > 0 && d.Verdict == v1.Decision_deny && d.Source != "built-in" {
		return d
	}
	return nil
}
