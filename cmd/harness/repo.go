package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// checkout makes a folder of its own from a repository at a commit, by way of a
// mirror that later ones share. What git would leave out, since it is ignored,
// comes along from a local folder where its .worktreeinclude names it.
func checkout(repo, ref string) (string, error) {
	local := false
	if info, err := os.Stat(repo); err == nil && info.IsDir() {
		local = true
		if repo, err = folder(repo); err != nil {
			return "", err
		}
	}
	sum := sha256.Sum256([]byte(repo))
	mirror := filepath.Join(cacheDir(), "mirrors", hex.EncodeToString(sum[:12])+".git")
	if err := mirrorOf(repo, mirror); err != nil {
		return "", err
	}
	if ref == "" {
		ref = "HEAD"
	}
	sha, err := git(mirror, "rev-parse", "--verify", "--end-of-options", ref+"^{commit}")
	if err != nil {
		return "", &exit{42, fmt.Errorf("%s has no commit %s: %w", repo, ref, err)}
	}
	name := strings.TrimSuffix(filepath.Base(strings.TrimRight(repo, "/")), ".git")
	dir, err := workFolder(name)
	if err != nil {
		return "", err
	}
	if _, err := git("", "clone", "--quiet", "--no-checkout", "--", mirror, dir); err != nil {
		return "", err
	}
	for _, args := range [][]string{{"remote", "set-url", "origin", repo}, {"checkout", "--quiet", "--detach", sha}} {
		if _, err := git(dir, args...); err != nil {
			return "", err
		}
	}
	if _, err := os.Stat(filepath.Join(dir, ".gitmodules")); err == nil {
		if _, err := git(dir, "submodule", "--quiet", "update", "--init", "--recursive"); err != nil {
			return "", err
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, ".gitattributes")); err == nil && bytes.Contains(data, []byte("filter=lfs")) {
		fmt.Fprintln(os.Stderr, "harness: files in LFS are left as pointers")
	}
	if local {
		if err := include(repo, dir); err != nil {
			return "", err
		}
	}
	fmt.Fprintf(os.Stderr, "harness: %s at %.12s in %s\n", repo, sha, dir)
	return dir, nil
}

// workFolder is a new place for a workspace, which is not there yet.
func workFolder(name string) (string, error) {
	base := filepath.Join(cacheDir(), "work", strings.ToLower(rand.Text()[:8]))
	if err := os.MkdirAll(base, 0o700); err != nil {
		return "", err
	}
	base, err := filepath.EvalSymlinks(base)
	return filepath.Join(base, name), err
}

// mirrorOf makes or renews the mirror of a repository.
func mirrorOf(repo, mirror string) error {
	if _, err := os.Stat(mirror); err == nil {
		_, err := git(mirror, "fetch", "--quiet", "--prune")
		return err
	}
	if err := os.MkdirAll(filepath.Dir(mirror), 0o700); err != nil {
		return err
	}
	tmp := mirror + "." + rand.Text()[:8]
	if _, err := git("", "clone", "--quiet", "--mirror", "--", repo, tmp); err != nil {
		return errors.Join(&exit{42, err}, os.RemoveAll(tmp))
	}
	if err := os.Rename(tmp, mirror); err != nil { // somebody else was first
		return os.RemoveAll(tmp)
	}
	return nil
}

// include copies the ignored files that .worktreeinclude names.
func include(from, to string) error {
	if _, err := os.Stat(filepath.Join(from, ".worktreeinclude")); err != nil {
		return nil
	}
	list, err := git(from, "ls-files", "-z", "--others", "--ignored", "--exclude-from=.worktreeinclude")
	if err != nil {
		return err
	}
	for _, name := range strings.Split(list, "\x00") {
		if _, err := git(from, "check-ignore", "--quiet", "--", name); name == "" || err != nil {
			continue // what git does not ignore either way is not for it to bring
		}
		if err := includeFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

func includeFile(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// git runs git for the user, outside of any sandbox: it asks nothing, and
// fetches no large files.
func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_LFS_SKIP_SMUDGE=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}
