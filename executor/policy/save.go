package policy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

var (
	allowList = regexp.MustCompile(`(?m)^[ \t]*allow[ \t]*=[ \t]*\[`)
	permTable = regexp.MustCompile(`(?m)^[ \t]*\[permissions\][^\n]*\n?`)
)

// SaveRule adds a rule to the allow list of a TOML file and keeps the rest. A
// file that is a link stays one: what it leads to is changed. Of two savers at
// once none loses its rule.
func SaveRule(file, text string) error {
	if _, err := parseRule(text, allow); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	} else if _, there := os.Lstat(file); there == nil {
		return fmt.Errorf("%s is a link to nowhere: %w", file, err)
	}
	unlock, err := lockFolder(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer unlock()
	mode := os.FileMode(0o600)
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
	}
	out, err := withRule(file, data, text)
	if err != nil || out == nil {
		return err
	}
	return replace(file, out, mode)
}

// withRule is a file's text with one more allow rule, nil where it has it.
func withRule(file string, data []byte, text string) (out []byte, err error) {
	old, err := parseFile(file, data, false)
	if err != nil {
		return nil, err
	}
	for _, r := range old.rules {
		if r.list == allow && r.text == text {
			return nil, nil
		}
	}
	quoted := strconv.Quote(text)
	if t := permTable.FindIndex(data); t == nil {
		out = append(bytes.TrimRight(data, "\n"), []byte("\n\n[permissions]\nallow = ["+quoted+"]\n")...)
		out = bytes.TrimLeft(out, "\n")
	} else if a := allowList.FindIndex(data[t[1]:]); a != nil {
		at := t[1] + a[1]
		out = append(append(append(out, data[:at]...), []byte(quoted+", ")...), data[at:]...)
	} else {
		out = append(append(append(out, data[:t[1]]...), []byte("allow = ["+quoted+"]\n")...), data[t[1]:]...)
	}
	if now, err := parseFile(file, out, false); err != nil || len(now.rules) != len(old.rules)+1 {
		return nil, fmt.Errorf("%s: the rule %s could not be added; add it to allow in [permissions] by hand", file, text)
	}
	return out, nil
}

// replace puts a new version in place whole, or not at all, also where the
// power goes.
func replace(file string, data []byte, mode os.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
