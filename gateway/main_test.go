package gateway_test

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(closing{m}) }

// closing ends the idle connections of the clients before leaks are looked for.
type closing struct{ m *testing.M }

func (c closing) Run() int {
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	return c.m.Run()
}
