package main

import (
	"errors"
	"net/http"
	"testing"

	"github.com/ollama/ollama/api"
	"github.com/toolmend/toolmend/examples/clients/internal/fake"
	"github.com/toolmend/toolmend/examples/clients/internal/harness"
)

func TestProgram(t *testing.T) {
	t.Parallel()
	harness.Run(t, harness.Path{Wire: fake.Ollama, Stream: true, Run: run, Failed: failed})
}

func failed(err error) (status int, resp *http.Response) {
	var e api.StatusError
	if errors.As(err, &e) {
		return e.StatusCode, nil
	}
	return 0, nil
}
