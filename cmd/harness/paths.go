package main

import (
	"os"
	"path/filepath"
)

// stateDir is $XDG_STATE_HOME/harness; the executor's part and the planner's
// lie side by side in it.
func stateDir() string {
	return filepath.Join(xdg("XDG_STATE_HOME", ".local/state"), "harness")
}

func sessionsDir() string { return filepath.Join(stateDir(), "sessions") }
func executorDir() string { return filepath.Join(stateDir(), "executor") }

func cacheDir() string { return filepath.Join(xdg("XDG_CACHE_HOME", ".cache"), "harness") }

func configDir() string  { return filepath.Join(xdg("XDG_CONFIG_HOME", ".config"), "harness") }
func userConfig() string { return filepath.Join(configDir(), "config.toml") }

func xdg(name, below string) string {
	if d := os.Getenv(name); filepath.IsAbs(d) {
		return d
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = os.TempDir()
	}
	return filepath.Join(home, below)
}

// folder is a workspace as an absolute path without links.
func folder(dir string) (string, error) {
	if dir == "" {
		dir = "."
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}
