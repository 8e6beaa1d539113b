package heal_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/heal"
	"github.com/toolmend/toolmend/middleware"
)

// TestNoAllocations: a request that is not refused costs nothing.
func TestNoAllocations(t *testing.T) {
	resp := &middleware.Response{}
	call := heal.New(heal.Options{})(func(context.Context, *middleware.Request) (*middleware.Response, error) { return resp, nil })
	req := &middleware.Request{Messages: []middleware.Message{middleware.User("hi")}}
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = call(t.Context(), req) }))
}
