package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

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
			harness.Run(t, harness.Path{Wire: fake.Chat, Stream: stream, Run: program, Failed: failed, Deaf: stream})
		})
	}
}

func failed(err error) (status int, resp *http.Response) {
	// langchaingo has no type for it.
	if err != nil && strings.Contains(err.Error(), "status code: 400") {
		return http.StatusBadRequest, nil
	}
	return 0, nil
}
