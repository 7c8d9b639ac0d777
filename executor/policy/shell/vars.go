package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// set notes that a variable gets a value in the shell itself.
func (w *walker) set(name string, value Word, text string) {
	if known, seen := w.vars[name]; seen || w.maybe > 0 || !value.Known || len(w.funcs) > 0 && known == nil {
		w.vars[name] = nil
	} else {
		w.vars[name] = &value
	}
	if why := Dangerous(name, value); why != "" {
		w.emit(Command{Text: text, Loose: why, Assigns: []Assign{{name, value}}})
	}
	if value.Known && hidesCode(value.Text) {
		w.emit(Command{Text: text, Opaque: "a value that the shell runs when it counts with it"})
	}
}

// hidesCode: a subscript with a substitution, which arithmetic evaluates again.
func hidesCode(s string) bool {
	_, after, ok := strings.Cut(s, "[")
	return ok && (strings.Contains(after, "$(") || strings.Contains(after, "`"))
}

func (w *walker) assign(a *syntax.Assign) Assign {
	if a.Index != nil {
		w.arithm(a.Index)
	}
	value := Word{}
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			if e.Index != nil {
				w.arithm(e.Index)
			}
			if e.Value != nil {
				w.expand(e.Value)
			}
		}
	} else {
		value = w.one(a.Value)
	}
	if a.Append || a.Index != nil {
		value = Word{}
	}
	name := ""
	if a.Name != nil {
		name = a.Name.Value
	}
	return Assign{Name: name, Value: value}
}

func (w *walker) declare(c *syntax.DeclClause) {
	cmd := Command{Text: w.text(c), Words: []Word{{Text: c.Variant.Value, Known: true}}}
	for _, a := range c.Args {
		if a.Name == nil || a.Naked {
			if a.Value != nil {
				words := w.expand(a.Value)
				cmd.Words = append(cmd.Words, words...)
				w.declared(&cmd, words)
			}
			continue
		}
		set := w.assign(a)
		w.set(set.Name, set.Value, cmd.Text)
	}
	w.emit(cmd)
}

// declared notes the words of declare and its kin that are no plain NAME=value:
// flags, and what is quoted as a whole.
func (w *walker) declared(cmd *Command, words []Word) {
	for _, x := range words {
		if !x.Known {
			cmd.Loose = "a variable whose name is not plain"
		}
		if hidesCode(x.Text) {
			cmd.Opaque = "a value that the shell runs when it counts with it"
		}
		if strings.HasPrefix(x.Text, "-") && strings.ContainsAny(x.Text, "ni") {
			cmd.Loose = "a variable that stands for another, or that counts"
		}
		if name, value, ok := strings.Cut(x.Text, "="); ok {
			plain := strings.TrimSuffix(name, "+")
			w.set(plain, Word{Text: value, Known: x.Known && plain == name}, cmd.Text)
		}
	}
}

func (w *walker) arithm(x syntax.ArithmExpr) {
	if x == nil {
		return
	}
	syntax.Walk(x, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Word:
			word := w.one(n)
			if word.Known && hidesCode(word.Text) {
				w.emit(Command{Text: w.text(n), Opaque: "a value that the shell runs when it counts with it"})
			}
			return false
		case *syntax.ParamExp:
			b := builder{w: w, whole: true}
			b.param(n, true)
			return false
		case *syntax.BinaryArithm:
			if name, ok := n.X.(*syntax.Word); ok && strings.HasSuffix(n.Op.String(), "=") {
				w.set(name.Lit(), Word{}, w.text(n))
			}
		}
		return true
	})
}

func (w *walker) test(x syntax.TestExpr) {
	syntax.Walk(x, func(n syntax.Node) bool {
		word, ok := n.(*syntax.Word)
		if !ok {
			return true
		}
		if v := w.one(word); v.Known && hidesCode(v.Text) {
			w.emit(Command{Text: w.text(word), Opaque: "a value that the shell runs when it counts with it"})
		}
		return false
	})
}

