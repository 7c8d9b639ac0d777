package executor

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/action"
	"harness/executor/policy/shell"
)

// bind is the digest of exactly what would run if the answer were yes now: the
// step as it was sent, the policy, where each path that it names really leads,
// and what lies there. Whatever of it changes while the question is open, the
// answer is to something else, and it is asked again.
//
// A file that only the program itself knows of (a Makefile's scripts) is not in
// it: what such a program may do is bounded by the sandbox, not by the question.
func (s *session) bind(step *v1.Step, args proto.Message) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n", contract.StepDigest(step), s.currentPolicy().Version())
	for _, path := range s.touched(args) {
		s.bindPath(h, path)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// touched is the paths that a step names, each once.
func (s *session) touched(args proto.Message) (paths []string) {
	switch a := args.(type) {
	case *v1.RunCommandArgs:
		return s.inCommand(a)
	case *v1.ReadFileArgs:
		paths = []string{a.Path}
	case *v1.WriteFileArgs:
		paths = []string{a.Path}
	case *v1.EditFileArgs:
		paths = []string{a.Path}
	case *v1.ListFilesArgs:
		paths = []string{a.Path}
	case *v1.SearchArgs:
		paths = []string{a.Path}
	case *v1.ApplyPatchArgs:
		paths, _ = action.PatchPaths(a.Patch) // a bad patch fails when it is applied
	}
	for i, p := range paths {
		paths[i] = s.abs(p)
	}
	return paths
}

// inCommand is a command's folder and every word of it that could be a path.
func (s *session) inCommand(a *v1.RunCommandArgs) []string {
	cwd := s.abs(a.Cwd)
	paths := []string{cwd}
	add := func(dirs []string, word shell.Word) {
		_, value, _ := strings.Cut(word.Text, "=")
		for _, text := range []string{word.Text, value} {
			for _, dir := range dirs {
				if text == "" || !word.Known {
					continue
				}
				if !filepath.IsAbs(text) {
					text = filepath.Join(dir, text)
				}
				paths = append(paths, text)
			}
		}
	}
	for _, c := range shell.Analyse(a.Cmd, shell.Env{Cwd: cwd, Home: s.x.home, Vars: a.Env}).Commands {
		dirs := c.Dirs
		if dirs == nil {
			dirs = []string{cwd}
		}
		for _, w := range c.Words {
			add(dirs, w)
		}
		for _, f := range c.Files {
			add(dirs, f.Path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// maxBound bounds what is read of one file; a longer one counts by its size and time too.
const maxBound = 8 << 20

func (s *session) bindPath(h hash.Hash, path string) {
	real := s.resolve(path)
	at := s.onDisk(real)
	info, err := os.Stat(at)
	if err != nil {
		fmt.Fprintf(h, "%q %q nothing\n", path, real)
		return
	}
	fmt.Fprintf(h, "%q %q %v\n", path, real, info.Mode())
	if !info.Mode().IsRegular() {
		return
	}
	f, err := os.Open(at)
	if err != nil {
		fmt.Fprintf(h, "%v\n", err)
		return
	}
	defer f.Close()
	content := sha256.New()
	n, err := io.Copy(content, io.LimitReader(f, maxBound))
	fmt.Fprintf(h, "%x %d %v\n", content.Sum(nil), n, err)
	if info.Size() > maxBound {
		fmt.Fprintf(h, "%d %v\n", info.Size(), info.ModTime())
	}
}
