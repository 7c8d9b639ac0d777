package policy

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"harness/executor/policy/shell"
)

var (
	allowList = regexp.MustCompile(`(?m)^[ \t]*allow[ \t]*=[ \t]*\[`)
	permTable = regexp.MustCompile(`(?m)^[ \t]*\[permissions\][^\n]*\n?`)
)

// SaveRule adds a rule to the allow list of a TOML file and keeps the rest.
func SaveRule(file, text string) error {
	if _, err := parseRule(text, allow); err != nil {
		return err
	}
	mode := os.FileMode(0o600)
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
	}
	old, err := parseFile(file, data, false)
	if err != nil {
		return err
	}
	for _, r := range old {
		if r.list == allow && r.text == text {
			return nil
		}
	}
	quoted := strconv.Quote(text)
	var out []byte
	if t := permTable.FindIndex(data); t == nil {
		out = append(bytes.TrimRight(data, "\n"), []byte("\n\n[permissions]\nallow = ["+quoted+"]\n")...)
		out = bytes.TrimLeft(out, "\n")
	} else if a := allowList.FindIndex(data[t[1]:]); a != nil {
		at := t[1] + a[1]
		out = append(append(append(out, data[:at]...), []byte(quoted+", ")...), data[at:]...)
	} else {
		out = append(append(append(out, data[:t[1]]...), []byte("allow = ["+quoted+"]\n")...), data[t[1]:]...)
	}
	if now, err := parseFile(file, out, false); err != nil || len(now) != len(old)+1 {
		return fmt.Errorf("%s: the rule %s could not be added; add it to allow in [permissions] by hand", file, text)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	tmp := file + ".new"
	if err := os.WriteFile(tmp, out, mode); err != nil {
		return err
	}
	return os.Rename(tmp, file)
}

// examples checks the examples that a rule carries.
func (p *Policy) examples(r rule) error {
	hit := func(text string) bool {
		if r.tool != "Bash" {
			t, err := (&judging{Policy: p}).locate(text, p.root)
			return err == nil && (r.any || r.path.covers(t.named, false))
		}
		s := shell.Analyse(text, shell.Env{Cwd: p.root, Home: p.home})
		for i := range s.Commands {
			if c := newCommand(&s.Commands[i]); len(c.words) > 0 && (r.list == allow && r.allows(c) || r.list != allow && r.forbids(c) == 1) {
				return true
			}
		}
		return false
	}
	for _, text := range r.match {
		if !hit(text) {
			return fmt.Errorf("%s: the rule %s does not match its example %q", r.source, r.text, text)
		}
	}
	for _, text := range r.notMatch {
		if hit(text) {
			return fmt.Errorf("%s: the rule %s matches %q, which it should not", r.source, r.text, text)
		}
	}
	return nil
}
