// Command quickstart shows what Toolmend does with five mistakes that real
// models make, without a key and without a network: a scripted model makes
// them, and each step is printed as a tree.
//
//	go run ./examples/quickstart          the steps
//	go run ./examples/quickstart -otel    the same as OpenTelemetry spans
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/tracing"
)

func main() {
	otel := flag.Bool("otel", false, "print OpenTelemetry spans instead of trees")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *otel, colourful(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, otel, colour bool) error {
	if otel {
		return printSpans(ctx, out, colour)
	}
	p := printer{out: out, colour: colour}
	p.line("%s", p.bold("Five mistakes of real models, and what reaches your loop."))
	p.line("")
	for i, s := range scenarios {
		// The whole use of Toolmend: wrap the model call that you have.
		call := middleware.Chain(
			argsvalidate.New(argsvalidate.Options{}),
			retry.New(retry.Options{}),
		)(s.model())

		resp, err := call(ctx, s.request())
		if err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
		if err := p.step(i+1, s.title, resp); err != nil {
			return err
		}
	}
	p.summary()
	return nil
}

// traced is the same stack with spans around the step and around each attempt.
func traced(s scenario, o tracing.Options) middleware.ModelCall {
	return middleware.Chain(
		tracing.New(o),
		argsvalidate.New(argsvalidate.Options{}),
		retry.New(retry.Options{}),
		tracing.NewAttempt(o),
	)(s.model())
}
