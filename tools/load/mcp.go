package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"time"
)

// The programs on stdio that this program can be.
const (
	roleMCP  = "mcp"  // role mcp: a server of MCP
	rolePipe = "pipe" // role pipe: runs role mcp, and copies bytes
)

// mcpList is the response of role mcp to a list of tools, and mcpCall a valid call
// of its tool. Their ids are numbers of equal length.
const (
	mcpList = `{"jsonrpc":"2.0","id":100000000,"result":{"tools":[{"name":"search","inputSchema":{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"},` +
		`"tags":{"type":"array","items":{"type":"string"}}},"required":["query"],"additionalProperties":false}}]}}`
	mcpAsk    = `{"jsonrpc":"2.0","id":100000000,"method":"tools/list"}`
	mcpCall   = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"search","arguments":{"query":"the quick brown fox","limit":%s,"tags":["a","b"]}}}`
	mcpResult = `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"found"}]}}`
)

// serveStdio is one of the programs on stdio, until its input ends.
func serveStdio(role string) error {
	if role == rolePipe {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		server := exec.Command(self, "role", roleMCP)
		server.Stdin, server.Stdout = io.MultiReader(os.Stdin), io.MultiWriter(os.Stdout) // so that this process copies
		return server.Run()
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		answer := mcpList
		if _, rest, _ := bytes.Cut(line, []byte(`"id":`)); !bytes.Contains(line, []byte("tools/list")) {
			answer = fmt.Sprintf(mcpResult, rest[:bytes.IndexByte(rest, ',')])
		}
		if _, err := os.Stdout.WriteString(answer + "\n"); err != nil {
			return err
		}
	}
}

// stdioTarget is a program on stdio that is measured.
type stdioTarget struct {
	name    string
	limit   string // the argument limit of its calls
	process process
	in      io.WriteCloser
	out     *bufio.Reader
	took    times
}

// measureMCP writes the table of a tools/call through toolmend mcp. It makes the
// calls one after the other, of each target in turn.
func measureMCP(ctx context.Context, s settings, out io.Writer) (err error) {
	self, err := os.Executable()
	if err != nil || s.gateway == "" {
		return err
	}
	targets := []*stdioTarget{
		{name: "the server", limit: "5", process: process{cmd: exec.CommandContext(ctx, self, "role", roleMCP)}},
		{name: "a bare pipe in front", limit: "5", process: process{cmd: exec.CommandContext(ctx, self, "role", rolePipe)}},
		{name: "toolmend mcp, valid calls", limit: "5", process: process{cmd: exec.CommandContext(ctx, s.gateway, "mcp", "--", self, "role", roleMCP)}},
		{name: "toolmend mcp, repaired calls", limit: `"5"`, process: process{cmd: exec.CommandContext(ctx, s.gateway, "mcp", "--", self, "role", roleMCP)}},
	}
	for _, t := range targets {
		if err := t.open(); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		defer func() { err = errors.Join(err, t.in.Close(), t.process.cmd.Wait()) }()
	}
	for block := range s.blocks + 1 {
		took := make([][]time.Duration, len(targets))
		for n := range s.rounds {
			for _, i := range rand.Perm(len(targets)) {
				d, err := targets[i].call(200_000_000 + block*s.rounds + n)
				if err != nil {
					return fmt.Errorf("%s: %w", targets[i].name, err)
				}
				took[i] = append(took[i], d)
			}
		}
		for i, t := range targets {
			if block > 0 { // the first one warms up
				t.took = append(t.took, took[i])
			}
		}
	}
	var b strings.Builder
	b.WriteString("\nA `tools/call` on stdio, one after the other:\n\n| | p50 | p99 | p50 x bare pipe | p99 x bare pipe | memory |\n|---|---|---|---|---|---|\n")
	for _, t := range targets {
		memory, _ := t.process.resident()
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", t.name, ms(t.took.quantile(0.5)), ms(t.took.quantile(0.99)),
			t.took.over(targets[1].took, 0.5), t.took.over(targets[1].took, 0.99), mb(memory))
	}
	_, err = io.WriteString(out, b.String())
	return err
}

// open starts the program, and lets it list its tools.
func (t *stdioTarget) open() (err error) {
	t.process.cmd.Env, t.process.cmd.Stderr = environment(), os.Stderr
	if t.in, err = t.process.cmd.StdinPipe(); err != nil {
		return err
	}
	stdout, err := t.process.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	t.out = bufio.NewReader(stdout)
	if err := t.process.cmd.Start(); err != nil {
		return err
	}
	return t.exchange(mcpAsk, mcpList)
}

// call makes a call, and returns how long it took.
func (t *stdioTarget) call(id int) (time.Duration, error) {
	sent, want := fmt.Sprintf(mcpCall, id, t.limit), fmt.Sprintf(mcpResult, fmt.Sprint(id))
	began := time.Now()
	err := t.exchange(sent, want)
	return time.Since(began), err
}

func (t *stdioTarget) exchange(sent, want string) error {
	if _, err := io.WriteString(t.in, sent+"\n"); err != nil {
		return err
	}
	got, err := t.out.ReadString('\n')
	if err == nil && strings.TrimSuffix(got, "\n") != want {
		return fmt.Errorf("got %.200q, want %.200q", got, want)
	}
	return err
}
