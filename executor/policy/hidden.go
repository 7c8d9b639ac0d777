package policy

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

// Hidden is something that a Read rule keeps from a step.
type Hidden struct {
	Path string // without links
	Rule string
}

// maxHidden bounds how much a step hides one by one: each costs a mount.
const maxHidden = 5000

// maxSpread is how many files of a folder are hidden one by one.
const maxSpread = 100

// Hidden is what there is now that a Read rule on the ask or deny list names:
// in the workspace, and outside where the rule has no ** but at its end (there,
// commands see the system's public files and caches only). What only an ask
// rule names is left out below a path of shown: a person agreed to it.
//
// It costs nothing where there is no such rule beside the built-in ones, and
// else a stat for each folder that a rule may match in, since what is in a
// folder is read again only when the folder changed. Names with further hard
// links cost a walk over all files, again when their count changed.
//
// layers are folders that lie over the workspace, as a staged session has them.
func (p *Policy) Hidden(shown []string, layers ...string) ([]Hidden, error) {
	pats := p.hiding()
	if len(pats) == 0 {
		return nil, nil
	}
	var list []Hidden
	for _, h := range p.tree.find(p, pats, layers) {
		if h.list == deny {
			list = append(list, Hidden{h.path, h.rule})
			continue
		}
		for _, path := range without(h.path, shown) {
			list = append(list, Hidden{path, h.rule})
		}
	}
	if len(list) > maxHidden {
		return nil, fmt.Errorf("the rule %s and others match %d files one by one; a rule on their folder hides them at once", list[0].Rule, len(list))
	}
	return list, nil
}

// without is a path, or what is in it, but for what is shown.
func without(path string, shown []string) (hide []string) {
	for _, s := range shown {
		if _, in := below(s, path); in {
			return nil
		}
	}
	if !slices.ContainsFunc(shown, func(s string) bool { _, in := below(path, s); return in }) {
		return []string{path}
	}
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		hide = append(hide, without(path+"/"+e.Name(), shown)...)
	}
	return hide
}

// hiding is the rules that reach the sandbox. The built-in ones on the home are
// needed only where a workspace holds it; elsewhere commands find it empty.
func (p *Policy) hiding() (pats []*rule) {
	for i := range p.rules {
		r := &p.rules[i]
		if r.tool != "Read" || r.list < ask || r.any {
			continue
		}
		if r.source == "built-in" {
			if _, in := below(p.root, p.home); !in || r.path.from != '~' {
				continue
			}
		}
		pats = append(pats, r)
	}
	return pats
}

// tree remembers, folder by folder, what the rules match.
type tree struct {
	mu      sync.Mutex
	version string
	folders map[string]*folder // by "base\0dir"
	names   map[inode][]string // of files with several hard links
}

// folder is what matters in one folder, as of its state.
type folder struct {
	state   folderState
	settled bool // its times can tell a later change
	hits    []hit
	subs    []string
}

type hit struct {
	path, rule, source, reason string
	list                       verdict
}

// finder is one walk.
type finder struct {
	p    *Policy
	t    *tree
	base string
	root string // the workspace, or a layer over it
	pats []*rule
	hits []hit
}

func (t *tree) find(p *Policy, pats []*rule, layers []string) []hit {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.version != p.version {
		t.version, t.folders, t.names = p.version, map[string]*folder{}, map[inode][]string{}
	}
	groups := map[string][]*rule{}
	for _, r := range pats {
		base := "/" + strings.TrimPrefix(r.path.base, "/")
		groups[base] = append(groups[base], r)
	}
	f := finder{p: p, t: t}
	for base, list := range groups {
		f.base, f.root, f.pats = base, p.root, list
		f.folder(base, "", 0)
	}
	strictest := map[string]hit{}
	for _, layer := range layers {
		l := finder{p: p, t: t, root: layer}
		for base, list := range groups {
			if rel, over := below(base, p.root); over {
				l.base, l.pats = base, list
				l.folder(layer, fold(rel), 0)
			}
		}
		for _, h := range l.hits {
			for _, path := range spread(h.path) {
				if h.path = p.root + strings.TrimPrefix(path, layer); h.list > strictest[h.path].list {
					strictest[h.path] = h
				}
			}
		}
	}
	for _, h := range f.hits {
		if real := f.real(h.path); real != "" {
			for _, h.path = range spread(real) {
				if h.list > strictest[h.path].list {
					strictest[h.path] = h
				}
			}
		}
	}
	for _, h := range strictest {
		for _, name := range t.linked(p, h.path) {
			if h.list > strictest[name].list {
				h.path = name
				strictest[name] = h
			}
		}
	}
	var all []hit
	for _, h := range strictest {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b hit) int { return strings.Compare(a.path, b.path) })
	return all
}

