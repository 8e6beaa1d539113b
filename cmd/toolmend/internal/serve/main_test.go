package serve

import (
	"context"
	"io"
	"testing"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
)

// run is toolmend, with the commands of this package.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	switch args[0] {
	case "run":
		return RunAgent(ctx, args[1:], stdin, stdout, stderr)
	case "env":
		return Env(args[1:], stdout, stderr)
	case "health":
		return Health(ctx, args[1:], stdout, stderr)
	}
	return Run(ctx, args[1:], stdout, stderr)
}

func exec(t *testing.T, dir, stdin string, args ...string) clitest.Outcome {
	t.Helper()
	return clitest.Execute(t, run, dir, stdin, args...)
}
