package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"harness/surface/eval"
)

// sources are the repositories and modules of an evaluation. Each mirror is
// renewed once; modules lie in a cache of their own, which no sandbox shows: a
// hidden version must not be found in the module cache.
type sources struct {
	mu      sync.Mutex
	mirrors map[string]string
}

func evalCache() string { return filepath.Join(xdg("XDG_CACHE_HOME", ".cache"), "harness", "eval") }

// lay makes the task's workspace below dir.
func (s *sources) lay(ctx context.Context, t eval.Task, dir string) (string, error) {
	if t.Module == "" {
		return s.repository(ctx, t.Repo, t.Ref, dir)
	}
	m, err := fetchModule(ctx, t.Module)
	if err != nil {
		return "", err
	}
	path, _, _ := strings.Cut(t.Module, "@")
	ws := filepath.Join(dir, "workspace", filepath.Base(path))
	if err := os.MkdirAll(filepath.Dir(ws), 0o700); err != nil {
		return "", err
	}
	if err := os.CopyFS(ws, os.DirFS(m.Dir)); err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(ws, "go.mod")); errors.Is(err, os.ErrNotExist) { // a module older than modules: the go command made one up
		data, err := os.ReadFile(m.GoMod)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(ws, "go.mod"), data, 0o644); err != nil {
			return "", err
		}
	}
	return ws, dependencies(ctx, ws)
}

// repository is a clone with the commit and what came before it, and nothing of what came later.
func (s *sources) repository(ctx context.Context, repo, ref, dir string) (string, error) {
	mirror, err := s.mirror(repo)
	if err != nil {
		return "", err
	}
	if ref == "" {
		ref = "HEAD"
	}
	sha, err := git(mirror, "rev-parse", "--verify", "--end-of-options", ref+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("%s has no commit %s: %w", repo, ref, err)
	}
	ws := filepath.Join(dir, "workspace", strings.TrimSuffix(filepath.Base(strings.TrimRight(repo, "/")), ".git"))
	if _, err := git("", "init", "--quiet", "--", ws); err != nil {
		return "", err
	}
	for _, args := range [][]string{{"fetch", "--quiet", "--no-tags", mirror, sha}, {"checkout", "--quiet", "--detach", sha}} {
		if _, err := git(ws, args...); err != nil {
			return "", err
		}
	}
	if err := os.Remove(filepath.Join(ws, ".git", "FETCH_HEAD")); err != nil { // it names the mirror
		return "", err
	}
	if _, err := os.Stat(filepath.Join(ws, ".gitmodules")); err == nil {
		if _, err := git(ws, "submodule", "--quiet", "update", "--init", "--recursive"); err != nil {
			return "", err
		}
	}
	if _, err := os.Stat(filepath.Join(ws, "go.mod")); err == nil {
		return ws, dependencies(ctx, ws)
	}
	return ws, nil
}

func (s *sources) mirror(repo string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.mirrors[repo]; m != "" {
		return m, nil
	}
	m := filepath.Join(evalCache(), "mirrors", digest(repo)+".git")
	if err := mirrorOf(repo, m); err != nil {
		return "", err
	}
	if _, err := git(m, "config", "uploadpack.allowAnySHA1InWant", "true"); err != nil {
		return "", err
	}
	if s.mirrors == nil {
		s.mirrors = map[string]string{}
	}
	s.mirrors[repo] = m
	return m, nil
}

// hide puts the hidden tests into the workspace. What a run made of it leads nowhere out of it.
func (s *sources) hide(ctx context.Context, h eval.Hidden, ws string) error {
	root, err := os.OpenRoot(ws)
	if err != nil {
		return err
	}
	defer root.Close()
	if h.Dir != "" {
		if err := putTree(root, h.Dir); err != nil {
			return err
		}
	}
	if h.Module != "" {
		m, err := fetchModule(ctx, h.Module)
		if err != nil {
			return err
		}
		for _, f := range h.Files {
			if err := putFile(root, f, filepath.Join(m.Dir, f)); err != nil {
				return err
			}
		}
	}
	if h.Patch != "" {
		return putPatch(root, h.Patch)
	}
	return nil
}

// module is a module in the cache.
type module struct{ Dir, GoMod, Error string }

func fetchModule(ctx context.Context, name string) (m module, err error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", name)
	cmd.Dir = os.TempDir() // outside of every module
	cmd.Env = append(os.Environ(), "GOMODCACHE="+filepath.Join(evalCache(), "modules"), "GOWORK=off")
	out, err := cmd.Output()
	if json.Unmarshal(out, &m) == nil && m.Error != "" {
		err = errors.New(m.Error)
	}
	if err != nil {
		return m, fmt.Errorf("%s cannot be fetched: %w", name, err)
	}
	return m, nil
}

// dependencies gets what a module needs, since there is no network in the sandbox.
func dependencies(ctx context.Context, ws string) error {
	cmd := exec.CommandContext(ctx, "go", "mod", "download")
	cmd.Dir = ws
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=local", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the modules that it needs cannot be fetched: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}
