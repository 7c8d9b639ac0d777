package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"
)

// asServer makes the test binary an MCP server.
const asServer = "__mcp_server"

func serveMCP() {
	type args struct {
		Text string `json:"text"`
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "trial", Version: "1"}, nil)
	tool := func(name string, f func(string) (string, error)) {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: "The tool " + name}, func(_ context.Context, _ *mcp.CallToolRequest, a args) (*mcp.CallToolResult, any, error) {
			text, err := f(a.Text)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, err
		})
	}
	tool("echo", func(text string) (string, error) {
		fmt.Println("not a message") // on the stream of the protocol
		return "echo of " + text, nil
	})
	tool("crash", func(string) (string, error) {
		fmt.Fprintln(os.Stderr, "out of cheese")
		os.Exit(3)
		return "", nil
	})
	tool("huge", func(string) (string, error) { return strings.Repeat("x", 9<<20), nil })
	tool("long", func(string) (string, error) { return strings.Repeat("line\n", 40_000), nil })
	tool("fails", func(string) (string, error) { return "", fmt.Errorf("no such thing") })
	tool("write", func(text string) (string, error) {
		err := os.WriteFile(text, []byte("w"), 0o644)
		return fmt.Sprint("wrote: ", err), nil
	})
	tool("forbidden", func(string) (string, error) { return "it ran", nil })
	tool("look", func(text string) (string, error) {
		data, err := os.ReadFile(text)
		return fmt.Sprintf("saw %q %v", data, err), nil
	})
	if len(os.Args) > 2 && os.Args[2] == "many" {
		tool("a.b", func(string) (string, error) { return "the one of the two", nil })
		tool("a_b", func(string) (string, error) { return "the other of the two", nil })
		s.AddTool(&mcp.Tool{Name: "big", InputSchema: map[string]any{"type": "object", "description": strings.Repeat("x", 29<<10)}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// server FILE copies the test binary to where a sandbox sees it.
func server(ts *testscript.TestScript, _ bool, args []string) {
	self, err := os.Executable()
	ts.Check(err)
	data, err := os.ReadFile(self)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o755))
}
