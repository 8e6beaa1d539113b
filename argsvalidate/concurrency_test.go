package argsvalidate_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

func TestLaws(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]argsvalidate.Options{
		"default":     {},
		"Raise":       {},
		"DropInvalid": {OnExhausted: middleware.DropInvalid},
		"KeepValid":   {Batch: batch.KeepValid, MaxAttempts: 4},
		"PassUnknown": {UnknownTools: argsvalidate.PassUnknown, Rules: []argsvalidate.Rule{argsvalidate.InternalIDs()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			middlewaretest.Run(t, argsvalidate.New(o))
		})
	}
}

// One Validator, many goroutines, a schema that is another one each time:
// for -race, and for a cache that would mix them up.
func TestManyGoroutinesWithChangingSchemas(t *testing.T) {
	t.Parallel()
	mw := argsvalidate.NewValidator(unmended(argsvalidate.Options{})).Middleware()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range 100 {
				property := fmt.Sprintf("p%d", (g+n)%10)
				changing := tool("t", fmt.Sprintf(`{"properties": {%q: {"type": "integer"}}, "required": [%[1]q], "additionalProperties": false}`, property))
				args := fmt.Sprintf(`{%q: %d}`, property, n)
				asked := 0
				resp, err := mw(func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
					if asked++; asked == 1 {
						return &middleware.Response{Message: middleware.Assistant("", call("1", "t", `{"other": 1}`))}, nil
					}
					return &middleware.Response{Message: middleware.Assistant("", call("2", "t", args))}, nil
				})(t.Context(), request(changing))
				if err != nil || resp.Message.ToolCalls[0].Arguments != args || asked != 2 {
					t.Errorf("%d %d: %v, asked %d times", g, n, err, asked)
				}
			}
		})
	}
	wg.Wait()
}

// More schemas than a Validator keeps: they are validated all the same.
func TestMoreSchemasThanAreKept(t *testing.T) {
	t.Parallel()
	v := argsvalidate.NewValidator(unmended(argsvalidate.Options{}))
	for range 2 {
		for n := range 1200 {
			one := tool("t", fmt.Sprintf(`{"properties": {"v": {"const": %d}}}`, n))
			_, err := v.Validate(t.Context(), []middleware.Tool{one}, call("1", "t", fmt.Sprintf(`{"v": %d}`, n)))
			require.NoError(t, err)
			_, err = v.Validate(t.Context(), []middleware.Tool{one}, call("1", "t", fmt.Sprintf(`{"v": %d}`, n+1)))
			require.Error(t, err)
		}
	}
}
