// Command ownloop is the program of docs/tutorials/own-loop.md: a loop on OpenAI's
// SDK that exists already, with Toolmend as one option of the client.
//
//	OPENAI_API_KEY=… go run .
//
// Without the variable a scripted model answers, inside the process. With PRINT_SPANS=1
// the program prints its spans.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/toolmend/toolmend"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/budget"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/tracing"
	"github.com/toolmend/toolmend/transport"
)

func main() {
	ctx := context.Background()
	stop := func(context.Context) error { return nil }
	if os.Getenv("PRINT_SPANS") != "" {
		var err error
		if stop, err = printSpans(os.Stdout); err != nil {
			log.Fatal(err)
		}
	}
	err := start(ctx, os.Stdout, slog.New(slog.NewTextHandler(os.Stderr, nil)), os.Getenv("OPENAI_API_KEY"))
	if err = errors.Join(err, stop(ctx)); err != nil {
		log.Fatal(err)
	}
}

// start asks one question, of the scripted model if there is no key.
func start(ctx context.Context, out io.Writer, logger *slog.Logger, key string) error {
	var model []middleware.Middleware
	if key == "" {
		model = append(model, offline)
	}
	// region: spend
	ctx, spent := budget.With(ctx, budget.Limits{ModelCalls: 20, Tokens: 50_000})
	answer, err := loop(ctx, out, newClient(key, logger, model...), "Book a table at Maaemo for four, tonight at half past seven.")
	s := spent.Spent()
	fmt.Fprintf(out, "%d model calls, %d tokens\n", s.ModelCalls, s.Usage.InputTokens+s.Usage.OutputTokens)
	// endregion
	if err != nil {
		return cause(err)
	}
	fmt.Fprintln(out, answer)
	return nil
}

// region: client
// newClient returns a client whose calls are valid. model is for tests only: a script in
// the place of the provider.
func newClient(key string, logger *slog.Logger, model ...middleware.Middleware) openai.Client {
	stack := toolmend.Stack(toolmend.Options{
		Validator: argsvalidate.NewValidator(argsvalidate.Options{Rules: rules}),
		Tracing:   tracing.Options{Logger: logger, Provider: "openai"},
	})
	return openai.NewClient(
		option.WithAPIKey(key),
		option.WithMaxRetries(0), // the stack retries
		option.WithMiddleware(transport.Hook(append([]middleware.Middleware{stack}, model...)...)),
	)
}

// endregion

// region: rules
var rules = []argsvalidate.Rule{
	argsvalidate.FieldRule[int]{
		Path: "/guests", Tools: []string{"book_table"},
		Valid:   func(guests int) bool { return guests <= 8 },
		Message: "{value} guests are too many to book online; book for at most 8",
	},
}

// endregion

// region: loop
// loop is an agent loop as many programs have one. Toolmend is not in it.
func loop(ctx context.Context, out io.Writer, client openai.Client, question string) (string, error) {
	params := openai.ChatCompletionNewParams{
		Model:    "gpt-5-mini",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(question)},
		Tools:    []openai.ChatCompletionToolUnionParam{bookTable},
	}
	for range 10 {
		completion, err := client.Chat.Completions.New(ctx, params)
		if err != nil {
			return "", err
		}
		message := completion.Choices[0].Message
		if len(message.ToolCalls) == 0 {
			return message.Content, nil
		}
		params.Messages = append(params.Messages, message.ToParam())
		for _, call := range message.ToolCalls {
			result, err := book(out, call.Function.Arguments)
			if err != nil {
				return "", err
			}
			params.Messages = append(params.Messages, openai.ToolMessage(result, call.ID))
		}
	}
	return "", errors.New("no answer after 10 turns")
}

var bookTable = openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
	Name: "book_table", Description: openai.String("Books a table in a restaurant."),
	Parameters: map[string]any{
		"type": "object",
		"properties": map[string]any{
			"restaurant": map[string]any{"type": "string"},
			"guests":     map[string]any{"type": "integer", "minimum": 1},
			"time":       map[string]any{"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$"},
			"notes":      map[string]any{"type": "string"},
		},
		"required":             []string{"restaurant", "guests", "time"},
		"additionalProperties": false,
	},
})

func book(out io.Writer, arguments string) (string, error) {
	var a struct {
		Restaurant, Time string
		Guests           int
	}
	if err := json.Unmarshal([]byte(arguments), &a); err != nil {
		return "", err
	}
	fmt.Fprintln(out, "book_table", arguments)
	return fmt.Sprintf("A table for %d at %s, %s.", a.Guests, a.Restaurant, a.Time), nil
}

// endregion

// region: cause
// cause returns the error of Toolmend behind an error of the SDK, such as
// argsvalidate.ErrExhausted, or else err.
func cause(err error) error {
	var failed *openai.Error
	if errors.As(err, &failed) {
		if c := transport.Cause(failed.Response); c != nil {
			return c
		}
	}
	return err
}

// endregion
