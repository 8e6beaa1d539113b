package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/examples/clients/internal/fake"
	"github.com/toolmend/toolmend/examples/clients/internal/harness"
)

func TestProgram(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]bool{"whole": false, "streamed": true} {
		program := func(ctx context.Context, out io.Writer, baseURL, key string, o argsvalidate.Options) error {
			return run(ctx, out, baseURL, key, stream, o)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harness.Run(t, harness.Path{Wire: fake.Anthropic, Stream: stream, Run: program, Failed: failed, Cause: cause})
		})
	}
}

func failed(err error) (status int, resp *http.Response) {
	var e *anthropic.Error
	if errors.As(err, &e) {
		return e.StatusCode, e.Response
	}
	return 0, nil
}
