package workspace

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

// maxDiffed is the largest file whose lines a diff shows.
const maxDiffed = 4 << 20

// Diff is what one step changed, or the whole session for step "", as a
// unified diff in git's form. paths keep only those and what lies below them.
func (w *Workspace) Diff(step string, paths []string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, err := w.diffOf(step)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if len(paths) > 0 && !slices.ContainsFunc(paths, func(p string) bool { return below(path.Clean(p), name) }) {
			continue
		}
		v := all[name]
		if err := diffFile(&out, name, v.before, v.after); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

// side is one version of a file in a diff.
type side struct {
	mode fs.FileMode // 0: not there
	text []byte
	big  bool
}

func readSide(name string) (side, error) {
	if name == "" {
		return side{}, nil
	}
	info, err := os.Lstat(name)
	if err != nil || info.IsDir() {
		return side{}, nil
	}
	s := side{mode: info.Mode()}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(name)
		s.text = []byte(target)
		return s, err
	case info.Size() > maxDiffed:
		s.big = true
		return s, nil
	case !info.Mode().IsRegular():
		s.big = true
		return s, nil
	}
	s.text, err = os.ReadFile(name)
	return s, err
}

func (s side) binary() bool {
	return s.big || bytes.IndexByte(s.text, 0) >= 0 || !utf8.Valid(s.text)
}

func (s side) git() string {
	switch {
	case s.mode&fs.ModeSymlink != 0:
		return "120000"
	case s.mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}

func diffFile(out *strings.Builder, name, before, after string) error {
	a, err := readSide(before)
	if err != nil {
		return err
	}
	b, err := readSide(after)
	if err != nil {
		return err
	}
	if a.mode == 0 && b.mode == 0 || a.mode == b.mode && !a.big && !b.big && bytes.Equal(a.text, b.text) {
		return nil
	}
	fmt.Fprintf(out, "diff --git a/%s b/%s\n", name, name)
	from, to := "a/"+name, "b/"+name
	switch {
	case a.mode == 0:
		from = "/dev/null"
		fmt.Fprintf(out, "new file mode %s\n", b.git())
	case b.mode == 0:
		to = "/dev/null"
		fmt.Fprintf(out, "deleted file mode %s\n", a.git())
	case a.git() != b.git():
		fmt.Fprintf(out, "old mode %s\nnew mode %s\n", a.git(), b.git())
	}
	if a.binary() || b.binary() {
		fmt.Fprintf(out, "Binary files %s and %s differ\n", from, to)
		return nil
	}
	out.WriteString(udiff.Unified(from, to, string(a.text), string(b.text)))
	return nil
}
