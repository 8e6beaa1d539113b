package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/toolmend/toolmend/examples/clients/internal/fake"
	"github.com/toolmend/toolmend/examples/clients/internal/harness"
)

func TestProgram(t *testing.T) {
	t.Parallel()
	harness.Run(t, harness.Path{Wire: fake.Chat, Stream: true, Run: run, Failed: failed, Deaf: true})
}

func failed(err error) (status int, resp *http.Response) {
	// langchaingo has no type for it.
	if err != nil && strings.Contains(err.Error(), "status code: 400") {
		return http.StatusBadRequest, nil
	}
	return 0, nil
}
