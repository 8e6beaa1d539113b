package main

import (
	"errors"
	"net/http"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/toolmend/toolmend/examples/clients/internal/fake"
	"github.com/toolmend/toolmend/examples/clients/internal/harness"
)

func TestProgram(t *testing.T) {
	t.Parallel()
	harness.Run(t, harness.Path{Wire: fake.Anthropic, Stream: true, Run: run, Failed: failed})
}

func failed(err error) (status int, resp *http.Response) {
	var e *anthropic.Error
	if errors.As(err, &e) {
		return e.StatusCode, e.Response
	}
	return 0, nil
}
