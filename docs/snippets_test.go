// Package docs_test compiles the Go code of pages that is not a part of an example.
package docs_test

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/budget"
	"github.com/toolmend/toolmend/heal"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/transport"
)

// Example_handler is compiled only: it would listen.
func Example_handler() {
	// region: handler
	// The client's default base URL, without the path. A call that stays invalid is an error.
	upstream, _ := url.Parse("https://api.example.com")
	handler := transport.Handler(upstream, toolmend.Stack(toolmend.Options{}))
	log.Fatal(http.ListenAndServe("127.0.0.1:7777", handler))
	// endregion
}

func TestHeal(t *testing.T) {
	t.Parallel()
	model := middlewaretest.NewModel(t, middlewaretest.Text("yes")).Call
	// region: heal
	model = toolmend.Stack(toolmend.Options{Heal: &heal.Options{Destructive: []string{"transfer"}}})(model)
	// endregion
	_, err := model(t.Context(), &middleware.Request{Messages: []middleware.Message{middleware.User("Is it?")}})
	require.NoError(t, err)
}

func TestLoops(t *testing.T) {
	t.Parallel()
	// region: loops
	o := argsvalidate.Options{Rules: []argsvalidate.Rule{argsvalidate.NoLoops(3, "wait_for_build")}}
	// endregion
	require.NoError(t, o.Validate())
}

var city = middleware.Tool{Name: "weather", Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`)}

func TestErrors(t *testing.T) {
	t.Parallel()
	wrong := middlewaretest.Calls("weather", `{"town":"Oslo"}`)
	for _, c := range []struct {
		model *middlewaretest.Model
		want  string
	}{
		{middlewaretest.NewModel(t, wrong, wrong, wrong), "invalid: required, additionalProperties"},
		{middlewaretest.NewModel(t, middlewaretest.Fail(budget.ErrExceeded)), "budget"},
		{middlewaretest.NewModel(t, middlewaretest.Fail(&middleware.ModelError{StatusCode: 401, Err: errors.New("no")})), "the provider: status 401"},
	} {
		_, err := argsvalidate.New(argsvalidate.Options{})(c.model.Call)(t.Context(), &middleware.Request{
			Messages: []middleware.Message{middleware.User("How is the weather?")}, Tools: []middleware.Tool{city},
		})
		require.Error(t, err)
		require.Equal(t, c.want, say(err))
	}
}

func say(err error) string {
	// region: errors
	var invalid *argsvalidate.Error // which calls, and what is wrong with each
	var provider *middleware.ModelError
	switch {
	case errors.Is(err, argsvalidate.ErrExhausted) && errors.As(err, &invalid):
		text := "invalid:"
		for _, verdict := range invalid.Verdicts {
			for i, issue := range verdict.Issues {
				if i > 0 {
					text += ","
				}
				text += " " + issue.Code
			}
		}
		return text
	case errors.Is(err, budget.ErrExceeded):
		return "budget"
	case errors.As(err, &provider):
		return fmt.Sprint("the provider: status ", provider.StatusCode)
	}
	return err.Error()
	// endregion
}

func TestSink(t *testing.T) {
	t.Parallel()
	model := middlewaretest.NewModel(t, middlewaretest.Calls("weather", `{"town":"Oslo"}`), middlewaretest.Calls("weather", `{"city":"Oslo"}`)).Call
	ctx, out := t.Context(), &bytes.Buffer{}
	call := argsvalidate.New(argsvalidate.Options{})(model)
	// region: sink
	resp, err := call(ctx, &middleware.Request{
		Messages: []middleware.Message{middleware.User("How is the weather in Oslo?")},
		Tools:    []middleware.Tool{city},
		Sink: func(e middleware.Event) error {
			switch e.Kind {
			case middleware.EventText, middleware.EventReasoning:
				fmt.Fprint(out, e.Text)
			case middleware.EventReset: // discard what this step has shown so far
				fmt.Fprintln(out, "[again]")
			case middleware.EventToolCall: // whole and valid
				fmt.Fprintln(out, e.Call.Name, e.Call.Arguments)
			}
			return nil // an error ends the step
		},
	})
	// endregion
	require.NoError(t, err)
	require.Equal(t, middleware.Valid, resp.Report.Status)
	require.Contains(t, out.String(), `weather {"city":"Oslo"}`)
	require.NotContains(t, out.String(), "town")
}
