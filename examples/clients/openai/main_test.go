package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/openai/openai-go/v3"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/examples/clients/internal/fake"
	"github.com/toolmend/toolmend/examples/clients/internal/harness"
)

func TestProgram(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		how  how
		wire *fake.Wire
	}{
		"chat":        {how{}, fake.Chat},
		"stream":      {how{stream: true}, fake.Chat},
		"http client": {how{httpClient: true}, fake.Chat},
		"responses":   {how{responses: true}, fake.Responses},
	} {
		program := func(ctx context.Context, out io.Writer, baseURL, key string, o argsvalidate.Options) error {
			return run(ctx, out, baseURL, key, c.how, o)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harness.Run(t, harness.Path{Wire: c.wire, Stream: c.how.stream, Run: program, Failed: failed, Cause: cause})
		})
	}
}

func failed(err error) (status int, resp *http.Response) {
	var e *openai.Error
	if errors.As(err, &e) {
		return e.StatusCode, e.Response
	}
	return 0, nil
}
