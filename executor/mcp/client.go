package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxMessage = 8 << 20 // bytes of one message of a server
	maxTools   = 200     // of a server
)

// Tool is one that a server lists.
type Tool struct {
	Name, Description string
	Schema            map[string]any
}

// Client is a connection to one server.
type Client struct {
	session *sdk.ClientSession
	tools   []Tool
}

// Connect shakes hands over a server's standard streams and asks for its tools.
// When ctx ends first, close the streams.
func Connect(ctx context.Context, out io.ReadCloser, in io.WriteCloser) (*Client, error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "harness", Version: "0.1"}, &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}})
	session, err := client.Connect(ctx, &sdk.IOTransport{Reader: newLines(out), Writer: in, MaxLineLength: 2 * maxMessage}, nil)
	if err != nil {
		return nil, err
	}
	c := &Client{session: session}
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, errors.Join(err, session.Close())
		}
		schema, _ := t.InputSchema.(map[string]any)
		if c.tools = append(c.tools, Tool{t.Name, t.Description, schema}); len(c.tools) == maxTools {
			break
		}
	}
	return c, nil
}

// Tools are those listed when the connection began.
func (c *Client) Tools() []Tool { return c.tools }

// Has says whether the server listed a tool.
func (c *Client) Has(tool string) bool {
	for _, t := range c.tools {
		if t.Name == tool {
			return true
		}
	}
	return false
}

// Call is what a tool answers: its text, and whether it says that it failed.
func (c *Client) Call(ctx context.Context, tool string, args map[string]any) (text string, failed bool, err error) {
	if args == nil {
		args = map[string]any{}
	}
	r, err := c.session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return "", false, err
	}
	var b strings.Builder
	for _, content := range r.Content {
		switch x := content.(type) {
		case *sdk.TextContent:
			b.WriteString(x.Text + "\n")
		case *sdk.EmbeddedResource:
			if x.Resource != nil {
				fmt.Fprintf(&b, "[resource %s]\n%s\n", x.Resource.URI, x.Resource.Text)
			}
		case *sdk.ResourceLink:
			fmt.Fprintf(&b, "[link to %s: %s]\n", x.URI, x.Name)
		default:
			fmt.Fprintf(&b, "[%T left out]\n", content)
		}
	}
	if b.Len() == 0 && r.StructuredContent != nil {
		data, err := json.Marshal(r.StructuredContent)
		if err != nil {
			return "", false, err
		}
		b.Write(data)
	}
	return b.String(), r.IsError, nil
}
