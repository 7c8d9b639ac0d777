package action

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/workspace"
)

// pattern is one line of a .gitignore (gitignore(5)), made a glob.
type pattern struct {
	glob    string
	negated bool
	dirOnly bool
}

// ignore is what the .gitignore files from the root down to a folder say; the last match wins.
type ignore struct{ patterns []pattern }

// with is g and what an ignore file says that holds below dir.
func (g ignore) with(root *workspace.Folder, file, dir string) ignore {
	f, err := root.Open(file)
	if err != nil {
		return g
	}
	defer f.Close()
	patterns := slices.Clone(g.patterns)
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if p, ok := parseIgnore(sc.Text(), dir); ok {
			patterns = append(patterns, p)
		}
	}
	return ignore{patterns}
}

func parseIgnore(line, dir string) (pattern, bool) {
	line = strings.TrimRight(line, " \t\r")
	if line == "" || line[0] == '#' {
		return pattern{}, false
	}
	var p pattern
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		p.negated, line = true, rest
	}
	line = strings.TrimPrefix(line, `\`)
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		p.dirOnly, line = true, rest
	}
	if strings.Contains(line, "/") {
		line = strings.TrimPrefix(line, "/")
	} else {
		line = "**/" + line
	}
	p.glob = line
	if dir != "." {
		p.glob = escape(dir) + "/" + line
	}
	return p, doublestar.ValidatePattern(p.glob)
}

func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`).Replace(s)
}

func (g ignore) matches(name string, dir bool) bool {
	for _, p := range slices.Backward(g.patterns) {
		if p.dirOnly && !dir {
			continue
		}
		if ok, err := doublestar.Match(p.glob, name); err == nil && ok {
			return !p.negated
		}
	}
	return false
}

// visitor is called with each entry and the folder that it is in, which is open as long as the call.
type visitor func(dir *workspace.Folder, name string, d fs.DirEntry) error

// walk calls visit for all below dir in order, folders before what is in them;
// depth 0 is without bound.
func (e Env) walk(ctx context.Context, dir string, ignored bool, depth int, visit visitor) error {
	w := walker{e, ctx, ignored, depth, visit}
	root, err := e.Root.Folder(".")
	if err != nil {
		return nil
	}
	defer root.Close()
	var g ignore
	if !ignored {
		g = g.with(root, ".git/info/exclude", ".")
		for at, rest := ".", dir; dir != "." && rest != ""; {
			g = g.with(root, path.Join(at, ".gitignore"), at)
			var next string
			next, rest, _ = strings.Cut(rest, "/")
			at = path.Join(at, next)
		}
	}
	top, err := root.Folder(dir)
	if err != nil {
		return nil // unreadable or gone meanwhile
	}
	defer top.Close()
	return w.folder(top, dir, g, 1)
}

type walker struct {
	env     Env
	ctx     context.Context
	ignored bool
	depth   int
	visit   visitor
}

func (w *walker) folder(dir *workspace.Folder, at string, g ignore, level int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	entries, err := dir.ReadDir()
	if err != nil {
		return nil // unreadable or gone meanwhile
	}
	if !w.ignored && slices.ContainsFunc(entries, func(d fs.DirEntry) bool { return d.Name() == ".gitignore" }) {
		g = g.with(dir, ".gitignore", at)
	}
	for _, d := range entries {
		name := path.Join(at, d.Name())
		if d.Name() == ".git" || !w.ignored && g.matches(name, d.IsDir()) || len(w.env.Hidden) > 0 && w.env.Hidden[path.Join(w.env.Dir, name)] {
			continue
		}
		if err := w.visit(dir, name, d); err != nil {
			return err
		}
		if !d.IsDir() || w.depth > 0 && level >= w.depth {
			continue
		}
		sub, err := dir.Folder(d.Name())
		if err != nil {
			continue
		}
		err = w.folder(sub, name, g, level+1)
		sub.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

const defaultEntries = 1000

// List names what is in a folder.
func List(ctx context.Context, e Env, a *v1.ListFilesArgs) (*Outcome, error) {
	dir, info, err := e.resolve(a.Path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, contract.Errorf(v1.Error_invalid, "%s is a file, not a folder", a.Path).WithField("args.path").WithHint("read_file shows it")
	}
	if a.Glob != "" && !doublestar.ValidatePattern(a.Glob) {
		return nil, contract.Errorf(v1.Error_invalid, "%q is no glob", a.Glob).WithField("args.glob")
	}
	limit := int(a.Limit)
	if limit == 0 {
		limit = defaultEntries
	}
	var b strings.Builder
	n := 0
	err = e.walk(ctx, dir, a.IncludeIgnored, int(a.Depth), func(in *workspace.Folder, name string, d fs.DirEntry) error {
		if a.Glob != "" && (d.IsDir() || !globbed(a.Glob, dir, name)) {
			return nil
		}
		if n++; n > limit {
			return nil
		}
		b.WriteString(name)
		switch {
		case d.IsDir():
			b.WriteByte('/')
		case d.Type()&fs.ModeSymlink != 0:
			if to, err := in.Readlink(d.Name()); err == nil {
				b.WriteString(" -> " + to)
			}
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		return nil, err
	}
	switch {
	case n > limit:
		fmt.Fprintf(&b, "[%d of %d entries; narrow it with path, glob or depth, or raise limit]\n", limit, n)
	case n == 0:
		b.WriteString("nothing is there\n")
	}
	return &Outcome{Text: b.String()}, nil
}

// globbed matches a name below dir: by its path from there, or by its base name where the glob has no slash.
func globbed(glob, dir, name string) bool {
	rel := name
	if dir != "." {
		rel = strings.TrimPrefix(name, dir+"/")
	}
	if !strings.Contains(glob, "/") {
		rel = path.Base(rel)
	}
	ok, err := doublestar.Match(glob, rel)
	return err == nil && ok
}
