package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
)

// startServer returns the address of a Temporal server, and how to stop it if it
// was started here.
func startServer(ctx context.Context) (address string, stop func(), err error) {
	if address := os.Getenv("TEMPORAL_ADDRESS"); address != "" {
		return address, func() {}, nil
	}
	o := testsuite.DevServerOptions{
		LogLevel: "error", Stdout: io.Discard,
		ClientOptions: &client.Options{Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))},
	}
	if path, err := exec.LookPath("temporal"); err == nil {
		o.ExistingPath = path
	}
	s, err := testsuite.StartDevServer(ctx, o)
	if err != nil {
		return "", nil, fmt.Errorf("no Temporal server: set TEMPORAL_ADDRESS, or put the program temporal into the PATH: %w", err)
	}
	return s.FrontendHostPort(), func() { _ = s.Stop() }, nil
}
