package workspace

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

const maxDiffed = 4 << 20 // bytes of a file that is shown line by line

// pair is where the two versions of a path are, "" for none.
type pair struct{ old, new string }

// Diff is a unified diff of what one step changed, or with step "" of all that
// is in place of the session against the present tree. paths are files, folders
// or globs; none means all. Of what hide keeps back only the name is shown.
func (w *Workspace) Diff(step string, paths []string, hide func(path string) bool) (string, error) {
	pairs, err := w.pairs(step)
	if err != nil {
		return "", err
	}
	names := make([]string, 0, len(pairs))
	for p := range pairs {
		if wanted(p, paths) {
			names = append(names, p)
		}
	}
	sort.Strings(names)
	hidden := map[string]bool{}
	for _, p := range names {
		hidden[p] = hide != nil && hide(p) // which may look at the workspace
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, p := range names {
		if hidden[p] {
			fmt.Fprintf(&b, "# %s changed; the policy keeps it from being read\n", p)
			continue
		}
		if err := diffOne(&b, p, pairs[p]); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

func (w *Workspace) pairs(step string) (map[string]pair, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if step != "" {
		return w.stepPairs(step)
	}
	return w.sessionPairs()
}

// sessionPairs pairs the first version that the session met with the tree's.
func (w *Workspace) sessionPairs() (map[string]pair, error) {
	if w.staged {
		return w.stagedPairs()
	}
	pairs := map[string]pair{}
	for _, l := range w.layers {
		if l.state != landed {
			continue
		}
		p, err := w.readPlan(l.name)
		if err != nil {
			return nil, err
		}
		w.versions(l, p, func(path, old string) {
			if _, met := pairs[path]; !met {
				pairs[path] = pair{old, w.at(path)}
			}
		})
	}
	return pairs, nil
}

// versions calls each for the paths of a layer in place, with where the version
// before is kept.
func (w *Workspace) versions(l *layer, p *plan, each func(path, old string)) {
	for _, e := range p.Entries {
		if e.Shell || e.Reason != "" || e.At != atNew {
			continue
		}
		old := ""
		if e.Before != nil {
			old = filepath.Join(w.layerDir(l.name), e.Old)
		}
		each(e.Path, old)
		for _, b := range e.Below {
			rel := strings.TrimPrefix(b.Path, e.Path+"/")
			each(b.Path, filepath.Join(old, filepath.FromSlash(rel)))
		}
	}
}

// stepPairs pairs what one step met with what it left.
func (w *Workspace) stepPairs(step string) (map[string]pair, error) {
	pairs := map[string]pair{}
	found := -1
	for i, l := range w.layers {
		if l.step == step {
			found = i
		}
	}
	if found < 0 {
		return nil, contract.Errorf(v1.Error_not_found, "no step %s changed the workspace", step).WithField("args.step")
	}
	l := w.layers[found]
	p, err := w.readPlan(l.name)
	if err != nil {
		return nil, err
	}
	if p.Staged {
		return pairs, w.pairLayer(found, p, pairs)
	}
	if l.state != landed {
		for _, e := range p.Entries {
			if !e.Shell {
				pairs[e.Path] = pair{w.at(e.Path), filepath.Join(w.layerDir(l.name), e.New)}
			}
		}
		return pairs, nil
	}
	w.versions(l, p, func(path, old string) { pairs[path] = pair{old, w.at(path)} })
	later := map[string]bool{}
	for _, n := range w.layers[found+1:] {
		if n.state != landed {
			continue
		}
		q, err := w.readPlan(n.name)
		if err != nil {
			return nil, err
		}
		w.versions(n, q, func(path, old string) {
			if x, ours := pairs[path]; ours && !later[path] {
				later[path] = true
				pairs[path] = pair{x.old, old}
			}
		})
	}
	return pairs, nil
}

func wanted(p string, paths []string) bool {
	for _, f := range paths {
		f = path.Clean(filepath.ToSlash(f))
		if ok, _ := path.Match(f, p); ok || f == "." || under(p, f) {
			return true
		}
	}
	return len(paths) == 0
}

func under(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

func diffOne(b *strings.Builder, p string, v pair) error {
	oldMode, oldText, err := content(v.old)
	if err != nil {
		return err
	}
	newMode, newText, err := content(v.new)
	if err != nil || oldMode == newMode && bytes.Equal(oldText, newText) {
		return err
	}
	from, to := "a/"+p, "b/"+p
	fmt.Fprintf(b, "diff --git %s %s\n", from, to)
	switch {
	case oldMode == "":
		fmt.Fprintf(b, "new file mode %s\n", newMode)
		from = "/dev/null"
	case newMode == "":
		fmt.Fprintf(b, "deleted file mode %s\n", oldMode)
		to = "/dev/null"
	case oldMode != newMode:
		fmt.Fprintf(b, "old mode %s\nnew mode %s\n", oldMode, newMode)
	}
	if bytes.Equal(oldText, newText) {
		return nil
	}
	if binary(oldText) || binary(newText) {
		fmt.Fprintf(b, "Binary files %s and %s differ\n", from, to)
		return nil
	}
	text, err := udiff.ToUnified(from, to, string(oldText), udiff.Lines(string(oldText), string(newText)), 3)
	if err != nil {
		return err
	}
	b.WriteString(text)
	return nil
}

// content is a file's mode as git writes it and its bytes, or a link's target;
// "" for what is absent or a folder.
func content(name string) (string, []byte, error) {
	if name == "" {
		return "", nil, nil
	}
	info, err := os.Lstat(name)
	if err != nil {
		if os.IsNotExist(err) || isNotDir(err) {
			return "", nil, nil
		}
		return "", nil, err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(name)
		return "120000", []byte(to), err
	case !info.Mode().IsRegular():
		return "", nil, nil
	}
	mode := "100644"
	if info.Mode()&0o111 != 0 {
		mode = "100755"
	}
	if info.Size() > maxDiffed {
		digest, err := fileDigest(name)
		return mode, []byte("\x00" + digest), err
	}
	data, err := os.ReadFile(name)
	return mode, data, err
}

func binary(data []byte) bool { return bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 }
