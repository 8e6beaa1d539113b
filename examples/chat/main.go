// Command chat answers questions on a terminal or from a pipe, with a
// calculator and a search. It is langchain-mini grown up: follow-ups are
// rewritten into questions that stand alone, arguments are validated, what goes
// wrong is an error reply to the model, and nothing runs for ever.
//
//	printf 'How high is Mont Blanc?\nAnd in feet?\n' | go run .
//
// A scripted model and an index of a few facts make it run offline. With
// SERPAPI_KEY set, the search is a real one; a model of your own goes where
// textModel is.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/textcall"
)

func main() {
	native := flag.Bool("native", false, "use a model with tool calls of its own, not one that writes text")
	flag.Parse()
	model := textcall.Model(textcall.Options{}, textModel) // ReAct
	if *native {
		model = nativeModel
	}
	search := searcher(offline)
	if key := os.Getenv("SERPAPI_KEY"); key != "" {
		search = web(http.DefaultClient, "https://serpapi.com/search.json", key)
	}
	info, err := os.Stdin.Stat()
	c := chat{out: os.Stdout, echo: err != nil || info.Mode()&os.ModeCharDevice == 0}
	if err := c.run(context.Background(), os.Stdin, model, search); err != nil {
		log.Fatal(err)
	}
}

type chat struct {
	out  io.Writer
	echo bool // the input is not shown: questions come from a pipe
}

const remembered = 5 // questions and answers that a follow-up may be about

func (c chat) run(ctx context.Context, in io.Reader, model middleware.ModelCall, search searcher) error {
	call := middleware.Layers{
		middleware.LayerValidate: argsvalidate.New(argsvalidate.Options{}),
		middleware.LayerRetry:    retry.New(retry.Options{}),
	}.Chain()(model)
	agent, err := agentloop.New(call, agentloop.Options{
		Tools:    []agentloop.Tool{searchTool(search), calculator()},
		MaxSteps: 10,
	})
	if err != nil {
		return err
	}
	var history []string
	lines := bufio.NewScanner(in)
	for fmt.Fprint(c.out, "Q: "); lines.Scan(); fmt.Fprint(c.out, "\nQ: ") {
		question := strings.TrimSpace(lines.Text())
		if c.echo {
			fmt.Fprintln(c.out, question)
		}
		if question == "" {
			continue
		}
		question, answer, err := c.answer(ctx, call, agent, history, question)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			fmt.Fprintln(c.out, "Sorry:", err) // one question failed; the conversation goes on
			continue
		}
		fmt.Fprintln(c.out, "A:", answer)
		history = append(history, "Q: "+question+"\nA: "+answer+"\n")
		history = history[max(0, len(history)-remembered):]
	}
	fmt.Fprintln(c.out)
	return lines.Err()
}

// answer returns the question as it was asked of the agent, and its answer. It
// prints the tools that were used.
func (c chat) answer(ctx context.Context, call middleware.ModelCall, agent *agentloop.Agent, history []string, question string) (asked, answer string, err error) {
	asked, err = condense(ctx, call, history, question)
	if err != nil {
		return "", "", err
	}
	if asked != question {
		fmt.Fprintf(c.out, "   (%s)\n", asked)
	}
	s := agentloop.NewState(middleware.User(asked))
	for step, err := range agent.Steps(ctx, s) {
		if err != nil {
			return "", "", err
		}
		for _, r := range step.Results {
			first, _, _ := strings.Cut(r.Text, "\n")
			fmt.Fprintf(c.out, "   %s %s: %s\n", r.Call.Name, r.Call.Arguments, first)
		}
	}
	return asked, s.Answer(), nil
}
