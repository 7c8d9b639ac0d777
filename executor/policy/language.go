package policy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	sedSubst  = regexp.MustCompile(`^[0-9,$ ]*s(.)`)
	sedPlain  = regexp.MustCompile(`^(?:[0-9]+|\$|/[^/]*/)?(?:,(?:[0-9]+|\$|/[^/]*/|\+[0-9]+))? *!? *[pdqQ=nNgGhHxDPl]?$`)
	awkText   = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|#[^\n]*`)
	awkRegexp = regexp.MustCompile(`(^|[{(,;!~&|\n]|\s)/(?:[^/\\]|\\.)*/`)
	awkStarts = regexp.MustCompile(`system|getline|@|[^|]\|[^|]`)
	sedStarts = regexp.MustCompile(`(^|[;{}\n0-9$/! \t])e([ \t\n;}]|$)|s(.).*\W[a-zA-Z0-9]*e[a-zA-Z0-9]*\s*([;}\n]|$)`)
	awkRuns   = regexp.MustCompile(`system|getline|@|[^|]\|[^|]|print[^;}\n]*>`)
)

// harmless: a program in a small language that neither writes nor runs anything.
func harmless(language, code string) bool {
	switch language {
	case "sed":
		return harmlessSed(code)
	case "awk":
		code = awkRegexp.ReplaceAllString(awkText.ReplaceAllString(code, "T"), "$1 R")
		return !awkRuns.MatchString(" " + code + " ")
	}
	return true
}

// starts says that a program in a small language runs another: a rule that
// names its interpreter is not meant for that.
func starts(language, code string) string {
	if language == "awk" && awkStarts.MatchString(awkText.ReplaceAllString(code, `"`)) || language == "sed" && sedStarts.MatchString(code) {
		return "its program starts another"
	}
	return ""
}

func harmlessSed(code string) bool {
	for rest := strings.TrimSpace(code); rest != ""; {
		m := sedSubst.FindStringSubmatchIndex(rest)
		if m == nil {
			one, more, _ := strings.Cut(rest, ";")
			if !sedPlain.MatchString(strings.TrimSpace(one)) {
				return false
			}
			rest = strings.TrimSpace(more)
			continue
		}
		sep, at := rest[m[2]], 0
		i := m[3]
		for ; i < len(rest) && at < 2; i++ {
			if rest[i] == '\\' {
				i++
			} else if rest[i] == sep {
				at++
			}
		}
		if at < 2 || i > len(rest) {
			return false
		}
		flags, more, _ := strings.Cut(rest[i:], ";")
		if strings.Trim(flags, "gpiIM0123456789 ") != "" {
			return false
		}
		rest = strings.TrimSpace(more)
	}
	return true
}

// dashed: a pattern in one of the folders may match a name that is a flag.
func dashed(dirs []string) bool {
	for _, d := range dirs {
		entries, err := os.ReadDir(d)
		if err != nil {
			return true
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "-") {
				return true
			}
		}
	}
	return dirs == nil
}

var gitRuns = regexp.MustCompile(`(?im)^\s*(fsmonitor|pager|sshcommand|hookspath|external|textconv|command|difffilter|askpass|worktree|path|program|clean|smudge|process)\s*=\s*(.*)$`)

// planted finds settings of a repository that make git run programs.
func (p *judging) planted(dirs []string) string {
	for _, d := range dirs {
		why, known := p.repos[d]
		if !known {
			why = plantedIn(d, p.root)
			if p.repos == nil {
				p.repos = map[string]string{}
			}
			p.repos[d] = why
		}
		if why != "" {
			return why
		}
	}
	return ""
}

func plantedIn(d, root string) string {
	for {
		config := filepath.Join(d, ".git", "config")
		if _, err := os.Stat(filepath.Join(d, "HEAD")); err == nil {
			if _, err := os.Stat(filepath.Join(d, "objects")); err == nil {
				return "the folder is itself a bare repository, whose settings git obeys"
			}
		}
		if b, err := os.ReadFile(config); err == nil {
			for _, m := range gitRuns.FindAllStringSubmatch(string(b), -1) {
				if v := strings.ToLower(strings.TrimSpace(m[2])); v != "true" && v != "false" && v != "cat" && !strings.HasPrefix(v, "git-lfs ") {
					return "the repository's settings make git run a program (" + m[1] + ")"
				}
			}
			return ""
		}
		if d == root || filepath.Dir(d) == d {
			return ""
		}
		d = filepath.Dir(d)
	}
}
