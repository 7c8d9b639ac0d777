package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (c *completionCmd) Help() string {
	return "Put it to use with: source <(harness completion bash); in zsh the same; harness completion fish | source."
}

func (c *completionCmd) Run(k *kong.Kong) error {
	switch c.Shell {
	case "fish":
		fmt.Print(fish(k.Model.Node))
	case "zsh":
		fmt.Print("autoload -U +X bashcompinit && bashcompinit\n" + bash(k.Model.Node))
	default:
		fmt.Print(bash(k.Model.Node))
	}
	return nil
}

// each calls do for every command with the words that lead to it.
func each(n *kong.Node, path string, do func(path string, n *kong.Node)) {
	do(path, n)
	for _, c := range n.Children {
		if !c.Hidden {
			each(c, strings.TrimSpace(path+" "+c.Name), do)
		}
	}
}

// flagsOf are a command's flags that people see; the default command's belong to the program.
func flagsOf(n *kong.Node) (list []*kong.Flag) {
	if n.DefaultCmd != nil {
		list = flagsOf(n.DefaultCmd)
	}
	for _, f := range n.Flags {
		if !f.Hidden {
			list = append(list, f)
		}
	}
	return list
}

func bash(root *kong.Node) string {
	var cases, known strings.Builder
	each(root, "", func(path string, n *kong.Node) {
		var words []string
		for _, c := range n.Children {
			if !c.Hidden {
				words = append(words, c.Name)
			}
		}
		for _, f := range flagsOf(n) {
			words = append(words, "--"+f.Name)
		}
		fmt.Fprintf(&cases, "\t%q) words=%q ;;\n", path, strings.Join(words, " "))
		if path != "" {
			fmt.Fprintf(&known, "|%s", strings.ReplaceAll(path, " ", `\ `))
		}
	})
	return `_harness() {
	local cur="${COMP_WORDS[COMP_CWORD]}" path="" next w words=""
	for w in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		next="${path:+$path }$w"
		case "$next" in ` + strings.TrimPrefix(known.String(), "|") + `) path="$next" ;; esac
	done
	case "$path" in
` + cases.String() + `	esac
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _harness harness
`
}

func fish(root *kong.Node) string {
	var b strings.Builder
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `\'`) + "'" }
	each(root, "", func(path string, n *kong.Node) {
		when := "__fish_use_subcommand"
		if path != "" {
			when = "__fish_seen_subcommand_from " + path[strings.LastIndex(path, " ")+1:]
		}
		for _, c := range n.Children {
			if !c.Hidden {
				fmt.Fprintf(&b, "complete -c harness -n %s -a %s -d %s\n", quote(when), quote(c.Name), quote(c.Help))
			}
		}
		for _, f := range flagsOf(n) {
			fmt.Fprintf(&b, "complete -c harness -n %s -l %s -d %s\n", quote(when), quote(f.Name), quote(f.Help))
		}
	})
	return b.String()
}

type manCmd struct{}

// Run prints the manual page, for man -l -.
func (manCmd) Run(k *kong.Kong) error {
	esc := func(s string) string {
		s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
		return strings.ReplaceAll("\n"+s, "\n.", "\n\\&.")[1:]
	}
	var b strings.Builder
	about, _, _ := strings.Cut(k.Model.Help, "\n\n")
	fmt.Fprintf(&b, ".TH HARNESS 1 \"\" %q\n.SH NAME\nharness \\- a coding agent in two processes\n.SH SYNOPSIS\n.B harness\n[\\fICOMMAND\\fR] [\\fIFLAGS\\fR] [\\fITASK\\fR]\n.SH DESCRIPTION\n%s\n.SH COMMANDS\n", version, esc(about))
	each(k.Model.Node, "", func(path string, n *kong.Node) {
		if path == "" {
			return
		}
		fmt.Fprintf(&b, ".SS harness %s\n%s\n", esc(path), esc(n.Help))
		for _, a := range n.Positional {
			fmt.Fprintf(&b, ".TP\n\\fI%s\\fR\n%s\n", esc(a.Name), esc(a.Help))
		}
		for _, f := range n.Flags {
			if f.Hidden || f.Name == "help" {
				continue
			}
			name := "--" + f.Name
			if f.Short != 0 {
				name = "-" + string(f.Short) + ", " + name
			}
			if !f.IsBool() {
				name += "=" + f.FormatPlaceHolder()
			}
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", esc(name), esc(f.Help))
		}
	})
	fmt.Fprintf(&b, ".SH EXIT STATUS\n%s\n.SH FILES\n\\fI~/.config/harness/config.toml\\fR, \\fI.harness/config.toml\\fR, \\fI/etc/harness/policy.toml\\fR\n", esc(strings.TrimPrefix(exitHelp, "Exit codes: ")))
	_, err := os.Stdout.WriteString(b.String())
	return err
}
