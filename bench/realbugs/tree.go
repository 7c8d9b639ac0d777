//go:build linux

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// tree is every file, folder and link below a folder: its kind, mode and content.
type tree map[string]string

func look(dir string) (tree, error) {
	t := tree{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrPermission) && d != nil && d.IsDir():
			return fs.SkipDir // the folder itself is in already
		case err != nil:
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var content []byte
		switch {
		case info.Mode().IsRegular():
			content, err = os.ReadFile(path)
		case info.Mode()&fs.ModeSymlink != 0:
			var to string
			to, err = os.Readlink(path)
			content = []byte(to)
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		t[rel] = fmt.Sprintf("%v %x", info.Mode(), sha256.Sum256(content))
		return err
	})
	return t, err
}

// differ lists the paths that are not the same in both.
func differ(a, b tree) []string {
	var paths []string
	for p := range a {
		if a[p] != b[p] {
			paths = append(paths, p)
		}
	}
	for p := range b {
		if _, ok := a[p]; !ok {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return paths
}
