// Command approval asks a person before it pays. A person never sees a payment that
// is not valid, what was shown is what is paid, and the person's own edits are
// validated, too. With -state the run is a file: leave at any question (end of
// input), and start the program again, even on another machine, to go on.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

func main() {
	state := flag.String("state", "", "the `FILE` that keeps the run; none: it is forgotten")
	flag.Parse()
	if err := run(context.Background(), os.Stdin, os.Stdout, *state); err != nil {
		log.Fatal(err)
	}
}

type payment struct {
	To    string `json:"to" jsonschema:"minLength=1"`
	Euros int    `json:"euros" jsonschema:"minimum=1,maximum=1000"`
}

func run(ctx context.Context, in io.Reader, out io.Writer, file string) error {
	pay := agentloop.NewTool("pay", "Pays a person.", func(_ context.Context, p payment) (agentloop.Result, error) {
		// A bank would get the Key of agentloop.CallFrom, so that not even a crash pays twice.
		fmt.Fprintf(out, "*** %d euros go to %s\n", p.Euros, p.To)
		return agentloop.Text(fmt.Sprintf("paid %d to %s", p.Euros, p.To)), nil
	}).NeedsApproval()
	// The chain and the loop come from one Validator: its rules hold for a person's edits, too.
	validator := argsvalidate.NewValidator(argsvalidate.Options{Rules: []argsvalidate.Rule{
		argsvalidate.Named("known payees", argsvalidate.FieldRule[string]{Path: "/to", Tools: []string{"pay"},
			Valid: func(to string) bool { return to != "Mallory" }, Message: "{value} is not on the list of payees"}),
	}})
	agent, err := agentloop.New(validator.Middleware()(model), agentloop.Options{
		Tools:      []agentloop.Tool{pay},
		Validator:  validator,
		Checkpoint: func(_ context.Context, s *agentloop.State) error { return save(file, s) },
	})
	if err != nil {
		return err
	}
	s, err := load(file)
	if err != nil {
		return err
	}
	for person := bufio.NewScanner(in); ; {
		switch err := agent.Run(ctx, s); {
		case err == nil:
			fmt.Fprintln(out, s.Answer())
			return nil
		case !errors.Is(err, agentloop.ErrPending):
			return err
		default:
			refused(out, err)
		}
		pending := s.Pending()
		decided, err := ask(person, out, s, pending[0].Call)
		if err != nil {
			return err
		}
		if !decided {
			fmt.Fprintf(out, "\n%d to decide. With -state FILE the next start goes on from here.\n", len(pending))
			return person.Err()
		}
	}
}

// ask puts one call before the person until there is a decision. It is false at
// the end of the input.
func ask(person *bufio.Scanner, out io.Writer, s *agentloop.State, call middleware.ToolCall) (bool, error) {
	for {
		fmt.Fprintf(out, "%s %s\n[a]pprove, [e]dit ARGUMENTS or [r]eject REASON? ", call.Name, call.Arguments)
		if !person.Scan() {
			return false, nil
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(person.Text()), " ")
		switch word {
		case "a", "approve":
			return true, s.Approve(call.ID)
		case "e", "edit":
			return true, s.Edit(call.ID, rest)
		case "r", "reject":
			return true, s.Reject(call.ID, rest)
		}
	}
}

// refused says why an edit does not run.
func refused(out io.Writer, err error) {
	var invalid *argsvalidate.Error
	if errors.As(err, &invalid) {
		for _, issue := range invalid.Verdicts[0].Issues {
			fmt.Fprintln(out, "No:", argsvalidate.Line(invalid.Verdicts[0].Call.Name, issue))
		}
	}
}
