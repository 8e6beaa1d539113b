package main

import (
	"errors"
	"net/http"
	"testing"

	"github.com/toolmend/toolmend/examples/clients/internal/fake"
	"github.com/toolmend/toolmend/examples/clients/internal/harness"
	"google.golang.org/genai"
)

func TestProgram(t *testing.T) {
	t.Parallel()
	harness.Run(t, harness.Path{Wire: fake.Gemini, Stream: false, Run: run, Failed: failed})
}

func failed(err error) (status int, resp *http.Response) {
	var e genai.APIError
	if errors.As(err, &e) {
		return e.Code, nil
	}
	return 0, nil
}
