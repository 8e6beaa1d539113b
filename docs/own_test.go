package docs_test

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/transport"
)

var weather = &middleware.Request{Messages: []middleware.Message{middleware.User("How is the weather in Oslo?")}, Tools: []middleware.Tool{city}}

// TestOwnSDK: an SDK that takes an http.Client gets the answer of the second attempt.
func TestOwnSDK(t *testing.T) {
	t.Parallel()
	asked := 0
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		arguments := map[int]string{1: `{\"town\":\"Oslo\"}`, 2: `{\"city\":\"Oslo\"}`}[asked]
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"finish_reason":"tool_calls","message":{"role":"assistant","tool_calls":[`+
			`{"id":"c1","type":"function","function":{"name":"weather","arguments":"`+arguments+`"}}]}}]}`)
	}))
	t.Cleanup(provider.Close)
	// region: sdk
	stack := toolmend.Stack(toolmend.Options{})
	client := &http.Client{Transport: transport.RoundTripper(nil, stack)}
	// endregion
	resp, err := client.Post(provider.URL+"/v1/chat/completions", "application/json", strings.NewReader(
		`{"model":"m","messages":[{"role":"user","content":"?"}],"tools":[{"type":"function","function":{"name":"weather","parameters":`+string(city.Parameters)+`}}]}`))
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), `{\"city\":\"Oslo\"}`)
	require.Equal(t, 2, asked)
}

// sdk plays a client of the reader's own.
type sdk struct{ model middleware.ModelCall }

func (s sdk) Chat(ctx context.Context, r *middleware.Request) (text, id, name, arguments string, err error) {
	resp, err := s.model(ctx, r)
	if err != nil || len(resp.Message.ToolCalls) == 0 {
		return "", "", "", "", err
	}
	c := resp.Message.ToolCalls[0]
	return resp.Message.Text(), c.ID, c.Name, c.Arguments, nil
}

func TestOwnFunction(t *testing.T) {
	t.Parallel()
	mine := sdk{middlewaretest.NewModel(t, middlewaretest.Calls("weather", `{"town":"Oslo"}`), middlewaretest.Calls("weather", `{"city":"Oslo"}`)).Call}
	// region: function
	model := func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		text, id, name, arguments, err := mine.Chat(ctx, req) // your client
		if err != nil {
			return nil, err
		}
		call := middleware.ToolCall{ID: id, Name: name, Arguments: arguments}
		return &middleware.Response{Message: middleware.Assistant(text, call)}, nil
	}
	// endregion
	resp, err := toolmend.Stack(toolmend.Options{})(model)(t.Context(), weather)
	require.NoError(t, err)
	require.JSONEq(t, `{"city":"Oslo"}`, resp.Message.ToolCalls[0].Arguments)
}

// region: timed
func timed(next middleware.ModelCall) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		start := time.Now()
		defer func() { log.Println("model call:", time.Since(start)) }()
		return next(ctx, req)
	}
}

// endregion

// TestOwnMiddleware: it runs around each attempt.
func TestOwnMiddleware(t *testing.T) {
	var out bytes.Buffer
	log.SetOutput(&out)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	model := middlewaretest.NewModel(t, middlewaretest.Calls("weather", `{"town":"Oslo"}`), middlewaretest.Calls("weather", `{"city":"Oslo"}`)).Call
	// region: outside
	layers := toolmend.NewLayers(toolmend.Options{}).Outside(middleware.LayerAttempt, timed)
	call := layers.Chain()(model)
	// endregion
	_, err := call(t.Context(), weather)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(out.String(), "model call: "))
}

func TestOwnRule(t *testing.T) {
	t.Parallel()
	scripted := middlewaretest.NewModel(t, middlewaretest.Calls("weather", `{"city":"Atlantis"}`), middlewaretest.Calls("weather", `{"city":"Oslo"}`))
	model := scripted.Call
	// region: rule
	known := argsvalidate.FieldRule[string]{
		Path: "/city", Tools: []string{"weather"},
		Valid:   func(city string) bool { return city != "Atlantis" },
		Message: "there is no weather of {value}",
	}
	call := toolmend.Stack(toolmend.Options{
		Validator: argsvalidate.NewValidator(argsvalidate.Options{Rules: []argsvalidate.Rule{known}}),
	})(model)
	// endregion
	resp, err := call(t.Context(), weather)
	require.NoError(t, err)
	require.JSONEq(t, `{"city":"Oslo"}`, resp.Message.ToolCalls[0].Arguments)
	reask := scripted.Requests()[1].Messages
	require.Contains(t, reask[len(reask)-1].Text(), `there is no weather of "Atlantis"`)
}
