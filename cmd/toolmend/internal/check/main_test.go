package check

import (
	"context"
	"io"
	"testing"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/serve"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
)

// run is toolmend, with the commands that these tests need.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if args[0] == "serve" {
		return serve.Run(ctx, args[1:], stdout, stderr)
	}
	return Run(ctx, args[1:], stdin, stdout, stderr)
}

func exec(t *testing.T, dir, stdin string, args ...string) clitest.Outcome {
	t.Helper()
	return clitest.Execute(t, run, dir, stdin, args...)
}
