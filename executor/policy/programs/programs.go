// Package programs is what is known about programs: which only read, which of
// their flags make them write, run another program or reach the network, which
// run the command in their arguments, and which are a project's own build.
//
// The facts are tables (readers.go, git.go, wrappers.go, builds.go); nothing
// here decides. A program that is not in a table is unknown, and unknown is
// asked. To teach a program, add a line to the table of its kind: flags are
// separated by blanks, long ones in full (abbreviations are matched).
package programs

import "strings"

// Program is what is known of one program or sub-command.
type Program struct {
	Reads   bool // only reads and prints, but for the flags below
	Builds  bool // builds or tests the project: runs its code, on the allow list
	Network bool // reaches the network by itself

	Writes string // flags that write a file
	Runs   string // flags that run a program, or load code
	Values string // flags whose value is the next word
	Dirs   string // flags whose value is the folder that it works in

	Operands Operands // what its other words are
	Most     int      // most operands with which it still only reads; 0: no bound
	Only     string   // with Builds: the operands that are on the allow list
	Language string   // its first operand is a program: sed, awk; or find, jq
	Sets     bool     // its operands are names of shell variables
	Copies   bool     // puts a file under another name
	Subs     map[string]Program
	SameAs   string // plumbing with the effect of another command: "git push"
	Wrap     *Wrap  // runs a command
	Single   bool   // long flags begin with one dash (find, go)
}

// Operands says what the words of a command that are no flags mean.
type Operands int

// What operands are.
const (
	Text       Operands = iota // text, or files that are read
	WriteAll                   // files that are written or deleted
	WriteLast                  // the last one is written
	TextThenIn                 // the first is text (a pattern), the others files that are read
)

// Lookup is what is known of a program by its base name.
func Lookup(name string) (Program, bool) {
	p, ok := table[name]
	return p, ok
}

// Find goes down from a program to the sub-command that words name: the facts,
// and how many words (with the flags before the sub-command) led there.
// globals are the words of flags that stood before a sub-command.
func Find(words []string) (p Program, used int, globals []string, ok bool) {
	if len(words) == 0 {
		return p, 0, nil, false
	}
	p, ok = table[words[0]]
	used = 1
	for ok && p.Subs != nil {
		at := used
		for at < len(words) && len(words[at]) > 1 && words[at][0] == '-' {
			if at+1 < len(words) {
				if sub, found := p.Subs[words[at]+" "+words[at+1]]; found {
					return sub, at + 2, globals, true
				}
			}
			if _, found := p.Subs[words[at]]; found {
				break
			}
			globals = append(globals, words[at])
			if TakesValue(p.Valued(), words[at]) && at+1 < len(words) {
				at++
				globals = append(globals, words[at])
			}
			at++
		}
		if at >= len(words) {
			if own, found := p.Subs[""]; found {
				return own, used, globals, true
			}
			return p, used, globals, p.Reads
		}
		sub, found := p.Subs[words[at]]
		if !found {
			if own, rest := p.Subs["*"]; rest {
				return own, used, globals, true
			}
			return Program{Subs: p.Subs}, used, globals, false
		}
		p, used = sub, at+1
	}
	return p, used, globals, ok
}

// Valued is the flags whose value is the next word.
func (p *Program) Valued() string {
	if p.Dirs == "" || p.Values == "" {
		return p.Values + p.Dirs
	}
	return p.Values + " " + p.Dirs
}

// TakesValue says whether the word is a flag of the list whose value is the
// next word: "-C", "--git-dir", a cluster that ends in a letter of the list.
func TakesValue(list, word string) bool {
	if strings.Contains(word, "=") && strings.HasPrefix(word, "--") {
		return false
	}
	for f := range strings.FieldsSeq(list) {
		if f == word {
			return true
		}
		if len(f) == 2 && len(word) > 2 && word[1] != '-' && strings.HasSuffix(word, f[1:]) &&
			isLetters(word[1:]) && !inMiddle(list, word) {
			return true
		}
	}
	return false
}

// inMiddle: an earlier letter of the cluster takes the rest as its value.
func inMiddle(list, word string) bool {
	for i := 1; i < len(word)-1; i++ {
		if hasShort(list, word[i]) {
			return true
		}
	}
	return false
}

func isLetters(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

func hasShort(list string, c byte) bool {
	for f := range strings.FieldsSeq(list) {
		if len(f) == 2 && f[0] == '-' && f[1] == c {
			return true
		}
	}
	return false
}

// HasFlag finds the flag of the list that a word is: exactly, in a cluster of
// short flags, with a value attached, or as an abbreviation of a long one.
func (p Program) HasFlag(list, word string) (flag string) {
	if list == "" || len(word) < 2 || word[0] != '-' || word == "--" {
		return ""
	}
	name, _, _ := strings.Cut(word, "=")
	if word[1] == '-' || p.Single {
		if p.Single {
			name = "-" + strings.TrimLeft(name, "-")
		}
		for f := range strings.FieldsSeq(list) {
			if f == name || !p.Single && len(name) > 3 && len(f) > 2 && strings.HasPrefix(f, name) {
				return f
			}
		}
		return ""
	}
	for i := 1; i < len(word); i++ {
		if hasShort(list, word[i]) {
			return "-" + word[i:i+1]
		}
		if hasShort(p.Values, word[i]) || hasShort(p.Dirs, word[i]) {
			return ""
		}
	}
	return ""
}

// Operand splits words into operands and the values of flags in list dirs.
// Flags and their values are left out.
func (p Program) SplitOperands(words []string) (operands []int, dirs []string) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w == "--":
			for j := i + 1; j < len(words); j++ {
				operands = append(operands, j)
			}
			return operands, dirs
		case len(w) > 1 && w[0] == '-':
			if TakesValue(p.Dirs, w) && i+1 < len(words) {
				i++
				dirs = append(dirs, words[i])
				continue
			}
			if f := p.HasFlag(p.Dirs, w); f != "" {
				dirs = append(dirs, strings.TrimPrefix(strings.TrimPrefix(w, f), "="))
				continue
			}
			if TakesValue(p.Values, w) {
				i++
			}
		default:
			operands = append(operands, i)
		}
	}
	return operands, dirs
}
