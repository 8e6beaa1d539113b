package middleware_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/transport"
)

// cache answers a request that it has answered before without a model call.
func cache() middleware.Middleware {
	var answers sync.Map // of sha256 to *middleware.Response
	return func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			text, err := json.Marshal(req)
			if err != nil {
				return nil, err
			}
			key := sha256.Sum256(text)
			if known, ok := answers.Load(key); ok {
				resp := known.(*middleware.Response).Clone()
				resp.Usage, resp.Report = middleware.Usage{}, middleware.Report{Status: resp.Report.Status} // this step cost nothing
				return show(req, resp)
			}
			resp, err := next(ctx, req)
			if err == nil && resp != nil && resp.Report.Status != middleware.Invalid {
				answers.Store(key, resp.Clone())
			}
			return resp, err
		}
	}
}

// show sends the text of an answer that no model streamed to the caller's sink.
func show(req *middleware.Request, resp *middleware.Response) (*middleware.Response, error) {
	if text := resp.Message.Text(); req.Sink != nil && text != "" {
		if err := req.Sink(middleware.Event{Kind: middleware.EventText, Text: text}); err != nil {
			return nil, err
		}
	}
	return resp, nil
}

var cardNumber = regexp.MustCompile(`\b(?:\d[ -]?){15}\d\b`)

// redact removes card numbers from what the model receives: from texts and from
// the arguments of earlier calls. A provider signs its reasoning and refuses it
// once it is changed, so the reasoning stays as it is.
func redact(next middleware.ModelCall) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		clean := req.Clone()
		for _, m := range clean.Messages {
			for i, p := range m.Parts {
				if p.Kind == middleware.PartText {
					m.Parts[i].Text = cardNumber.ReplaceAllString(p.Text, "[card]")
				}
			}
			for i, c := range m.ToolCalls {
				m.ToolCalls[i].Arguments = cardNumber.ReplaceAllString(c.Arguments, "0") // JSON also where the number is not text
			}
		}
		return next(ctx, clean)
	}
}

// guardrail answers requests about bookings itself. The model is not called.
func guardrail(next middleware.ModelCall) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		if n := len(req.Messages); n > 0 && req.Messages[n-1].Role == middleware.RoleUser && strings.Contains(req.Messages[n-1].Text(), "Book") {
			return show(req, &middleware.Response{
				Message:      middleware.Assistant("Rooms are booked at the desk."),
				FinishReason: middleware.FinishStop,
			})
		}
		return next(ctx, req)
	}
}

// insist calls the model a second time if the first answer is empty. The Tally
// adds up the usage of both calls and keeps both in the report.
func insist(next middleware.ModelCall) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		var tally middleware.Tally
		resp, err := tally.Call(ctx, next, req)
		if err == nil && resp.Message.Text() == "" && len(resp.Message.ToolCalls) == 0 {
			resp, err = tally.Call(ctx, next, req.With(middleware.User("Say something.")))
		}
		return tally.Finish(resp, err)
	}
}

func TestWrittenMiddlewaresKeepTheLaws(t *testing.T) {
	for name, mw := range map[string]middleware.Middleware{"cache": cache(), "redact": redact, "guardrail": guardrail, "insist": insist} {
		t.Run(name, func(t *testing.T) { middlewaretest.Run(t, mw) })
	}
}

// A request that changes inside a provider's body leaves the signed reasoning in
// it alone, and has no card number in texts and arguments.
func TestRedactInAProvidersBody(t *testing.T) {
	const card = "4111 1111 1111 1111"
	body := `{"model":"m","max_tokens":9,"tools":[{"name":"pay","input_schema":{"type":"object"}}],"messages":[
		{"role":"user","content":"My card is ` + card + `."},
		{"role":"assistant","content":[{"type":"thinking","thinking":"Card ` + card + `.","signature":"s"},{"type":"tool_use","id":"c1","name":"pay","input":{"card":"` + card + `","n":4111111111111111}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"Paid with ` + card + `."}]}]}`
	var sent string
	provider := roundTrip(func(req *http.Request) (*http.Response, error) {
		b, err := io.ReadAll(req.Body)
		sent = string(b)
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: req, Body: io.NopCloser(strings.NewReader(
			`{"id":"x","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`))}, err
	})
	client := &http.Client{Transport: transport.RoundTripper(provider, redact)}
	resp, err := client.Post("http://provider.invalid/v1/messages", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, strings.NewReplacer("is "+card, "is [card]", "with "+card, "with [card]", `"card":"`+card, `"card":"0`, "4111111111111111", "0").Replace(body), sent)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// A caller that streams is shown an answer that no model streamed.
func TestWrittenMiddlewaresStream(t *testing.T) {
	var shown []string
	req := &middleware.Request{Messages: []middleware.Message{middleware.User("Book a room.")}, Sink: func(e middleware.Event) error {
		shown = append(shown, e.Text)
		return nil
	}}
	_, err := guardrail(nil)(t.Context(), req)
	require.NoError(t, err)
	_, err = guardrail(func(context.Context, *middleware.Request) (*middleware.Response, error) { return nil, io.EOF })(t.Context(), &middleware.Request{})
	require.ErrorIs(t, err, io.EOF, "a request without messages")
	call := cache()(func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{Message: middleware.Assistant("Hello.")}, nil
	})
	for range 2 {
		_, err = call(t.Context(), req)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"Rooms are booked at the desk.", "Hello."}, shown)
}

// The first middleware of a chain sees a request first and its answer last: a
// request that guardrail answers is not cached, and the cache is asked before
// redact has changed the request.
func Example() {
	calls := 0
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		calls++
		text := req.Messages[len(req.Messages)-1].Text()
		return &middleware.Response{Message: middleware.Assistant("You said: " + text), FinishReason: middleware.FinishStop}, nil
	}
	call := middleware.Chain(guardrail, cache(), redact, insist)(model)
	for _, text := range []string{"Book a room.", "My card is 4111 1111 1111 1111.", "My card is 4111 1111 1111 1111."} {
		resp, err := call(context.Background(), &middleware.Request{Messages: []middleware.Message{middleware.User(text)}})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(resp.Message.Text())
	}
	fmt.Println("model calls:", calls)
	// Output:
	// Rooms are booked at the desk.
	// You said: My card is [card].
	// You said: My card is [card].
	// model calls: 1
}
