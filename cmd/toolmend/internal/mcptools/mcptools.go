// Package mcptools reads the tools of an MCP server, for the flag -tools.
package mcptools

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/mcp"
	"github.com/toolmend/toolmend/middleware"
)

// timeout is what a server may take from its start to the end of its list.
const timeout = 30 * time.Second

// prefix marks a command.
const prefix = "mcp:"

// Open reads the tools that name stands for: the tools of the MCP server at an http or https
// address, or of one that the command behind "mcp:" starts; otherwise the toolsets in a file.
// A server has 30 seconds, and a command writes to the standard error of the program. A server
// has some of the tools that a model had.
func Open(ctx context.Context, name string) (*recorded.Toolsets, error) {
	var transport sdk.Transport = &sdk.StreamableClientTransport{Endpoint: name, DisableStandaloneSSE: true}
	if command, ok := strings.CutPrefix(name, prefix); ok {
		words := strings.Fields(command)
		if len(words) == 0 {
			return nil, errors.New(`-tools: a command is missing behind "mcp:"`)
		}
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Stderr = os.Stderr
		ownGroup(cmd)
		defer func() {
			if cmd.Process != nil {
				killGroup(cmd) // a server that does not answer does not end with its input either
			}
		}()
		transport = &sdk.CommandTransport{Command: cmd, TerminateDuration: 3 * time.Second}
	} else if !strings.HasPrefix(name, "http://") && !strings.HasPrefix(name, "https://") {
		return recorded.OpenToolsets(name)
	}
	ctx, end := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the server did not list its tools within %v", timeout))
	defer end()
	sets, err := list(ctx, transport)
	if err == nil {
		return sets, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if u, e := url.Parse(name); e == nil {
		name = u.Redacted()
	}
	return nil, fmt.Errorf("tools of %s: %w", name, err)
}

// list returns the tools of a server.
func list(ctx context.Context, transport sdk.Transport) (*recorded.Toolsets, error) {
	server, err := mcp.Connect(ctx, transport, mcp.Options{ListTimeout: timeout, MaxTools: 10_000, MaxSchema: 1 << 20})
	if err != nil {
		return nil, err
	}
	defer server.Close()
	offered, _ := server.Tools(ctx) // its error is always nil
	if len(offered) == 0 {
		return nil, errors.New("the server has no tools")
	}
	var tools []middleware.Tool
	for _, t := range offered {
		tools = append(tools, t.Def)
	}
	return recorded.SomeTools(tools), nil
}
