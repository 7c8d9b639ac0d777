package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// trustCmd records a folder and the digest of its config: a config that
// changed since is not trusted any more.
type trustCmd struct {
	Dir string `arg:"" optional:"" default:"." help:"The folder."`
}

func trustFile() string { return filepath.Join(stateDir(), "trusted") }

func (t *trustCmd) Run() error {
	dir, err := folder(t.Dir)
	if err != nil {
		return &exit{42, err}
	}
	line, err := trustLine(dir)
	if err != nil {
		return &exit{42, fmt.Errorf("there is nothing to trust: %w", err)}
	}
	if err := os.MkdirAll(stateDir(), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(trustFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	if err = errors.Join(err, f.Close()); err == nil {
		fmt.Println("trusted as it is now:", projectConfig(dir))
	}
	return err
}

func projectConfig(dir string) string { return filepath.Join(dir, ".harness", "config.toml") }

func trustLine(dir string) (string, error) {
	data, err := os.ReadFile(projectConfig(dir))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]) + " " + dir, nil
}

// trustedConfig is the folder's config file if the user trusted it as it is, else "".
func trustedConfig(dir string) string {
	line, err := trustLine(dir)
	if err != nil {
		return ""
	}
	list, err := os.ReadFile(trustFile())
	if err == nil {
		for l := range strings.Lines(string(list)) {
			if strings.TrimSuffix(l, "\n") == line {
				return projectConfig(dir)
			}
		}
	}
	fmt.Fprintf(os.Stderr, "harness: %s is not trusted and does not count; harness trust lets it\n", projectConfig(dir))
	return ""
}
