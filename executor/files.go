package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/action"
	"harness/executor/artifact"
	"harness/executor/policy"
	"harness/executor/workspace"
)

// fileAction runs an action on files: it reads through the workspace's root,
// which no link leads out of, and puts its edits into the transaction.
func (s *session) fileAction(ctx context.Context, l *live, args proto.Message, tx *workspace.Tx, r *v1.StepResult) error {
	tree, err := s.ws.Tree()
	if err != nil {
		return contract.Errorf(v1.Error_unavailable, "the workspace: %v", err)
	}
	env := action.Env{Root: tree, Dir: s.ws.Root(), Seen: s.lastSeen, Artifact: s.store.Get, Hidden: map[string]bool{}}
	var out *action.Outcome
	hidden, err := s.currentPolicy().Hidden(l.shown, tree.Layers()...)
	if err != nil {
		return contract.Errorf(v1.Error_invalid, "the policy: %v", err)
	}
	for _, h := range hidden {
		env.Hidden[h.Path] = true
	}
	switch a := args.(type) {
	case *v1.ReadFileArgs:
		out, err = action.Read(ctx, env, a)
	case *v1.WriteFileArgs:
		out, err = action.Write(ctx, env, a)
	case *v1.EditFileArgs:
		out, err = action.Edit(ctx, env, a)
	case *v1.ApplyPatchArgs:
		out, err = action.Patch(ctx, env, a)
	case *v1.ListFilesArgs:
		out, err = action.List(ctx, env, a)
	case *v1.SearchArgs:
		out, err = action.Search(ctx, env, a)
	default:
		return contract.Errorf(v1.Error_internal, "no code for %s", r.Action)
	}
	if err != nil {
		return err
	}
	text := []byte(out.Text)
	r.Output = &v1.Output{Text: artifact.Harmless(text), TotalBytes: max(out.TotalBytes, uint64(len(text))), OmittedBytes: out.OmittedBytes}
	r.File, r.Image, r.Notes = out.File, out.Image, append(r.Notes, out.Notes...)
	if len(out.Edits) > 0 {
		if err := tx.Stage(out.Edits); err != nil {
			return err
		}
	}
	r.Status = v1.Status_ok
	s.nowSeen(out)
	return nil
}

func (s *session) lastSeen(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[path]
}

// nowSeen remembers the version of a file that the planner knows from now on.
func (s *session) nowSeen(out *action.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range out.Edits {
		delete(s.seen, e.Path)
		if e.Op == workspace.Write {
			s.seen[e.Path] = action.Digest(e.Data)
		}
	}
	if out.File != nil && len(out.Edits) == 0 {
		s.seen[out.File.Path] = out.File.Digest
	}
}

// checkExpect holds the step's expectations against what it did, and keeps the
// artifacts that it names.
func (s *session) checkExpect(step *v1.Step, tx *workspace.Tx, r *v1.StepResult) {
	e := step.GetExpect()
	if e == nil || r.Status == v1.Status_denied || r.Status == v1.Status_error {
		return
	}
	if e.ExitCode != nil && r.ExitCode != nil && *r.ExitCode != *e.ExitCode {
		r.Unmet = append(r.Unmet, "exit_code")
	}
	for _, name := range e.Artifacts {
		s.collectArtifacts(name, tx, r)
	}
	if len(r.Unmet) > 0 && r.Status == v1.Status_ok {
		r.Status = v1.Status_failed
		r.Error = contract.Errorf(v1.Error_exit, "an expectation does not hold: %s", r.Unmet[0]).Proto()
	}
}

const maxArtifact = 256 << 20

// keep stores a file that the step made or left, by its path in the workspace.
func (s *session) keep(name string, tx *workspace.Tx) (*v1.Artifact, error) {
	rel := name
	if filepath.IsAbs(rel) {
		var err error
		if rel, err = filepath.Rel(s.ws.Root(), rel); err != nil {
			return nil, err
		}
	}
	if !s.readable(rel) {
		return nil, &fs.PathError{Op: "keep", Path: name, Err: errors.New("the policy keeps it from being read")}
	}
	f, err := s.openResult(rel, tx)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "keep", Path: name, Err: fs.ErrInvalid}
	}
	digest, size, err := s.store.Put(f, maxArtifact)
	if err != nil {
		return nil, &fs.PathError{Op: "keep", Path: name, Err: err}
	}
	return &v1.Artifact{Name: name, Digest: digest, Size: uint64(size), MediaType: mediaType(name)}, nil
}

// readable says whether a step may read a file of the workspace unasked.
func (s *session) readable(rel string) bool {
	return s.currentPolicy().Judge(policy.Request{Action: contract.ReadFile, Reads: s.named(rel)}).Decision.Verdict == v1.Decision_allow
}

// saysHidden tells a step that failed what it could not see.
func saysHidden(hidden []policy.Hidden) string {
	var names []string
	for _, h := range hidden[:min(len(hidden), 3)] {
		names = append(names, h.Path+" ("+h.Rule+")")
	}
	if more := len(hidden) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return "the policy hid from this command: " + strings.Join(names, ", ")
}

// openResult opens a file as it is after the step, which has not landed yet.
func (s *session) openResult(rel string, tx *workspace.Tx) (*os.File, error) {
	if tx != nil {
		upper, err := os.OpenRoot(tx.Upper())
		if err == nil {
			defer upper.Close()
			if f, err := upper.Open(rel); err == nil {
				if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
					return f, nil
				}
				f.Close()
			} else if info, err := upper.Lstat(rel); err == nil && info.Mode()&fs.ModeCharDevice != 0 {
				return nil, &fs.PathError{Op: "open", Path: rel, Err: fs.ErrNotExist} // the step deleted it
			}
		}
	}
	tree, err := s.ws.Tree()
	if err != nil {
		return nil, err
	}
	return tree.Open(filepath.ToSlash(rel))
}

func mediaType(name string) string {
	switch filepath.Ext(name) {
	case ".xml":
		return "application/xml"
	case ".json":
		return "application/json"
	case ".png":
		return "image/png"
	case ".html":
		return "text/html"
	case ".txt", ".log", ".md", ".diff", ".patch":
		return "text/plain"
	}
	return "application/octet-stream"
}
