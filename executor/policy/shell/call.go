package shell

import (
	"os"
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"harness/executor/policy/programs"
)

func (w *walker) call(c *syntax.CallExpr, files []File, text string) {
	cmd := Command{Text: text, Files: files}
	for _, a := range c.Assigns {
		cmd.Assigns = append(cmd.Assigns, w.assign(a))
	}
	cmd.Words = make([]Word, 0, len(c.Args))
	for _, a := range c.Args {
		if l, plain := plain(a); plain {
			cmd.Words = append(cmd.Words, Word{Text: l, Known: true})
		} else {
			cmd.Words = append(cmd.Words, w.expand(a)...)
		}
	}
	if len(cmd.Words) == 0 {
		for _, a := range cmd.Assigns {
			w.set(a.Name, a.Value, text)
		}
		cmd.Assigns = nil
		if len(c.Args) > 0 {
			cmd.Opaque = "the program's name comes from an expansion"
		}
		if len(files) > 0 || cmd.Opaque != "" {
			w.emit(cmd)
		}
		return
	}
	for _, a := range cmd.Assigns {
		if why := Dangerous(a.Name, a.Value); why != "" && !(a.Name == "IFS" && cmd.Words[0].Text == "read") {
			cmd.Loose = why
		}
		if a.Value.Known && hidesCode(a.Value.Text) {
			cmd.Opaque = "a value that the shell runs when it counts with it"
		}
	}
	w.command(cmd)
}

// command judges what kind of command the words are, and goes into it.
func (w *walker) command(cmd Command) {
	if w.depth++; w.depth > maxDepth {
		cmd.Opaque = "it is nested too deeply to be read"
		w.emit(cmd)
		w.depth--
		return
	}
	defer func() { w.depth-- }()
	name := cmd.Words[0]
	switch {
	case !name.Known:
		cmd.Opaque = "the program's name comes from an expansion"
	case name.Glob:
		cmd.Opaque = "the program's name is a pattern"
	case name.Text == "" || strings.Contains(name.Text, "{}"):
		cmd.Opaque = "the program's name is not plain"
	}
	if cmd.Opaque != "" {
		w.emit(cmd)
		return
	}
	if w.funcs[name.Text] {
		cmd.Wraps = true // its body was judged where it stands
		w.emit(cmd)
		return
	}
	base := path.Base(name.Text)
	if base == name.Text && w.builtin(cmd, base) {
		return
	}
	if w.net && interprets[base] {
		cmd.Fetched = true
	}
	wrap := programs.WrapOf(base)
	if wrap == nil {
		w.emit(cmd)
		return
	}
	w.unwrap(cmd, base, wrap)
}

var interprets = map[string]bool{"python": true, "python3": true, "node": true, "perl": true, "ruby": true, "php": true, "lua": true}

// builtin handles what the shell does itself. It is true when nothing is left to do.
func (w *walker) builtin(cmd Command, name string) bool {
	switch name {
	case "cd", "pushd", "popd", "chdir":
		w.emit(cmd)
		w.cd(name, cmd.Words[1:])
		return true
	case ".", "source":
		cmd.Opaque = "it runs the commands of a file in this shell"
	case "alias":
		if len(cmd.Words) > 1 {
			cmd.Opaque = "an alias changes what a name means"
		}
	case "enable", "bind", "complete", "fc":
		cmd.Opaque = name + " changes what the shell runs"
	case "trap":
		for _, x := range cmd.Words[1:] {
			if strings.HasPrefix(x.Text, "-") && x.Known {
				continue
			}
			cmd.Wraps = true
			if !x.Known {
				cmd.Wraps, cmd.Opaque = false, "the code that it runs later is not plain"
			}
			w.emit(cmd)
			if x.Known && x.Text != "" {
				w.code(x.Text, cmd)
			}
			return true
		}
		cmd.Wraps = true
	case "command":
		if len(cmd.Words) > 1 && (cmd.Words[1].Text == "-v" || cmd.Words[1].Text == "-V") {
			cmd.Wraps = true
			w.emit(cmd)
			return true
		}
		return false
	case "exec":
		if len(cmd.Words) == 1 {
			cmd.Wraps = true
			w.emit(cmd)
			return true
		}
		return false
	case "declare", "typeset", "local", "export", "readonly": // behind command or builtin
		w.declared(&cmd, cmd.Words[1:])
	case "test", "[", "let", "unset", "printf", "read", "mapfile", "readarray", "getopts":
		for _, x := range cmd.Words[1:] {
			if name != "printf" && x.Known && hidesCode(x.Text) {
				cmd.Opaque = "a value that the shell runs when it counts with it"
			}
		}
		w.names(&cmd, name)
	default:
		return false
	}
	w.emit(cmd)
	return true
}

// names notes the variables that a builtin sets by name.
func (w *walker) names(cmd *Command, name string) {
	words := cmd.Words[1:]
	if name == "printf" {
		if len(words) < 2 || words[0].Text != "-v" {
			return
		}
		words = words[1:2]
	} else if p, _ := programs.Lookup(name); !p.Sets {
		return
	}
	for _, x := range words {
		target, _, _ := strings.Cut(x.Text, "[")
		if !x.Known {
			cmd.Loose = "a variable whose name is not plain"
		}
		if hidesCode(x.Text) {
			cmd.Opaque = "a value that the shell runs when it counts with it"
		}
		w.vars[target] = nil
		if why := Dangerous(target, Word{}); why != "" {
			cmd.Loose = why
		}
	}
}

func (w *walker) cd(name string, words []Word) {
	for len(words) > 0 && words[0].Known && (words[0].Text == "-P" || words[0].Text == "-L" || words[0].Text == "--" || words[0].Text == "-e") {
		words = words[1:]
	}
	to := Word{Text: w.env.Home, Known: w.env.Home != ""}
	if len(words) > 0 {
		to = words[0]
	}
	_, moved := w.vars["CDPATH"]
	_, home := w.vars["HOME"]
	odd := strings.HasPrefix(to.Text, "-") || strings.HasPrefix(to.Text, "+") || name == "popd"
	if !to.Known || to.Glob || odd || moved || home && len(words) == 0 || name == "pushd" && len(words) == 0 || w.at.dirs == nil && !path.IsAbs(to.Text) {
		w.at = place{}
		return
	}
	w.at = place{dirs: w.from(to.Text)}
}

// from is the folders that a path means.
func (w *walker) from(p string) []string {
	if path.IsAbs(p) {
		return []string{path.Clean(p)}
	}
	var dirs []string
	for _, d := range w.at.dirs {
		dirs = append(dirs, path.Join(d, p))
	}
	return dirs
}

// exists: going there cannot fail.
func (w *walker) exists(at place) bool {
	for _, d := range at.dirs {
		if info, err := os.Stat(d); err != nil || !info.IsDir() {
			return false
		}
	}
	return at.dirs != nil
}

// reaches: the command talks to the network.
func (c Command) reaches() bool {
	if len(c.Words) == 0 {
		return false
	}
	p, _ := programs.Lookup(path.Base(c.Words[0].Text))
	return p.Network
}
