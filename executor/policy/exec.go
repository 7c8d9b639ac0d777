package policy

import (
	"path"
	"path/filepath"
	"strings"
	"sync"

	v1 "harness/contract/harness/v1"
	"harness/executor/policy/shell"
)

// Program is one that is about to run, as the kernel has it.
type Program struct {
	Path     string   // its file, without links
	Called   string   // the name that it was started by; of a script, the script
	Argv     []string // of a script, its interpreter's
	Dev, Ino uint64
	Size     int64
	Env      []string // this and the digest only when asked for
	Digest   string
}

// denials are the deny rules on commands by the program that they name.
type denials struct {
	once  sync.Once
	all   *rule
	rules map[string][]*rule
	files []*knownFile
}

func (p *Policy) denials() *denials {
	d := p.denied
	d.once.Do(func() {
		d.rules = map[string][]*rule{}
		named := map[string]bool{} // what is built in needs rights that no step has: its names do
		for i := range p.rules {
			r := &p.rules[i]
			switch {
			case r.tool != "Bash" || r.list != deny:
			case r.any:
				d.all = r
			case len(r.words) > 0:
				name := path.Base(r.words[0])
				d.rules[name] = append(d.rules[name], r)
				named[name] = named[name] || r.source != "built-in"
			}
		}
		d.files = knownFiles(named)
	})
	return d
}

// Suspects are the programs that Exec may refuse.
type Suspects struct {
	Names map[string]bool // base names
	Sizes []int64         // of files that are known under whatever name
	All   bool
}

// Suspects is wider than any verdict of Exec.
func (p *Policy) Suspects() Suspects {
	d := p.denials()
	s := Suspects{Names: map[string]bool{}, All: d.all != nil}
	for name := range d.rules {
		s.Names[name] = true
	}
	for _, f := range d.files {
		s.Sizes = append(s.Sizes, f.size)
	}
	return s
}

// Exec judges a program about to start by the deny rules; nil: not refused.
// With more, the verdict needs the program's Env and Digest. What it stands for
// is judged by its own words, by the name of its file, by the name that it was
// called, and by what its file holds.
func (p *Policy) Exec(x Program) (refused *v1.Decision, more bool) {
	d := p.denials()
	if d.all != nil {
		return refusal(d.all, x.Argv), false
	}
	same, more := d.identify(&x)
	if more {
		return nil, true
	}
	for _, words := range standsFor(&x, same) {
		if r := d.names(words); r != nil {
			return refusal(r, words), false
		}
	}
	if !isLoader(&x, same) {
		return nil, false
	}
	if x.Digest == "" {
		return nil, true
	}
	return p.loaded(d, &x), false
}

func refusal(r *rule, words []string) *v1.Decision {
	text := strings.Join(words, " ")
	d := &v1.Decision{Verdict: v1.Decision_deny, Rule: r.text, Source: r.source, Reason: r.reason,
		Part: strings.ToValidUTF8(text[:min(len(text), 200)], "\uFFFD")}
	if d.Reason == "" {
		d.Reason = "a deny rule names it"
	}
	return d
}

// names is the deny rule that names a program with its words.
func (d *denials) names(words []string) *rule {
	rules := d.rules[path.Base(words[0])]
	if len(rules) == 0 {
		return nil
	}
	c := &shell.Command{Words: make([]shell.Word, len(words))}
	for i, w := range words {
		c.Words[i] = shell.Word{Text: w, Known: true}
	}
	cmd := newCommand(c)
	for _, r := range rules {
		if r.forbids(cmd) == 1 {
			return r
		}
	}
	return nil
}

// standsFor is all that a program may be said to be, as commands.
func standsFor(x *Program, same []*knownFile) (list [][]string) {
	if len(x.Argv) == 0 {
		x.Argv = []string{""}
	}
	rest := x.Argv[1:]
	add := func(name string, words []string) {
		list = append(list, append([]string{name}, words...))
	}
	list = append(list, x.Argv)
	file, called := path.Base(x.Path), path.Base(x.Called)
	if file != path.Base(x.Argv[0]) {
		add(file, rest)
	}
	if called != file && called != path.Base(x.Argv[0]) {
		at := 0 // of a script, its words stand behind its name
		for at < min(len(rest), 2) && rest[at] != x.Called {
			at++
		}
		if at < min(len(rest), 2) {
			add(x.Called, rest[at+1:])
		} else {
			add(x.Called, rest)
		}
	}
	box := manyNames[file] == byWord
	for _, f := range same {
		switch f.kind {
		case one:
			add(f.name, rest)
		case byWord:
			box = true
		}
	}
	if box && len(rest) > 0 {
		list = append(list, rest)
	}
	if sub, ok := strings.CutPrefix(path.Base(x.Argv[0]), "git-"); ok {
		list = append(list, append([]string{"git", sub}, rest...))
	}
	return list
}

func isLoader(x *Program, same []*knownFile) bool {
	for _, f := range same {
		if f.kind == loader {
			return true
		}
	}
	name := path.Base(x.Path)
	return strings.HasPrefix(name, "ld-") && strings.Contains(name, ".so")
}

// Flags of the dynamic loader (ld.so(8)): with some it runs nothing, others
// have their value in the next word.
const (
	loaderShows  = "--list --verify --help --version --list-tunables --list-diagnostics"
	loaderValues = "--library-path --inhibit-rpath --preload --audit --argv0 --glibc-hwcaps-prepend --glibc-hwcaps-mask"
)

// loaded judges the program that the dynamic loader is told to run, which no
// exec shows. Only one that no step can change is what it is seen to be.
func (p *Policy) loaded(d *denials, x *Program) *v1.Decision {
	for _, kv := range x.Env {
		if strings.HasPrefix(kv, "LD_TRACE_LOADED_OBJECTS=") && len(kv) > len("LD_TRACE_LOADED_OBJECTS=") {
			return nil // as ldd does
		}
	}
	words := x.Argv[1:]
	for len(words) > 0 && strings.HasPrefix(words[0], "--") {
		if has(loaderShows, words[0]) {
			return nil
		}
		if has(loaderValues, words[0]) && len(words) > 1 {
			words = words[1:]
		}
		words = words[1:]
	}
	if len(words) == 0 {
		return nil
	}
	real, err := filepath.EvalSymlinks(words[0])
	if err != nil || !path.IsAbs(words[0]) || !ofSystem(words[0]) || !ofSystem(real) {
		return &v1.Decision{Verdict: v1.Decision_deny, Rule: "default", Source: "built-in",
			Reason: "the dynamic loader would run a program that cannot be seen; start the program itself", Part: strings.ToValidUTF8(words[0], "\uFFFD")}
	}
	y := Program{Path: real, Called: words[0], Argv: words}
	if id, ok := fileOf(real); ok {
		y.Dev, y.Ino, y.Size = id.dev, id.ino, id.size
	}
	same, _ := d.identify(&y)
	for _, w := range standsFor(&y, same) {
		if r := d.names(w); r != nil {
			return refusal(r, w)
		}
	}
	return nil
}

// ofSystem: where no step can put a program.
func ofSystem(name string) bool {
	for _, dir := range []string{"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/nix/store/"} {
		if strings.HasPrefix(path.Clean(name), dir) {
			return true
		}
	}
	return false
}
