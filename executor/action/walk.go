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
)

// pattern is one line of a .gitignore (gitignore(5)), made a glob.
type pattern struct {
	glob    string
	negated bool
	dirOnly bool
}

// ignore is what the .gitignore files from the root down to a folder say; the last match wins.
type ignore struct{ patterns []pattern }

// under is what holds in a folder: what held above and its own file.
func (g ignore) under(root fs.FS, dir string) ignore {
	files := []string{path.Join(dir, ".gitignore")}
	if dir == "." {
		files = append([]string{".git/info/exclude"}, files...)
	}
	for _, file := range files {
		f, err := root.Open(file)
		if err != nil {
			continue
		}
		patterns := slices.Clone(g.patterns)
		for sc := bufio.NewScanner(f); sc.Scan(); {
			if p, ok := parseIgnore(sc.Text(), dir); ok {
				patterns = append(patterns, p)
			}
		}
		f.Close()
		g = ignore{patterns}
	}
	return g
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

// walk calls visit for all below dir in order, folders before what is in them;
// depth 0 is without bound.
func (e Env) walk(ctx context.Context, dir string, ignored bool, depth int, visit func(name string, d fs.DirEntry) error) error {
	var g ignore
	root := e.Root.FS()
	if !ignored {
		g = g.under(root, ".")
		for at, parts := ".", strings.Split(dir, "/"); dir != "." && len(parts) > 0; parts = parts[1:] {
			at = path.Join(at, parts[0])
			g = g.under(root, at)
		}
	}
	return e.walkDir(ctx, root, dir, g, ignored, 1, depth, visit)
}

func (e Env) walkDir(ctx context.Context, root fs.FS, dir string, g ignore, ignored bool, level, depth int, visit func(string, fs.DirEntry) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := fs.ReadDir(root, dir)
	if err != nil {
		return nil // unreadable or gone meanwhile
	}
	for _, d := range entries {
		name := path.Join(dir, d.Name())
		if d.Name() == ".git" || !ignored && g.matches(name, d.IsDir()) || len(e.Hidden) > 0 && e.Hidden[path.Join(e.Dir, name)] {
			continue
		}
		if err := visit(name, d); err != nil {
			return err
		}
		if !d.IsDir() || depth > 0 && level >= depth {
			continue
		}
		sub := g
		if !ignored {
			sub = g.under(root, name)
		}
		if err := e.walkDir(ctx, root, name, sub, ignored, level+1, depth, visit); err != nil {
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
	err = e.walk(ctx, dir, a.IncludeIgnored, int(a.Depth), func(name string, d fs.DirEntry) error {
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
			if to, err := e.Root.Readlink(name); err == nil {
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
