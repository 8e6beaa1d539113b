// Command quickstart shows what Toolmend does with five mistakes that real
// models make, without a key and without a network: a scripted model makes
// them, and each step is printed as a tree.
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
)

func main() {
	if err := run(context.Background(), os.Stdout, colourful(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, colour bool) error {
	p := printer{out: out, colour: colour}
	p.line("%s", p.bold("Five mistakes of real models, and what reaches your loop."))
	p.line("")
	for i, s := range scenarios {
		// The whole use of Toolmend: wrap the model call that you have.
		call := middleware.Layers{
			middleware.LayerValidate: argsvalidate.New(argsvalidate.Options{}),
			middleware.LayerRetry:    retry.New(retry.Options{}),
		}.Chain()(s.model())

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
