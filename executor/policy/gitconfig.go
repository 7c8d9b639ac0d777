package policy

import (
	"path"
	"slices"
	"strings"

	"harness/executor/policy/programs"
)

// Setting is one line of a git configuration: section and name in lower case,
// the sub-section as written.
type Setting struct{ Key, Value string }

// ParseGitConfig reads a configuration as git does (git-config(1), "Syntax").
// What git would refuse is read as far as it goes, and whole is false.
func ParseGitConfig(text string) (list []Setting, whole bool) {
	text = strings.TrimPrefix(text, "\ufeff")
	section := ""
	for text != "" {
		text = strings.TrimLeft(text, " \t\r\n\f\v")
		switch {
		case text == "":
		case text[0] == '#' || text[0] == ';':
			_, text, _ = strings.Cut(text, "\n")
		case text[0] == '[':
			var ok bool
			if section, text, ok = gitSection(text[1:]); !ok {
				return list, false
			}
		default:
			n := strings.IndexFunc(text, func(r rune) bool {
				return !(r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
			})
			if n < 0 {
				n = len(text)
			}
			if n == 0 || section == "" {
				return list, false
			}
			name, value := strings.ToLower(text[:n]), "true"
			text = strings.TrimLeft(text[n:], " \t")
			if strings.HasPrefix(text, "=") {
				value, text = gitValue(text[1:])
			}
			list = append(list, Setting{section + "." + name, value})
		}
	}
	return list, true
}

// gitSection reads what stands behind the bracket of a section.
func gitSection(text string) (section, rest string, ok bool) {
	n := strings.IndexAny(text, "] \t\"\n")
	if n < 0 {
		return "", "", false
	}
	section, text = strings.ToLower(text[:n]), strings.TrimLeft(text[n:], " \t")
	if strings.HasPrefix(text, "\"") {
		var sub strings.Builder
		for i := 1; i < len(text); i++ {
			switch c := text[i]; {
			case c == '\n':
				return "", "", false
			case c == '\\' && i+1 < len(text):
				i++
				sub.WriteByte(text[i])
				continue
			case c == '"':
				rest, ok = strings.CutPrefix(text[i+1:], "]")
				return section + "." + sub.String(), rest, ok
			default:
				sub.WriteByte(c)
			}
		}
		return "", "", false
	}
	rest, ok = strings.CutPrefix(text, "]")
	return section, rest, ok
}

// gitValue reads a value to the end of its line, or of the lines that a
// backslash joins.
func gitValue(text string) (value, rest string) {
	var v strings.Builder
	quoted, blanks := false, ""
	text = strings.TrimLeft(text, " \t\r")
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\n':
			return v.String(), text[i+1:]
		case c == '\\' && i+1 == len(text): // joined with nothing
		case c == '\\':
			i++
			v.WriteString(blanks)
			blanks = ""
			switch text[i] {
			case '\n':
			case '\r':
				if i+1 < len(text) && text[i+1] == '\n' {
					i++
				}
			case 'n':
				v.WriteByte('\n')
			case 'b':
				v.WriteByte('\b')
			case 't':
				v.WriteByte('\t')
			default:
				v.WriteByte(text[i])
			}
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '#' || c == ';'):
			_, rest, _ = strings.Cut(text[i:], "\n")
			return v.String(), rest
		case !quoted && (c == ' ' || c == '\t' || c == '\r'):
			blanks += string(c)
		default:
			v.WriteString(blanks)
			blanks = ""
			v.WriteByte(c)
		}
	}
	return v.String(), ""
}

// StartsPrograms says whether a setting makes git run a program that it names,
// or read settings or hooks from elsewhere.
func (s Setting) StartsPrograms() bool {
	section, name := s.Key, ""
	if i := strings.LastIndexByte(s.Key, '.'); i >= 0 {
		section, name = s.Key[:i], s.Key[i+1:]
	}
	section, sub, _ := strings.Cut(section, ".")
	value := strings.TrimSpace(s.Value)
	for line := range strings.Lines(programs.GitStarts) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != section || !slices.ContainsFunc(f[1:], func(n string) bool {
			ok, _ := path.Match(n, name)
			return ok
		}) {
			continue
		}
		low := strings.ToLower(value)
		switch {
		case low == "" || low == "true" || low == "false" || low == "yes" || low == "no" || low == "on" || low == "off" || low == "0" || low == "1":
			return false
		case has(programs.GitHarmlessValues, low), strings.HasPrefix(low, "git-lfs ") && sub == "lfs":
			return false
		}
		return true
	}
	switch {
	case section == "alias":
		return !harmlessAlias(value)
	case section == "submodule" && name == "update":
		return strings.HasPrefix(value, "!")
	case section == "remote" && (name == "url" || name == "pushurl") || section == "url":
		return strings.Contains(s.Key+" "+value, "::")
	case section == "protocol":
		return value != "never"
	}
	return false
}

// harmlessAlias: another name of a sub-command, or a form of one that only reads.
func harmlessAlias(value string) bool {
	words, plain := plainWords("git " + value)
	if !plain || len(words) < 2 || strings.HasPrefix(words[1], "-") {
		return false
	}
	facts, used, _, known := programs.Find(words)
	if !known {
		return false
	}
	for _, w := range words[min(used, len(words)):] {
		if facts.HasFlag(facts.Runs, w) != "" || !facts.Reads && !strings.HasPrefix(w, "-") {
			return false
		}
	}
	return true
}
