package main

import (
	"io"
	"os"
	"path/filepath"
)

func userNotes() string {
	text, err := noteFile(configDir() + "/AGENTS.md")
	if err != nil {
		return ""
	}
	return text
}

// noteFile reads a file of notes, as far as notes may go.
func noteFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 64<<10))
	return string(data), err
}

// above is the folders of the repository that dir is in, from its root down to
// the one above dir; none where dir is no part of one. A submodule's .git, which
// is a file, and an empty .git do not make a root.
func above(dir string) []string {
	var list []string
	for at := dir; ; at = filepath.Dir(at) {
		if at != dir {
			list = append([]string{at}, list...)
		}
		if _, err := os.Stat(filepath.Join(at, ".git", "HEAD")); err == nil {
			return list
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}
