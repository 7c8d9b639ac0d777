// Package mcp speaks to MCP servers for the executor: it reads which there are,
// and calls their tools. It starts nothing: whoever connects gives it the
// streams of a server that runs in the sandbox. What a server sends is data,
// bounded in size, and no line of it that is not JSON-RPC counts.
package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Server is one entry of mcpServers.
type Server struct {
	Name    string
	Command string
	Args    []string
	Env     map[string]string
}

var (
	serverName = regexp.MustCompile(`^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$`)
	notOfName  = regexp.MustCompile(`[^A-Za-z0-9_-]`)
)

// Load reads a file in the form of .mcp.json, {"mcpServers": {NAME: {"command",
// "args", "env"}}}, as https://code.claude.com/docs/en/mcp has it. No file is no servers.
func Load(file string) ([]Server, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var f struct {
		Servers map[string]struct {
			Type, Command, URL string
			Args               []string
			Env                map[string]string
		} `json:"mcpServers"`
	}
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&f); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var list []Server
	for _, name := range slices.Sorted(maps.Keys(f.Servers)) {
		s := f.Servers[name]
		switch {
		case !serverName.MatchString(name) || len(name) > 32:
			return nil, fmt.Errorf("%s: %q is no name of a server: at most 32 letters, digits, '-' and single '_'", file, name)
		case s.URL != "" || s.Type != "" && s.Type != "stdio":
			return nil, fmt.Errorf("%s: %s: only servers with a command can be used; take it out", file, name)
		case s.Command == "":
			return nil, fmt.Errorf("%s: %s has no command", file, name)
		}
		list = append(list, Server{Name: name, Command: s.Command, Args: s.Args, Env: s.Env})
	}
	return list, nil
}

// Name is a tool as rules and models name it: mcp__SERVER__TOOL.
func Name(server, tool string) string {
	return "mcp__" + server + "__" + strings.Trim(notOfName.ReplaceAllString(tool, "_"), "_")
}
