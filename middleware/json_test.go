package middleware_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/middleware"
)

// survives checks that a value is the same after JSON, that writing it again
// gives the same bytes, and that an encoder that leaves HTML alone, or the
// white space of another writer, makes no difference.
func survives[T any](draw func(*rapid.T) T) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			v := draw(t)
			b, err := json.Marshal(v)
			require.NoError(t, err)
			var back T
			require.NoError(t, json.Unmarshal(b, &back))
			require.Equal(t, v, back, "from %s", b)
			again, err := json.Marshal(&back)
			require.NoError(t, err)
			require.Equal(t, string(b), string(again))

			var buf bytes.Buffer
			enc := json.NewEncoder(&buf)
			enc.SetEscapeHTML(false)
			require.NoError(t, enc.Encode(v))
			var unescaped T
			require.NoError(t, json.Unmarshal(buf.Bytes(), &unescaped))
			require.Equal(t, v, unescaped, "from %s", buf.Bytes())
		})
	}
}

func TestEverythingSurvivesJSON(t *testing.T) {
	t.Parallel()
	t.Run("Request", survives(drawRequest))
	t.Run("Response", survives(drawResponse))
	t.Run("Report", survives(drawReport))
	t.Run("Attempt", survives(drawAttempt))
	t.Run("Verdict", survives(drawVerdict))
	t.Run("Issue", survives(drawIssue))
	t.Run("Change", survives(drawChange))
	t.Run("Message", survives(drawMessage))
	t.Run("Part", survives(drawPart))
	t.Run("ToolCall", survives(drawCall))
	t.Run("Tool", survives(drawTool))
	t.Run("Native", survives(drawNative))
	t.Run("Event", survives(drawEvent))
	t.Run("Usage", survives(drawUsage))
}

// A schema keeps its bytes in JSON, even one that is not JSON: a codec finds out by
// them whether a stored tool was changed.
func TestSchemasInJSON(t *testing.T) {
	t.Parallel()
	for name, parameters := range map[string]string{"pretty printed": "{\n  \"type\": \"object\"\n}", "HTML": `{"d":"<a&b>"}`, "a string": `"object"`, "compact": `{"type":"object"}`, "true": `true`, "no JSON": `{"type":`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := json.Marshal(middleware.Tool{Name: "f", Parameters: json.RawMessage(parameters)})
			require.NoError(t, err)
			var back middleware.Tool
			require.NoError(t, json.Unmarshal(b, &back))
			require.Equal(t, parameters, string(back.Parameters))
		})
	}
}

func TestAttemptErrorSurvivesAsText(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"none":      nil,
		"empty":     errors.New(""),
		"not UTF-8": errors.New("\xff"),
		"typed":     &middleware.ModelError{StatusCode: 429, Output: "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, merr := json.Marshal(middleware.Attempt{Err: err})
			require.NoError(t, merr)
			require.NotContains(t, string(b), "secret")
			back := middleware.Attempt{Err: errors.New("left over")}
			require.NoError(t, json.Unmarshal(b, &back))
			if err == nil {
				require.NoError(t, back.Err)
				return
			}
			require.EqualError(t, back.Err, err.Error())
		})
	}
}

func TestHandlesAreLeftOut(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(middleware.Request{
		Sink:   func(middleware.Event) error { return nil },
		Tools:  []middleware.Tool{{Name: "f", Decode: func(string) error { return nil }}},
		Native: &middleware.Native{Dialect: "d", Raw: "{}"},
	})
	require.NoError(t, err)
	require.Equal(t, `{"tools":[{"name":"f"}],"native":{"dialect":"d","raw":"{}"}}`, string(b))
}

// What is stored or sent by one version is read by the next: these forms stay.
func TestJSONGolden(t *testing.T) {
	t.Parallel()
	call := middleware.ToolCall{ID: "c1", Name: "f", Arguments: `{"a":1}`}
	for want, v := range map[string]any{
		`{"kind":"text","step":0,"text":"hi"}`:                   middleware.Event{Kind: middleware.EventText, Text: "hi"},
		`{"kind":"reasoning","step":2,"text":"so"}`:              middleware.Event{Kind: middleware.EventReasoning, Step: 2, Text: "so"},
		`{"kind":"reset","step":3}`:                              middleware.Event{Kind: middleware.EventReset, Step: 3},
		`{"id":"c1","name":"f","arguments":"{\"a\":1}"}`:         call,
		`{"arguments":""}`:                                       middleware.ToolCall{},
		`{"code":"type","pointer":"/a","message":"want string"}`: middleware.Issue{Code: "type", Pointer: "/a", Message: "want string"},
		`{"by":"strip","pointer":"/a","before":"null"}`:          middleware.Change{By: "strip", Pointer: "/a", Before: "null"},
		`{"role":"user","parts":[{"text":"hi"}]}`:                middleware.User("hi"),
		`{"final":0}`:            middleware.Report{},
		`{"error":"boom"}`:       middleware.Attempt{Err: errors.New("boom")},
		`{"input":1,"output":2}`: middleware.Usage{InputTokens: 1, OutputTokens: 2},
		`{"name":"f","parameters":{"type":"object"},"strict":true}`:                                             middleware.Tool{Name: "f", Parameters: json.RawMessage(`{"type":"object"}`), Strict: true},
		`{"kind":"tool_call","step":1,"call":{"id":"c1","name":"f","arguments":"{\"a\":1}"}}`:                   middleware.Event{Kind: middleware.EventToolCall, Step: 1, Call: &call},
		`{"role":"tool","parts":[{"text":"ok"}],"tool_call_id":"c1","tool_name":"f"}`:                           middleware.ToolReply(call, "ok"),
		`{"message":{"role":"assistant","parts":[{"text":"hi"}]},"finish_reason":"stop"}`:                       middleware.Response{Message: middleware.Assistant("hi"), FinishReason: middleware.FinishStop},
		`{"messages":[{"role":"system","parts":[{"text":"s"}]}],"tool_choice":{"mode":"required"},"params":{}}`: middleware.Request{Messages: []middleware.Message{middleware.System("s")}, ToolChoice: middleware.ToolChoice{Mode: middleware.ToolRequired}, Params: json.RawMessage(`{ }`)},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			b, err := json.Marshal(v)
			require.NoError(t, err)
			require.Equal(t, want, string(b))
		})
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{
		"Request": &middleware.Request{}, "Message": &middleware.Message{}, "Part": &middleware.Part{}, "ToolCall": &middleware.ToolCall{},
		"Tool": &middleware.Tool{}, "Native": &middleware.Native{}, "Event": &middleware.Event{}, "Issue": &middleware.Issue{},
		"Change": &middleware.Change{}, "Attempt": &middleware.Attempt{},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Error(t, json.Unmarshal([]byte(`[]`), v))
		})
	}
	require.Error(t, json.Unmarshal([]byte(`{"arguments":{"base64":"?"}}`), &middleware.ToolCall{}))
	require.Error(t, json.Unmarshal([]byte(`{"arguments":7}`), &middleware.ToolCall{}))
}
