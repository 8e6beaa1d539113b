// Command batch shows a batch of four tool calls of which two are wrong, under
// both policies. ReissueAll asks for the whole batch again. KeepValid holds the
// good calls and asks for the broken ones only.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

var book = middleware.Tool{Name: "book", Parameters: []byte(`{"type":"object",
	"properties":{"room":{"type":"string"},"nights":{"type":"integer","minimum":1}},
	"required":["room","nights"]}`)}

func run(ctx context.Context, out io.Writer) error {
	for _, policy := range []struct {
		name string
		batch.Policy
	}{{"ReissueAll", batch.ReissueAll}, {"KeepValid", batch.KeepValid}} {
		call := argsvalidate.New(argsvalidate.Options{Batch: policy.Policy})(model)
		resp, err := call(ctx, &middleware.Request{
			Messages: []middleware.Message{middleware.User("Book the rooms.")},
			Tools:    []middleware.Tool{book},
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n", policy.name)
		for i, attempt := range resp.Report.Attempts {
			fmt.Fprintf(out, "  attempt %d sent\n", i+1)
			for _, c := range attempt.Message.ToolCalls {
				fmt.Fprintf(out, "    %s %s\n", c.ID, c.Arguments)
			}
			told(out, attempt)
		}
		fmt.Fprintf(out, "  came out: %s\n", resp.Report.Status)
		for _, c := range resp.Message.ToolCalls {
			fmt.Fprintf(out, "    %s %s\n", c.ID, c.Arguments)
		}
		fmt.Fprintln(out)
	}
	return nil
}

// told prints the reply to each call of a failed attempt: every call gets one.
func told(out io.Writer, attempt middleware.Attempt) {
	if len(attempt.Replies) > 0 {
		fmt.Fprintln(out, "  was told")
	}
	for i, reply := range attempt.Replies {
		if !reply.IsError {
			fmt.Fprintf(out, "    %s %s\n", reply.ToolCallID, reply.Text())
			continue
		}
		for _, issue := range attempt.Verdicts[i].Issues {
			fmt.Fprintf(out, "    %s %s: %s\n", reply.ToolCallID, issue.Path(), issue.Message)
		}
	}
}

// model plays one that writes two of four calls wrongly. Asked again, it does
// what the replies say: it corrects the refused calls, and sends the others
// again unless they are held for it.
func model(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
	rooms := []struct{ wrong, right string }{
		{right: `{"room":"red","nights":2}`},
		{`{"room":"blue","nights":"two"}`, `{"room":"blue","nights":2}`},
		{right: `{"room":"green","nights":1}`},
		{`{"room":"gold"}`, `{"room":"gold","nights":3}`},
	}
	first := len(req.Messages) == 1
	var calls []middleware.ToolCall
	send := func(arguments string) {
		id := fmt.Sprintf("call_%d%c", len(req.Messages), 'a'+len(calls))
		calls = append(calls, middleware.ToolCall{ID: id, Name: book.Name, Arguments: arguments})
	}
	replies := req.Messages[len(req.Messages)-min(len(req.Messages), len(rooms)):]
	for i, room := range rooms {
		switch {
		case first && room.wrong != "":
			send(room.wrong)
		case first || !strings.Contains(replies[i].Text(), "is held"):
			send(room.right)
		}
	}
	return &middleware.Response{Message: middleware.Assistant("", calls...), FinishReason: middleware.FinishToolCalls}, nil
}
