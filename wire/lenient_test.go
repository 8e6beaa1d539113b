package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// Members of another kind, and items, blocks, parts and events that are unknown or malformed,
// do not stop the reader: the calls next to them are read and the body comes back byte for
// byte. A value that a client might read as a call, but this package does not, makes the
// answer unreadable.
func TestReadLeniently(t *testing.T) {
	t.Parallel()
	responses := func(members, items string) string {
		return `{"id":"r1","object":"response","status":"completed","model":"m","output":[` + items + payCall(good) + `],"usage":{"input_tokens":1,"output_tokens":1}` + members + `}`
	}
	streamed := func(change func([]string) []string) string { return eventStream(change(payStream())...) }
	message := func(content string) string {
		return `{"id":"m","type":"message","role":"assistant","model":"m-1","content":[` + content + payBlock + `],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`
	}
	const unread = "unreadable"
	const result = `{"type":"function_call_output","call_id":"call_1","output":"paid"},`
	for name, c := range map[string]struct {
		codec wire.Codec
		body  string
		want  string
	}{
		"responses, model":                   {wire.OpenAIResponses(), edited(t, responses("", ""), `"model":"m"`, `"model":7`), ""},
		"responses, status":                  {wire.OpenAIResponses(), edited(t, responses("", ""), `"status":"completed","model"`, `"status":7,"model"`), ""},
		"responses, id":                      {wire.OpenAIResponses(), edited(t, responses("", ""), `"id":"r1"`, `"id":{}`), ""},
		"responses, usage":                   {wire.OpenAIResponses(), edited(t, responses("", ""), `{"input_tokens":1,"output_tokens":1}`, `"none"`), ""},
		"responses, unknown member":          {wire.OpenAIResponses(), responses(`,"later":[{"x":1}]`, ""), ""},
		"responses, items that are none":     {wire.OpenAIResponses(), responses("", `null,"x",7,[],`), ""},
		"responses, item without a type":     {wire.OpenAIResponses(), responses("", `{"text":"x"},`), ""},
		"responses, type of an item":         {wire.OpenAIResponses(), responses("", `{"type":7,"text":"x"},`), ""},
		"responses, unknown item":            {wire.OpenAIResponses(), responses("", `{"type":"later","name":"x"},`), ""},
		"responses, message without a role":  {wire.OpenAIResponses(), responses("", `{"type":"message","content":[]},`), ""},
		"responses, role":                    {wire.OpenAIResponses(), responses("", `{"type":"message","role":7,"content":"Hi."},`), ""},
		"responses, content":                 {wire.OpenAIResponses(), responses("", `{"type":"message","role":"assistant","content":7},`), ""},
		"responses, content parts":           {wire.OpenAIResponses(), responses("", `{"type":"message","role":"assistant","content":[7,{"type":"output_text","text":7}]},`), ""},
		"responses, unknown part":            {wire.OpenAIResponses(), responses("", `{"type":"message","role":"assistant","content":[{"type":"later"}]},`), ""},
		"responses, reasoning":               {wire.OpenAIResponses(), responses("", `{"type":"reasoning","summary":7},`), ""},
		"responses, id of a call":            {wire.OpenAIResponses(), edited(t, responses("", ""), `"call_id":"call_1"`, `"call_id":7`), ""},
		"responses, id of an item":           {wire.OpenAIResponses(), edited(t, responses("", ""), `"id":"fc_1"`, `"id":7`), ""},
		"responses, name of a call":          {wire.OpenAIResponses(), edited(t, responses("", ""), `"name":"pay"`, `"name":{}`), unread},
		"responses, arguments":               {wire.OpenAIResponses(), edited(t, responses("", ""), `"arguments":"`+good+`"`, `"arguments":7`), unread},
		"responses, type in another case":    {wire.OpenAIResponses(), responses("", edited(t, payCall(bad), "function_call", "Function_Call")+","), unread},
		"responses, call without a type":     {wire.OpenAIResponses(), responses("", edited(t, payCall(bad), `"type":"function_call",`, "")+","), unread},
		"responses, type of a call":          {wire.OpenAIResponses(), responses("", edited(t, payCall(bad), `"function_call"`, "7")+","), unread},
		"responses, answered call":           {wire.OpenAIResponses(), responses("", result), unread},
		"responses stream, answered call":    {wire.OpenAIResponses(), streamed(func(s []string) []string { s[7] = edited(t, s[7], `"output":[`, `"output":[`+result); return s }), unread},
		"responses, answered call elsewhere": {wire.OpenAIResponses(), responses("", strings.NewReplacer("call_1", "call_2", "pay", "search").Replace(payCall(bad)+","+result)), ""},
		"responses, result without an id":    {wire.OpenAIResponses(), responses("", `{"type":"function_call_output","output":"paid"},`), ""},
		"responses, neither has an id":       {wire.OpenAIResponses(), edited(t, responses("", `{"type":"function_call_output","output":"paid"},`), `"call_id":"call_1",`, ""), ""},
		"responses, output is not a list":    {wire.OpenAIResponses(), `{"output":{"0":` + payCall(bad) + `}}`, unread},
		"responses, failed with a call":      {wire.OpenAIResponses(), edited(t, responses("", ""), `"status":"completed"`, `"status":"failed"`), unread},
		"responses stream, unknown event": {wire.OpenAIResponses(), streamed(func(s []string) []string {
			return append([]string{`{"type":"later","item":7}`, `{"type":7}`, `[]`}, s...)
		}), ""},
		"responses stream, created": {wire.OpenAIResponses(), streamed(func(s []string) []string { s[0] = `{"type":"response.created","response":7}`; return s }), ""},
		"responses stream, text": {wire.OpenAIResponses(), streamed(func(s []string) []string {
			return append([]string{`{"type":"response.output_text.delta","delta":7}`}, s...)
		}), ""},
		"responses stream, item": {wire.OpenAIResponses(), streamed(func(s []string) []string {
			return append([]string{`{"type":"response.output_item.added","output_index":5,"item":7}`}, s...)
		}), ""},
		"responses stream, odd at the end": {wire.OpenAIResponses(), streamed(func(s []string) []string { s[7] = edited(t, s[7], `"output":[`, `"output":[7,`); return s }), ""},
		"responses stream, number as text": {wire.OpenAIResponses(), strings.ReplaceAll(eventStream(payStream()...), `"output_index":0`, `"output_index":"0"`), ""},
		"responses stream, failed": {wire.OpenAIResponses(), streamed(func(s []string) []string {
			s[7] = strings.NewReplacer("completed\"", "failed\"").Replace(s[7])
			return s
		}), unread},
		"responses, bytes that are no text": {wire.OpenAIResponses(), edited(t, responses("", `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"`+"\xff"+`"}]},`), `"m"`, "\"\xff\""), ""},
		"responses stream, no text": {wire.OpenAIResponses(), streamed(func(s []string) []string {
			return append([]string{"{\"type\":\"response.output_text.delta\",\"delta\":\"\xff\"}"}, s...)
		}), ""},
		"anthropic, bytes that are no text":  {wire.Anthropic(), edited(t, message(`{"type":"text","text":"`+"\xff"+`"},`), `"m-1"`, "\"\xff\""), ""},
		"anthropic stream, no text":          {wire.Anthropic(), messageStream("{\"type\":\"text\",\"text\":\"\xff\"}", atIndex("1", payOpen), atIndex("1", payDelta), atIndex("1", payStop)), ""},
		"anthropic, model":                   {wire.Anthropic(), edited(t, message(""), `"m-1"`, `7`), ""},
		"anthropic, stop reason":             {wire.Anthropic(), edited(t, message(""), `"stop_reason":"tool_use"`, `"stop_reason":7`), ""},
		"anthropic, unknown stop reason":     {wire.Anthropic(), edited(t, message(""), `"stop_reason":"tool_use"`, `"stop_reason":"later"`), ""},
		"anthropic, role":                    {wire.Anthropic(), edited(t, message(""), `"role":"assistant"`, `"role":7`), ""},
		"anthropic, usage":                   {wire.Anthropic(), edited(t, message(""), `{"input_tokens":1,"output_tokens":1}`, `"none"`), ""},
		"anthropic, blocks that are none":    {wire.Anthropic(), message(`null,"x",7,[],{},{"type":7},`), ""},
		"anthropic, unknown block":           {wire.Anthropic(), message(`{"type":"later","input":{}},`), ""},
		"anthropic, text":                    {wire.Anthropic(), message(`{"type":"text","text":7},`), ""},
		"anthropic, thinking":                {wire.Anthropic(), message(`{"type":"thinking","thinking":7},`), ""},
		"anthropic, id of a call":            {wire.Anthropic(), edited(t, message(""), `"call_1"`, `7`), ""},
		"anthropic, name of a call":          {wire.Anthropic(), edited(t, message(""), `"pay"`, `{}`), unread},
		"anthropic, type in another case":    {wire.Anthropic(), message(edited(t, payBlock, "tool_use", "Tool_Use") + ","), unread},
		"anthropic, type of a call":          {wire.Anthropic(), message(edited(t, payBlock, `"tool_use"`, "7") + ","), unread},
		"anthropic, error with a call":       {wire.Anthropic(), edited(t, message(""), `"type":"message"`, `"type":"error"`), ""},
		"anthropic stream, model and role":   {wire.Anthropic(), strings.NewReplacer(`"m-1"`, `7`, `"assistant"`, `7`).Replace(messageStream("", payOpen, payDelta, payStop)), ""},
		"anthropic stream, stop reason":      {wire.Anthropic(), edited(t, messageStream("", payOpen, payDelta, payStop), `"stop_reason":"tool_use"`, `"stop_reason":7`), ""},
		"anthropic stream, unknown event":    {wire.Anthropic(), messageStream("", `{"type":"later"}`, `{"type":7}`, `[]`, payOpen, payDelta, payStop), ""},
		"anthropic stream, odd blocks":       {wire.Anthropic(), messageStream("", `{"type":"content_block_start","index":0,"content_block":{"type":7}}`, payStop, atIndex("1", payOpen), atIndex("1", payDelta), atIndex("1", payStop)), ""},
		"anthropic stream, odd deltas":       {wire.Anthropic(), messageStream("", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":7}}`, `{"type":"content_block_delta","index":0,"delta":{"type":7}}`, payStop, atIndex("1", payOpen), atIndex("1", payDelta), atIndex("1", payStop)), ""},
		"anthropic stream, unknown delta":    {wire.Anthropic(), messageStream("", payOpen, `{"type":"content_block_delta","index":0,"delta":{"type":"later","text":"x"}}`, payDelta, payStop), ""},
		"anthropic stream, content is text":  {wire.Anthropic(), edited(t, messageStream("", payOpen, payDelta, payStop), `"content":[]`, `"content":"x"`), ""},
		"anthropic stream, odd in the start": {wire.Anthropic(), messageStream(`7`, atIndex("1", payOpen), atIndex("1", payDelta), atIndex("1", payStop)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, err := c.codec.DecodeRequest([]byte(`{"model":"m","input":[],"messages":[],"tools":[{"type":"function","name":"pay","parameters":{},"input_schema":{}}]}`))
			require.NoError(t, err)
			if c.want == unread {
				_, err := c.codec.DecodeResponse(req, []byte(c.body))
				require.ErrorIs(t, err, wire.ErrShape)
				return
			}
			resp := requirePay(t, c.codec, c.body)
			changed := resp.Message.Clone()
			changed.ToolCalls = append(changed.ToolCalls, middleware.ToolCall{ID: "call_9", Name: "pay", Arguments: `{}`})
			for _, m := range []middleware.Message{resp.Message, changed} {
				_, err = c.codec.DecodeRequest(encodeRequest(t, c.codec, req.With(m)))
				require.NoError(t, err, "history has only what a request may hold")
			}
		})
	}
}

func encodeRequest(t *testing.T, c wire.Codec, req *middleware.Request) []byte {
	t.Helper()
	body, err := c.EncodeRequest(req)
	require.NoError(t, err)
	return body
}

// Bytes that are not UTF-8 in the arguments are a fault of the call: they are
// in what is validated, as they came.
func TestArgumentsThatAreNoText(t *testing.T) {
	t.Parallel()
	text := func(body string) string { return strings.ReplaceAll(body, "99999", "\xff") }
	for name, c := range map[string]struct {
		codec wire.Codec
		body  string
	}{
		"responses":                  {wire.OpenAIResponses(), `{"output":[` + payCall(bad) + `]}`},
		"responses stream":           {wire.OpenAIResponses(), strings.NewReplacer(good, bad, "5}", "99999}").Replace(eventStream(payStream()...))},
		"responses stream, in parts": {wire.OpenAIResponses(), strings.NewReplacer(good, bad, "5}", "99999}").Replace(eventStream(append(payStream()[:5], `{"type":"response.completed","response":{"output":[]}}`)...))},
		"anthropic":                  {wire.Anthropic(), `{"type":"message","content":[` + edited(t, payBlock, "5", "\"99999\"") + `]}`},
		"anthropic stream":           {wire.Anthropic(), edited(t, messageStream("", payOpen, payDelta, payStop), "5}", "99999}")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, err := c.codec.DecodeResponse(nil, []byte(text(c.body)))
			require.NoError(t, err)
			require.Contains(t, resp.Message.ToolCalls[0].Arguments, "\xff")
			out, err := c.codec.EncodeResponse(resp)
			require.NoError(t, err)
			again, err := c.codec.DecodeResponse(nil, out)
			require.NoError(t, err)
			require.Contains(t, strings.ToValidUTF8(again.Message.ToolCalls[0].Arguments, "\ufffd"), "\ufffd")
		})
	}
}