// folder finds the matches in a folder; rel is its folded path from the base.
func (f *finder) folder(dir, rel string, links int) {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() || links > 8 {
		return
	}
	state, dated := stateOf(info)
	key := f.base + "\x00" + dir
	known := f.t.folders[key]
	if known == nil || !known.settled || known.state != state {
		known = f.look(dir, rel)
		// File times are as coarse as a tick: a change right after the look would not show.
		known.state, known.settled = state, dated && time.Since(info.ModTime()) > 100*time.Millisecond
		f.t.folders[key] = known
	}
	f.hits = append(f.hits, known.hits...)
	for _, name := range known.subs {
		sub, n := dir+"/"+name, links
		if dir == "/" {
			sub = "/" + name
		}
		if l, err := os.Lstat(sub); err == nil && l.Mode()&fs.ModeSymlink != 0 {
			n++
		}
		f.folder(sub, join(rel, fold(name)), n)
	}
}

// look reads a folder.
func (f *finder) look(dir, rel string) *folder {
	x := &folder{}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		name := join(rel, fold(e.Name()))
		path := strings.TrimSuffix(dir, "/") + "/" + e.Name()
		best, descend := hit{path: path}, false
		for _, r := range f.pats {
			if doublestar.MatchUnvalidated(r.path.fold, name) {
				if r.list > best.list {
					best = hit{path, r.text, r.source, r.reason, r.list}
				}
			}
		}
		for _, r := range f.pats {
			if r.list > best.list && !descend {
				descend = f.reaches(r, path, name, e.Type())
			}
		}
		if best.list > none {
			x.hits = append(x.hits, best)
		}
		if descend {
			x.subs = append(x.subs, e.Name())
		}
	}
	return x
}

// reaches says whether a rule may match something below a folder. Links to
// folders are followed only as deep as a rule spells a path out.
func (f *finder) reaches(r *rule, path, name string, kind fs.FileMode) bool {
	if !kind.IsDir() && kind&fs.ModeSymlink == 0 {
		return false
	}
	glob := strings.Split(r.path.fold, "/")
	if strings.ContainsAny(r.path.fold, "{") {
		glob = []string{"**", "*"}
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		switch {
		case i >= len(glob):
			return false
		case glob[i] == "**":
			_, in := below(f.root, path)
			_, over := below(path, f.root)
			return kind.IsDir() && (in || over)
		case !doublestar.MatchUnvalidated(glob[i], part):
			return false
		}
	}
	if len(parts) < len(glob) && glob[len(parts)] == "**" {
		_, in := below(f.root, path)
		_, over := below(path, f.root)
		return kind.IsDir() && (in || over)
	}
	return len(parts) < len(glob)
}

// real is where a match lies; "" where nothing can be hidden there: a link to
// nowhere, or to a folder that holds the workspace or belongs to the system.
func (f *finder) real(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	if _, holds := below(real, f.p.root); holds {
		return ""
	}
	if real != path {
		info, err := os.Stat(real)
		if _, in := below(f.p.root, real); err != nil || info.IsDir() && !in {
			return ""
		}
	}
	return real
}

// spread is the files below a folder, or the folder where they are many: a
// folder that cannot be opened stops builds that look into every one.
func spread(path string) (files []string) {
	err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Type().IsDir() || d.Type()&fs.ModeSymlink != 0:
			return nil
		case len(files) == maxSpread:
			return fs.SkipAll
		}
		files = append(files, name)
		return nil
	})
	if err != nil || len(files) == maxSpread {
		return []string{path}
	}
	return files
}

// linked is the names in the workspace that a file has beside this one.
func (t *tree) linked(p *Policy, path string) []string {
	id, ok := inodeOf(path)
	if !ok || id.links < 2 {
		return nil
	}
	names, known := t.names[id]
	for _, n := range names {
		if now, ok := inodeOf(n); !ok || now != id {
			known = false
		}
	}
	if known {
		return names
	}
	names = nil
	filepath.WalkDir(p.root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if other, ok := inodeOf(name); ok && other == id {
				names = append(names, name)
			}
		}
		return nil
	})
	t.names[id] = names
	return names
}

func join(rel, name string) string {
	if rel == "" {
		return name
	}
	return rel + "/" + name
}
