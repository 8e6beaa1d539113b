package main

import (
	"errors"
	"net/http"
	"testing"

	openai "github.com/sashabaranov/go-openai"
	"github.com/toolmend/toolmend/examples/clients/internal/fake"
	"github.com/toolmend/toolmend/examples/clients/internal/harness"
)

func TestProgram(t *testing.T) {
	t.Parallel()
	harness.Run(t, harness.Path{Wire: fake.Chat, Stream: false, Run: run, Failed: failed})
}

func failed(err error) (status int, resp *http.Response) {
	var e *openai.APIError
	if errors.As(err, &e) {
		return e.HTTPStatusCode, nil
	}
	return 0, nil
}
