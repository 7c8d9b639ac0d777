package action

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/workspace"
)

// Write creates a file or replaces it whole.
func Write(_ context.Context, e Env, a *v1.WriteFileArgs) (*Outcome, error) {
	data := []byte(a.Content)
	if a.Encoding == v1.WriteFileArgs_base64 {
		var err error
		if data, err = base64.StdEncoding.DecodeString(a.Content); err != nil {
			return nil, contract.Errorf(v1.Error_invalid, "is not base64: %v", err).WithField("args.content")
		}
	}
	name, was, err := e.target(a.Path)
	if err != nil {
		return nil, err
	}
	if err := e.current(a.Path, name, a.BaseDigest, was); err != nil {
		return nil, err
	}
	out := &Outcome{File: info(name, data), Edits: []workspace.Edit{{Op: workspace.Write, Path: name, Data: data}}}
	verb := "created"
	if was != nil {
		verb = "replaced"
		out.Notes = append(out.Notes, e.linkNote(name)...)
	}
	out.Text = fmt.Sprintf("%s %s, %d bytes\n", verb, name, len(data))
	return out, nil
}

// target is where a write goes: the file that a link names, or a new file
// whose folders are made. was is the present content, nil where there is none.
func (e Env) target(p string) (name string, was []byte, err error) {
	name, was, _, err = e.load(p)
	if err == nil {
		if was == nil {
			was = []byte{}
		}
		return name, was, nil
	}
	if ce := contract.AsError(err); ce.Kind != v1.Error_not_found {
		return "", nil, err
	}
	if name, err = e.local(p); err != nil {
		return "", nil, err
	}
	if name == "." || strings.HasSuffix(p, "/") {
		return "", nil, contract.Errorf(v1.Error_invalid, "%q names a folder, not a file", p).WithField("args.path")
	}
	if _, lerr := e.Root.Lstat(name); lerr == nil {
		return "", nil, contract.Errorf(v1.Error_already_exists, "%s is a link to something that is not there", p).WithField("args.path").
			WithHint("write to what it names, or delete the link first")
	}
	real, err := e.newPath(p, name)
	return real, nil, err
}

// newPath follows the links of the folders above a new file.
func (e Env) newPath(p, name string) (string, error) {
	rest := path.Base(name)
	for dir := path.Dir(name); ; dir, rest = path.Dir(dir), path.Join(path.Base(dir), rest) {
		real, err := e.Root.RealPath(dir)
		if err != nil {
			if _, lerr := e.Root.Lstat(dir); lerr == nil || dir == "." {
				return "", contract.Errorf(v1.Error_outside_workspace, "%s goes through a link that leads nowhere or out of the workspace", p).WithField("args.path")
			}
			continue
		}
		rel, err := filepath.Rel(e.Dir, real)
		if err != nil || !filepath.IsLocal(rel) {
			return "", contract.Errorf(v1.Error_outside_workspace, "%s goes through a link to %s, outside the workspace", p, real).WithField("args.path")
		}
		if i, err := e.Root.Stat(filepath.ToSlash(rel)); err == nil && !i.IsDir() {
			return "", contract.Errorf(v1.Error_invalid, "%s is a file, not a folder", rel).WithField("args.path")
		}
		return path.Join(filepath.ToSlash(rel), rest), nil
	}
}

// current refuses a change on top of a version that the planner has not seen.
func (e Env) current(p, name, base string, was []byte) error {
	have := ""
	if was != nil {
		have = Digest(was)
	}
	switch {
	case base != "" && base != have:
		return contract.Errorf(v1.Error_stale, "%s is not the version %s any more", p, base).WithField("args.base_digest").WithHint("read it again")
	case base == "" && was != nil && e.Seen != nil:
		if seen := e.Seen(name); seen != "" && seen != have {
			return contract.Errorf(v1.Error_stale, "%s changed since it was read", p).WithField("args.path").WithHint("read it again, then make the edit")
		}
	}
	return nil
}

func info(name string, data []byte) *v1.FileInfo {
	return &v1.FileInfo{Path: name, Digest: Digest(data), Size: uint64(len(data)), Encoding: encodingOf(data[:min(len(data), 8<<10)])}
}

// linkNote tells that a file has other names, which a change reaches as well.
func (e Env) linkNote(name string) []string {
	i, err := e.Root.Lstat(name)
	if err != nil || errors.Is(err, fs.ErrNotExist) || hardLinks(i) < 2 {
		return nil
	}
	return []string{fmt.Sprintf("%s has %d names (hard links); the change is seen under all of them", name, hardLinks(i))}
}
