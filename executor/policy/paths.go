package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/unicode/norm"
)

// pattern is a gitignore-style pattern below a folder.
type pattern struct {
	from byte   // '/' absolute, '~' home, 'w' workspace
	glob string // below it, without a leading slash
	base string // the folder, once placed
	fold string // glob as it is compared on the ask and deny lists
	low  string // base likewise
	must string // a part of fold that stands in every path that it covers
}

func parsePattern(spec string) (pattern, error) {
	var p pattern
	switch {
	case strings.HasPrefix(spec, "//"):
		p = pattern{from: '/', glob: spec[2:]}
	case spec == "~" || strings.HasPrefix(spec, "~/"):
		p = pattern{from: '~', glob: strings.TrimPrefix(spec[1:], "/")}
	case strings.HasPrefix(spec, "/"):
		p = pattern{from: 'w', glob: spec[1:]}
	case strings.HasPrefix(spec, "./"):
		p = pattern{from: 'w', glob: spec[2:]}
	case strings.Contains(strings.TrimSuffix(spec, "/"), "/"):
		p = pattern{from: 'w', glob: spec}
	default:
		p = pattern{from: 'w', glob: "**/" + spec}
	}
	p.glob = strings.TrimSuffix(p.glob, "/")
	if p.glob == "" {
		p.glob = "**"
	}
	if strings.HasPrefix(p.glob, "../") {
		return p, fmt.Errorf("%q leaves the working folder; //PATH is absolute, ~/PATH is in the home", spec)
	}
	if !doublestar.ValidatePattern(p.glob) {
		return p, fmt.Errorf("%q is no pattern: a bracket or brace is not closed", spec)
	}
	return p, nil
}

func (r *rule) place(root, home string) {
	switch r.path.from {
	case '~':
		r.path.base = home
	case 'w':
		r.path.base = root
	}
	r.path.fold, r.path.low = fold(r.path.glob), fold(r.path.base)
	for part := range strings.SplitSeq(r.path.fold, "/") {
		if !strings.ContainsAny(r.path.fold, `{\`) && !strings.ContainsAny(part, "*?[") && len(part) > len(r.path.must) {
			r.path.must = part
		}
	}
}

// covers says whether the pattern, or a folder that it matches, holds the path.
func (p *pattern) covers(path string, folded bool) bool {
	base, glob := p.base, p.glob
	if folded {
		if base, glob = p.low, p.fold; !strings.Contains(path, p.must) {
			return false
		}
	}
	if p.from == '~' && base == "" {
		return false
	}
	rel, ok := below(base, path)
	if !ok {
		return false
	}
	if doublestar.MatchUnvalidated(glob, rel) {
		return true
	}
	for i, c := range rel {
		if c == '/' && doublestar.MatchUnvalidated(glob, rel[:i]) {
			return true
		}
	}
	return false
}

func below(base, path string) (string, bool) {
	if path == base {
		return "", true
	}
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(base, "/"))
	if !ok || !strings.HasPrefix(rest, "/") {
		return path, false
	}
	return rest[1:], true
}

// fold is a path as a careless file system would see it: without case, without
// invisible characters, in one Unicode form.
func fold(s string) string {
	ascii := true
	for i := range len(s) {
		if s[i] >= 0x80 {
			ascii = false
			break
		}
	}
	if !ascii {
		s = norm.NFKC.String(strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) {
				return -1
			}
			return r
		}, s))
	}
	s = strings.ToLower(s)
	if strings.Contains(s, "git~1") {
		s = strings.ReplaceAll(s, "git~1", ".git")
	}
	return s
}

// target is where a path leads.
type target struct {
	named string // as given, made absolute
	real  string // with symlinks followed
}

// follow walks a path as the kernel does. What does not exist is taken as a
// name; a loop of links is an error.
// root is a folder that is known to have no links in its own path.
func follow(root, path string) (string, error) {
	done, todo, links := "/", strings.TrimPrefix(path, "/"), 0
	if rel, in := below(root, path); in {
		done, todo = root, rel
	}
	for todo != "" {
		var name string
		name, todo, _ = strings.Cut(todo, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := done + "/" + name
		if done == "/" {
			next = "/" + name
		}
		info, err := os.Lstat(next)
		if err != nil || info.Mode()&os.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > 40 {
			return "", fmt.Errorf("it is a loop of links")
		}
		to, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(to, "/") {
			done = "/"
		}
		todo = to + "/" + todo
	}
	return done, nil
}

// locate finds where a path of a step leads; dir is where it is relative to.
func (p *judging) locate(path, dir string) (target, error) {
	abs := path
	switch {
	case strings.Contains(path, "://"):
		return target{}, fmt.Errorf("it is an address, not a path")
	case strings.ContainsRune(path, 0):
		return target{}, fmt.Errorf("it has a NUL byte")
	case path == "~" || strings.HasPrefix(path, "~/"):
		abs = p.home + path[1:]
	case !filepath.IsAbs(path):
		abs = dir + "/" + path
	}
	real, err := follow(p.root, abs)
	return target{named: filepath.Clean(abs), real: real}, err
}

func (p *judging) inside(t target) bool {
	_, ok := below(p.root, t.real)
	return ok
}
