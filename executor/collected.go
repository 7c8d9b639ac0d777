package executor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	v1 "harness/contract/harness/v1"
	"harness/executor/artifact"
	"harness/executor/workspace"
)

// maxGlobbed bounds what one glob keeps.
const maxGlobbed = 100

// collectArtifacts keeps the files of a name or glob, and reads those that are
// reports of tests.
func (s *session) collectArtifacts(name string, tx *workspace.Tx, r *v1.StepResult) {
	names := []string{name}
	if strings.ContainsAny(name, "*?[{") {
		names = s.globbed(name, tx)
		if len(names) == 0 {
			r.Unmet = append(r.Unmet, "artifacts: nothing matches "+name)
		}
		if len(names) > maxGlobbed {
			r.Notes = append(r.Notes, fmt.Sprintf("%d files match %s; the first %d are kept", len(names), name, maxGlobbed))
			names = names[:maxGlobbed]
		}
	}
	for _, n := range names {
		a, err := s.keep(n, tx)
		if err != nil {
			r.Unmet = append(r.Unmet, "artifacts: "+err.Error())
			continue
		}
		r.Artifacts = append(r.Artifacts, a)
		s.readReport(n, a.Digest, r)
	}
}

// globbed is the files that match after the step, before it has landed.
func (s *session) globbed(glob string, tx *workspace.Tx) []string {
	if rel, err := filepath.Rel(s.ws.Root(), glob); filepath.IsAbs(glob) && err == nil {
		glob = filepath.ToSlash(rel)
	}
	var from []fs.FS
	if tree, err := s.ws.Tree(); err == nil {
		from = append(from, tree.FS())
	}
	if tx != nil {
		from = append(from, os.DirFS(tx.Upper()))
	}
	var names []string
	for _, f := range from {
		found, err := doublestar.Glob(f, glob, doublestar.WithFilesOnly(), doublestar.WithNoFollow())
		if err != nil {
			continue
		}
		for _, n := range found {
			if f, err := s.openResult(n, tx); err == nil {
				f.Close()
				names = append(names, n)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// readReport puts a report of tests into the result, if an artifact is one.
func (s *session) readReport(name, digest string, r *v1.StepResult) {
	f, err := s.store.Get(digest)
	if err != nil {
		return
	}
	defer f.Close()
	if t := artifact.ReadReport(name, f); t != nil {
		r.Tests = append(r.Tests, t)
	}
}

// readOutput does the same with what a command printed.
func (s *session) readOutput(r *v1.StepResult) {
	if a := r.GetOutput().GetArtifact(); a != "" {
		s.readReport("output", a, r)
	} else if t := artifact.ReadReport("output", strings.NewReader(r.GetOutput().GetText())); t != nil {
		r.Tests = append(r.Tests, t)
	}
}
