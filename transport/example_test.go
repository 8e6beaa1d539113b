package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/toolmend/toolmend"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// forgetful is a provider whose model calls book without the room at first,
// until it is told so.
func forgetful(learns bool) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		arguments := `{}`
		if learns && strings.Contains(string(body), `"role":"tool"`) {
			arguments = `{"room":7}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"x","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,`+
			`"tool_calls":[{"id":"c1","type":"function","function":{"name":"book","arguments":%q}}]},"finish_reason":"tool_calls"}],`+
			`"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`, arguments)
	}))
}

// order asks a chat-completions endpoint to book a room.
func order(ctx context.Context, base string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/chat/completions", strings.NewReader(
		`{"model":"m","messages":[{"role":"user","content":"Book room 7"}],"tools":[{"type":"function","function":{"name":"book",`+
			`"parameters":{"type":"object","properties":{"room":{"type":"integer"}},"required":["room"]}}}]}`))
	if err != nil {
		panic(err)
	}
	return req
}

// print prints what a client reads of an answer.
func print(resp *http.Response, err error) {
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	var v struct {
		Choices []struct {
			Message struct {
				Calls []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
		}
		Usage struct {
			In int `json:"prompt_tokens"`
		}
		Error struct{ Code string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
		fmt.Println(err)
	}
	for _, c := range v.Choices {
		f := c.Message.Calls[0].Function
		fmt.Println(f.Name, f.Arguments, v.Usage.In, "tokens")
	}
	if v.Error.Code != "" {
		fmt.Println(resp.StatusCode, v.Error.Code)
	}
}

func ExampleHook() {
	provider := forgetful(true)
	defer provider.Close()
	hook := transport.Hook(toolmend.Stack(toolmend.Options{}))

	// An SDK does the rest: openai.NewClient(option.WithMiddleware(hook)).
	print(hook(order(context.Background(), provider.URL), provider.Client().Do))
	// Output: book {"room":7} 10 tokens
}

func ExampleRoundTripper() {
	provider := forgetful(true)
	defer provider.Close()
	client := &http.Client{Transport: transport.RoundTripper(nil, argsvalidate.New(argsvalidate.Options{}))}

	print(client.Do(order(context.Background(), provider.URL)))
	// Output: book {"room":7} 10 tokens
}

func ExampleHandler() {
	provider := forgetful(true)
	defer provider.Close()
	upstream, _ := url.Parse(provider.URL + "/v1")
	proxy := httptest.NewServer(transport.Handler(upstream, argsvalidate.New(argsvalidate.Options{})))
	defer proxy.Close()

	print(proxy.Client().Do(order(context.Background(), proxy.URL)))
	// Output: book {"room":7} 10 tokens
}

func ExampleNew() {
	provider := forgetful(true)
	defer provider.Close()
	t := transport.New(transport.Options{MaxModelCalls: 1}, argsvalidate.New(argsvalidate.Options{}))

	resp, err := t.Hook(order(context.Background(), provider.URL), provider.Client().Do)
	print(resp, err)
	fmt.Println(errors.Is(transport.Cause(resp), transport.ErrModelCalls))
	// Output:
	// 400 budget
	// true
}

func ExampleCause() {
	provider := forgetful(false)
	defer provider.Close()
	hook := transport.Hook(argsvalidate.New(argsvalidate.Options{}))

	resp, err := hook(order(context.Background(), provider.URL), provider.Client().Do)
	print(resp, err)
	var invalid *argsvalidate.Error
	if errors.As(transport.Cause(resp), &invalid) {
		fmt.Println(invalid.Verdicts[0].Issues[0].Code)
	}
	// Output:
	// 400 invalid_tool_call
	// required
}

func ExampleWatch() {
	provider := forgetful(true)
	defer provider.Close()
	hook := transport.Hook(argsvalidate.New(argsvalidate.Options{}))

	ctx, call := transport.Watch(context.Background())
	print(hook(order(ctx, provider.URL), provider.Client().Do))
	for _, a := range call.Report().Attempts {
		fmt.Println(a.Message.ToolCalls[0].Arguments)
	}
	fmt.Println(call.Err())
	// Output:
	// book {"room":7} 10 tokens
	// {}
	// {"room":7}
	// <nil>
}

// A guardrail answers in words, and the client gets them as an answer of its
// own format: here OpenAI's chat completions, not streamed. No request is sent.
func Example_guardrail() {
	guardrail := func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			last := req.Messages[len(req.Messages)-1]
			if strings.Contains(last.Text(), "Book") {
				return &middleware.Response{Message: middleware.Assistant("Rooms are booked at the desk.")}, nil
			}
			return next(ctx, req)
		}
	}
	client := &http.Client{Transport: transport.RoundTripper(nil, guardrail)}
	resp, err := client.Do(order(context.Background(), "http://provider.invalid/v1"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	var v struct {
		Object, Model string
		Choices       []struct {
			Message struct{ Role, Content string }
			Finish  string `json:"finish_reason"`
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Status, v.Object, v.Model)
	fmt.Printf("%+v\n", v.Choices[0])
	// Output:
	// 200 OK chat.completion m
	// {Message:{Role:assistant Content:Rooms are booked at the desk.} Finish:stop}
}