// Dangerous says what setting a variable changes about the commands after it,
// "" if nothing that matters.
func Dangerous(name string, value Word) string {
	if why, ok := meaning[name]; ok {
		if (name == "PAGER" || name == "GIT_PAGER" || name == "MANPAGER") && value.Known && (value.Text == "cat" || value.Text == "") {
			return ""
		}
		return name + " " + why
	}
	if strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") {
		return name + " changes the code that programs load"
	}
	if strings.HasPrefix(name, "GIT_") && !strings.HasPrefix(name, "GIT_AUTHOR_") && !strings.HasPrefix(name, "GIT_COMMITTER_") &&
		name != "GIT_TERMINAL_PROMPT" && name != "GIT_OPTIONAL_LOCKS" && name != "GIT_MERGE_AUTOEDIT" {
		return name + " changes what git runs or where it works"
	}
	if strings.HasPrefix(name, "BASH_FUNC_") {
		return name + " defines a function"
	}
	if strings.HasPrefix(name, "npm_config_") || strings.HasPrefix(name, "NPM_CONFIG_") {
		return name + " changes what npm runs"
	}
	return ""
}

// meaning lists variables that change what a command does.
var meaning = map[string]string{
	"PATH": "changes which programs the names mean", "BASH_ENV": "names a file that the shell runs", "ENV": "names a file that the shell runs",
	"PROMPT_COMMAND": "is run by the shell", "PS0": "is run by the shell", "PS1": "is run by the shell", "PS2": "is run by the shell", "PS4": "is run by the shell", "SHELLOPTS": "changes the shell", "BASHOPTS": "changes the shell", "CDPATH": "changes where cd goes", "SHELL": "is run by other programs",
	"IFS": "changes how words are split", "GLOBIGNORE": "changes what patterns match", "BASH_LOADABLES_PATH": "loads code into the shell", "FPATH": "loads code into the shell", "EXECIGNORE": "changes which programs the names mean", "HISTFILE": "is written by the shell", "BASH_ALIASES": "changes what names mean", "BASH_CMDS": "changes which programs the names mean", "OLDPWD": "changes where cd goes", "PWD": "hides the folder", "HOME": "changes which settings are read", "TMPDIR": "changes where files are written",
	"PAGER": "is run by other programs", "MANPAGER": "is run by other programs", "LESSOPEN": "is run by less", "LESSCLOSE": "is run by less", "EDITOR": "is run by other programs", "VISUAL": "is run by other programs", "BROWSER": "is run by other programs", "MANOPT": "changes what man runs",
	"PYTHONPATH": "changes the code that Python loads", "PYTHONSTARTUP": "is run by Python", "PYTHONHOME": "changes the code that Python loads", "PYTHONINSPECT": "changes what Python runs", "PYTHONBREAKPOINT": "is run by Python", "PYTEST_ADDOPTS": "changes what pytest runs", "PYTEST_PLUGINS": "changes what pytest loads",
	"NODE_OPTIONS": "changes the code that Node loads", "NODE_PATH": "changes the code that Node loads", "PERL5LIB": "changes the code that Perl loads", "PERL5OPT": "changes what Perl runs", "PERL5DB": "is run by Perl", "PERLLIB": "changes the code that Perl loads", "RUBYOPT": "changes what Ruby runs", "RUBYLIB": "changes the code that Ruby loads", "JAVA_TOOL_OPTIONS": "changes what Java runs", "_JAVA_OPTIONS": "changes what Java runs", "JDK_JAVA_OPTIONS": "changes what Java runs", "MAVEN_OPTS": "changes what Maven runs", "GRADLE_OPTS": "changes what Gradle runs", "CLASSPATH": "changes the code that Java loads",
	"GOFLAGS": "changes what go runs", "GOENV": "changes what go runs", "GOTOOLCHAIN": "changes which go runs", "GOROOT": "changes which go runs", "RUSTC": "is run by cargo", "RUSTC_WRAPPER": "is run by cargo", "RUSTFLAGS": "changes what rustc loads", "CARGO_HOME": "changes what cargo reads", "CC": "is run by builds", "CXX": "is run by builds", "LD": "is run by builds", "AR": "is run by builds", "MAKEFLAGS": "changes what make runs", "MAKEFILES": "is read by make", "TAR_OPTIONS": "changes what tar runs", "RIPGREP_CONFIG_PATH": "changes what rg runs", "GREP_OPTIONS": "changes what grep does", "AWKPATH": "changes the code that awk loads", "SSH_ASKPASS": "is run by ssh", "SUDO_ASKPASS": "is run by sudo", "HTTP_PROXY": "changes where the network leads", "HTTPS_PROXY": "changes where the network leads", "http_proxy": "changes where the network leads", "https_proxy": "changes where the network leads", "ALL_PROXY": "changes where the network leads", "XDG_CONFIG_HOME": "changes which settings are read", "JQ_LIBRARY_PATH": "changes the code that jq loads", "GCONV_PATH": "changes the code that programs load", "OPENSSL_CONF": "changes the code that programs load",
}
