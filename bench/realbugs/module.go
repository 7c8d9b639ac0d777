//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// errFetch is a module that the go command could not get.
var errFetch = errors.New("cannot be fetched")

// version is a module in the module cache.
type version struct {
	Dir, GoMod, Error string
}

func fetch(ctx context.Context, module, v string) (version, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+v)
	cmd.Dir = os.TempDir() // outside of every module
	var m version
	out, err := cmd.Output()
	if json.Unmarshal(out, &m) == nil && m.Error != "" {
		err = errors.New(m.Error)
	}
	if err != nil {
		return m, fmt.Errorf("%s@%s %w: %w", module, v, errFetch, err)
	}
	return m, nil
}

// files are names below a folder, and where they come from.
type files map[string]string

func (f files) from(dir string, names []string) files {
	for _, n := range names {
		f[n] = filepath.Join(dir, n)
	}
	return f
}

// lay puts a writable copy of m at dir, with other files in it.
func lay(ctx context.Context, dir string, m version, with files) error {
	if err := os.CopyFS(dir, os.DirFS(m.Dir)); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); errors.Is(err, fs.ErrNotExist) {
		with["go.mod"] = m.GoMod // made up by the go command, for a module older than modules
	}
	for name, from := range with {
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the modules that %s needs %w: %s", filepath.Base(dir), errFetch, bytes.TrimSpace(out))
	}
	return nil
}
