package main

import (
	"testing"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
)

func exec(t *testing.T, dir, stdin string, args ...string) clitest.Outcome {
	t.Helper()
	return clitest.Execute(t, run, dir, stdin, args...)
}
