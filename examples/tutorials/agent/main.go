// Command agent is the program of docs/tutorials/agent.md: an agent with a real model,
// streaming, the tools of an MCP server, approval by a person, and a run that can stop
// and go on in another process.
//
//	OPENAI_API_KEY=… go run . -state run.json -mcp "npx -y @modelcontextprotocol/server-filesystem ." "Which files are here?"
//
// ANTHROPIC_API_KEY or MODEL_URL (with MODEL) choose another model. Without any of
// them a scripted model answers, inside the process. Without -mcp the server is this
// program itself, started once more.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolmend/toolmend"
	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/mcp"
	"github.com/toolmend/toolmend/middleware"
)

func main() {
	file := flag.String("state", "", "the `FILE` that keeps the run; none: it is forgotten")
	command := flag.String("mcp", "", "the `COMMAND` of an MCP server on stdio; none: this program")
	serve := flag.Bool("notes", false, "be an MCP server with one tool, list_notes")
	flag.Parse()
	ctx := context.Background()
	if *serve {
		if err := notes().Run(ctx, &sdk.StdioTransport{}); err != nil {
			log.Fatal(err)
		}
		return
	}
	question := "Read my notes, and mail Ann what I promised her."
	if flag.NArg() > 0 {
		question = strings.Join(flag.Args(), " ")
	}
	if err := run(ctx, os.Stdin, os.Stdout, model(os.Getenv), server(*command), *file, question); err != nil {
		log.Fatal(err)
	}
}

// region: model
// model returns a call of the model for which the environment has a key or an address.
func model(getenv func(string) string) middleware.ModelCall {
	switch {
	case getenv("OPENAI_API_KEY") != "":
		return toolmend.OpenAI(toolmend.Endpoint{Model: "gpt-5-mini", Key: getenv("OPENAI_API_KEY")})
	case getenv("ANTHROPIC_API_KEY") != "":
		return toolmend.Anthropic(toolmend.Endpoint{Model: "claude-sonnet-5", Key: getenv("ANTHROPIC_API_KEY")})
	case getenv("MODEL_URL") != "": // llama.cpp, vLLM, LM Studio, Ollama: http://127.0.0.1:11434/v1
		return toolmend.Compatible(toolmend.Endpoint{Model: getenv("MODEL"), URL: getenv("MODEL_URL")})
	}
	return offline
}

// endregion

// region: tool
type mail struct {
	To      string `json:"to" jsonschema:"pattern=@"`
	Subject string `json:"subject,omitempty"`
	Text    string `json:"text" jsonschema:"minLength=1"`
}

// sendMail is a tool whose calls a person approves. Its JSON Schema comes from the struct.
func sendMail(out io.Writer) agentloop.Tool {
	return agentloop.NewTool("send_mail", "Sends a mail.", func(_ context.Context, m mail) (agentloop.Result, error) {
		fmt.Fprintf(out, "*** to %s: %s\n", m.To, m.Text)
		return agentloop.Text("sent"), nil
	}).NeedsApproval()
}

// endregion

// region: server
// server returns how to start the MCP server: a command, or this program.
func server(command string) sdk.Transport {
	if command == "" {
		self, err := os.Executable()
		if err != nil {
			log.Fatal(err)
		}
		return &sdk.CommandTransport{Command: exec.Command(self, "-notes")}
	}
	words := strings.Fields(command)
	return &sdk.CommandTransport{Command: exec.Command(words[0], words[1:]...)}
}

// endregion

func run(ctx context.Context, in io.Reader, out io.Writer, model middleware.ModelCall, server sdk.Transport, file, question string) error {
	// region: agent
	files, err := mcp.Connect(ctx, server, mcp.Options{})
	if err != nil {
		return err
	}
	defer files.Close()
	validator := argsvalidate.NewValidator(argsvalidate.Options{}) // validates calls, and what a person edits
	call := toolmend.Stack(toolmend.Options{Validator: validator})(model)
	agent, err := agentloop.New(call, agentloop.Options{
		Tools:      []agentloop.Tool{sendMail(out)},
		Source:     files.Tools, // the tools of the MCP server
		Validator:  validator,
		Checkpoint: func(_ context.Context, s *agentloop.State) error { return save(file, s) },
	})
	// endregion
	if err != nil {
		return err
	}
	s, err := load(file, question)
	if err != nil {
		return err
	}
	// region: stream
	s.Sink = func(e middleware.Event) error {
		switch e.Kind {
		case middleware.EventText:
			fmt.Fprint(out, e.Text)
		case middleware.EventReset: // the model is asked again: what it said does not count
			fmt.Fprintln(out, " [taken back]")
		case middleware.EventToolCall:
			fmt.Fprintf(out, "\n-> %s %s\n", e.Call.Name, e.Call.Arguments)
		}
		return nil
	}
	// endregion
	// region: approve
	for person := bufio.NewScanner(in); ; {
		err := agent.Run(ctx, s)
		if !errors.Is(err, agentloop.ErrPending) {
			fmt.Fprintln(out)
			return err // nil: the model has answered
		}
		pending := s.Pending()[0]
		if pending.Problem != "" { // the last edit was refused
			fmt.Fprintln(out, "No:", pending.Problem)
		}
		fmt.Fprintf(out, "%s %s\n[a]pprove, [e]dit ARGUMENTS or [r]eject REASON? ", pending.Call.Name, pending.Call.Arguments)
		if !person.Scan() { // the end of the input: the run goes on at the next start
			fmt.Fprintln(out)
			return person.Err()
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(person.Text()), " ")
		switch word {
		case "a":
			err = s.Approve(pending.Call.ID)
		case "e":
			err = s.Edit(pending.Call.ID, rest)
		case "r":
			err = s.Reject(pending.Call.ID, rest)
		default:
			continue
		}
		if err != nil {
			return err
		}
	}
	// endregion
}

// region: state
// load reads the run from its file, or starts one.
func load(file, question string) (*agentloop.State, error) {
	if file != "" {
		s, err := agentloop.LoadFile(file)
		if !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
	}
	return agentloop.NewState(middleware.User(question)), nil
}

// save writes the run to its file, if it has one.
func save(file string, s *agentloop.State) error {
	if file == "" {
		return nil
	}
	return agentloop.SaveFile(file, s)
}

// endregion
