package executor

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	v1 "harness/contract/harness/v1"
	"harness/executor/policy"
	"harness/executor/workspace"
)

// gitView is the workspace as it is before and after a step, looked at for what
// would make git run programs later, outside of any sandbox.
type gitView struct {
	root, upper string
	tree        *workspace.Tree // before
	changes     map[string]*v1.Change
}

// gitDenied is the decision against what a step did to repositories, nil if
// there is none: a hook, a setting that starts a program, or a repository whose
// settings lie where nothing holds them to this. All else may land, so that
// init, config, worktree and submodule work.
func (s *session) gitDenied(cs *v1.ChangeSet, tx *workspace.Tx) *v1.Decision {
	tree, err := s.ws.Tree()
	if err != nil {
		return gitDecision("", "the workspace cannot be read: "+err.Error())
	}
	g := gitView{root: s.ws.Root(), upper: tx.Upper(), tree: tree, changes: map[string]*v1.Change{}}
	dirs := map[string]bool{}
	for _, c := range cs.Changes {
		g.changes[c.Path] = c
		dir, base := path.Split(c.Path)
		dir = strings.TrimSuffix(dir, "/")
		switch base {
		case "config", "config.worktree", "HEAD", "objects", "refs", "commondir", "hooks":
			dirs[path.Clean(dir)] = true
		case ".git":
			if why := g.linkDenied(c); why != "" {
				return gitDecision(c.Path, why)
			}
		}
		for d := dir; d != "" && d != "."; d = path.Dir(d) {
			if path.Base(d) == "hooks" {
				dirs[path.Dir(d)] = true
			}
		}
	}
	if _, err := tree.Lstat(".git/config"); err == nil && len(cs.Changes) > 0 {
		dirs[".git"] = true // core.hooksPath may name any folder
	}
	for dir := range dirs {
		if part, why := g.dirDenied(dir); why != "" {
			return gitDecision(path.Join(dir, part), why)
		}
	}
	return nil
}

func gitDecision(part, why string) *v1.Decision {
	return &v1.Decision{Verdict: v1.Decision_deny, Rule: "git settings", Source: "built-in", Part: part, Reason: why}
}

// linkDenied judges a .git that is itself a file, as worktrees and submodules
// have: it must lead to a folder below another .git.
func (g *gitView) linkDenied(c *v1.Change) string {
	switch {
	case c.Type == v1.Change_directory && c.Kind == v1.Change_deleted:
		return "it takes a repository's data away"
	case c.Type == v1.Change_directory || c.Kind == v1.Change_deleted:
		return ""
	case c.Type != v1.Change_file:
		return "a repository's data lies elsewhere"
	}
	text, _ := g.read(c.Path, true)
	to, ok := strings.CutPrefix(strings.TrimSpace(text), "gitdir: ")
	if !ok || !g.held(path.Dir(c.Path), to) {
		return "a repository's data lies elsewhere"
	}
	return ""
}

// held: a path from a folder leads below a .git of the workspace, or below
// another repository: there commands may not plant anything.
func (g *gitView) held(from, to string) bool {
	if !filepath.IsAbs(to) {
		to = filepath.Join(g.root, from, to)
	}
	rel, err := filepath.Rel(g.root, resolve(filepath.Clean(to)))
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	for d := filepath.ToSlash(rel); d != "."; d = path.Dir(d) {
		if path.Base(d) == ".git" || g.isRepository(d, true) {
			return true
		}
	}
	return false
}

// dirDenied says what a folder, if git takes it for a repository now, has got
// that it had not before, and in which of its files.
func (g *gitView) dirDenied(dir string) (part, why string) {
	if !g.isRepository(dir, true) {
		return "", ""
	}
	for _, name := range []string{"config", "config.worktree", "commondir", "hooks", "HEAD"} {
		if c := g.changes[path.Join(dir, name)]; c != nil && c.Kind != v1.Change_deleted && (c.Type == v1.Change_directory) != (name == "hooks") {
			return name, "a repository's data lies elsewhere"
		}
	}
	was := g.isRepository(dir, false)
	had := map[policy.Setting]bool{}
	hooks := []string{path.Join(dir, "hooks")}
	for _, name := range []string{"config", "config.worktree"} {
		before, _ := g.read(path.Join(dir, name), false)
		list, _ := policy.ParseGitConfig(before)
		for _, x := range list {
			had[x] = was
			if to, ok := g.local(path.Dir(dir), x.Value); ok && x.Key == "core.hookspath" {
				hooks = append(hooks, to)
			}
		}
	}
	for _, name := range []string{"config", "config.worktree"} {
		file := path.Join(dir, name)
		after, ok := g.read(file, true)
		list, whole := policy.ParseGitConfig(after)
		if g.changes[file] != nil && g.there(file, true) && !(ok && whole) {
			return name, "git's settings cannot be read"
		}
		for _, x := range list {
			_, local := g.local(dir, x.Value)
			if !had[x] && (x.StartsPrograms() || x.Key == "core.worktree" && !local) {
				return name, "the setting " + x.Key + " makes git run a program, or work elsewhere"
			}
		}
	}
	if to, there := g.read(path.Join(dir, "commondir"), true); there && !g.held(dir, strings.TrimSpace(to)) {
		return "commondir", "a repository's settings lie elsewhere"
	}
	return g.hookDenied(dir, hooks, was)
}

// hookDenied finds a hook that the step left, or that a new repository takes over.
func (g *gitView) hookDenied(dir string, hooks []string, was bool) (part, why string) {
	for p, c := range g.changes {
		for _, h := range hooks {
			if hook, in := strings.CutPrefix(p, h+"/"); in && c.Kind != v1.Change_deleted && c.Type != v1.Change_directory && !strings.HasSuffix(hook, ".sample") {
				return "hooks/" + hook, "git runs it by itself"
			}
		}
	}
	if was {
		return "", ""
	}
	present, _ := fs.ReadDir(g.tree.FS(), path.Join(dir, "hooks"))
	for _, h := range present {
		if !strings.HasSuffix(h.Name(), ".sample") {
			return "hooks/" + h.Name(), "git runs it by itself"
		}
	}
	return "", ""
}

// local is a path from a folder, where it stays in the workspace.
func (g *gitView) local(from, to string) (string, bool) {
	if !filepath.IsAbs(to) {
		to = filepath.Join(g.root, from, to)
	}
	rel, err := filepath.Rel(g.root, resolve(filepath.Clean(to)))
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// isRepository asks what git does (setup.c, is_git_directory).
func (g *gitView) isRepository(dir string, after bool) bool {
	has := func(name string) bool { return g.there(path.Join(dir, name), after) }
	return has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

// there says whether a path is, before or after the step.
func (g *gitView) there(p string, after bool) bool {
	c := g.changes[p]
	if c != nil && after {
		return c.Kind != v1.Change_deleted
	}
	if c != nil && c.Kind == v1.Change_created {
		return false
	}
	_, err := g.tree.Lstat(p)
	return err == nil
}

// read is a file before or after the step.
func (g *gitView) read(p string, after bool) (string, bool) {
	if !g.there(p, after) {
		return "", false
	}
	if !after || g.changes[p] == nil {
		data, err := fs.ReadFile(g.tree.FS(), p)
		return string(data), err == nil
	}
	root, err := os.OpenRoot(g.upper)
	if err != nil {
		return "", false
	}
	defer root.Close()
	data, err := root.ReadFile(p)
	return string(data), err == nil
}
