package wire_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// target is an answer with one call, pay {"amount":5}, that is put out of shape.
type target struct {
	codec         wire.Codec
	whole, stream string
	arguments     string // how the arguments are written
	bad           string // other ones, in the same form
	// In both bodies: old, new. A client that reads such an answer sees the
	// call that was read, in "read", or may see another, in "refused".
	read, refused [][2]string
}

// dataEvents returns events without names.
func dataEvents(lines ...string) string { return "data: " + strings.Join(lines, "\n\ndata: ") + "\n\n" }

// namedEvents returns events with names, as Anthropic and Responses have them.
func namedEvents(lines ...string) string {
	var b strings.Builder
	for _, l := range lines {
		name, _, _ := strings.Cut(strings.TrimPrefix(l, `{"type":"`), `"`)
		b.WriteString("event: " + name + "\ndata: " + l + "\n\n")
	}
	return b.String()
}

// otherCase returns a key that some readers take for the same.
func otherCase(key string) string { return strings.ToUpper(key[:1]) + key[1:] }

var targets = map[string]target{
	"chat": {
		codec: wire.OpenAIChat(),
		whole: `{"id":"r","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function",` +
			`"function":{"name":"pay","arguments":"{\"amount\":5}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1}}`,
		stream: dataEvents(`{"id":"r","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}`,
			`{"id":"r","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"pay","arguments":"{\"amount\":5}"}}]}}]}`,
			`{"id":"r","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1}}`, "[DONE]"),
		arguments: `"arguments":"{\"amount\":5}"`, bad: `"arguments":"{\"amount\":99999}"`,
		read: [][2]string{
			{`"model":"m"`, `"model":5`}, {`"content":null`, `"content":5`}, {`"content":null`, `"content":["a",5,{"type":"new"}]`},
			{`"finish_reason":"tool_calls"`, `"finish_reason":5`}, {`"finish_reason":"tool_calls"`, `"finish_reason":"because"`},
			{`"id":"c"`, `"id":5`}, {`"id":"c"`, `"id":null`}, {`"role":"assistant"`, `"role":5`}, {`"role":"assistant"`, `"role":"user"`},
			{`"choices":[{"index":0`, `"choices":[{"index":"0"`}, {`"choices":[{"index":0`, `"choices":[{"index":"x"`}, {`"choices":[{"index":0`, `"choices":[{"index":-1`},
			{`"type":"function"`, `"type":5`}, {`"type":"function",`, ``}, {`"function":{`, `"custom":null,"function":{`},
			{`"tool_calls":[`, `"function_call":{"name":"","arguments":""},"tool_calls":[`},
			{`"usage":{`, `"usage":{"prompt_tokens":1,"Prompt_tokens":2,`},
		},
		refused: [][2]string{
			{`"tool_calls":[`, `"Tool_Calls":[`}, {`"tool_calls":[`, `"tool_calls":[],"tool_calls":[`}, {`"choices":[`, `"Choices":[],"choices":[`},
			{`"function":{`, `"Function":{`}, {`"function":{`, `"function":{},"function":{`}, {`"name":"pay"`, `"name":"pay","Name":"steal"`},
			{`"name":"pay"`, `"name":5`}, {`"id":"c"`, `"id":"c","ID":"d"`}, {`"index":0,`, `"index":0,"index":0,`}, {`"choices":[`, `"choices":[],"choices":[`},
			{`"tool_calls":[`, `"function_call":{"name":"pay","arguments":"{\"amount\":99999}"},"tool_calls":[`},
			{`"function":{`, `"custom":{"name":"pay","input":"x"},"function":{`}, {`"tool_calls":[{`, `"tool_calls":[[],{`},
		},
	},
	"responses": {
		codec: wire.OpenAIResponses(),
		whole: `{"id":"r","object":"response","model":"m","status":"completed","output":[{"type":"function_call","id":"f","call_id":"c","name":"pay",` +
			`"arguments":"{\"amount\":5}","status":"completed"}],"usage":{"input_tokens":1}}`,
		read: [][2]string{
			{`"output":[`, `"output":[],"output":[`}, {`"name":"pay"`, `"name":"pay","Name":"steal"`}, {`"type":"function_call"`, `"type":"function_call","Type":"x"`},
			{`"arguments":`, `"arguments":"{}","Arguments":"{}","\u0061rguments":`},
		},
		refused: [][2]string{{`"output":[`, `"Output":[`}},
	},
	"anthropic": {
		codec: wire.Anthropic(),
		whole: `{"id":"r","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"c","name":"pay","input":{"amount":5}}],` +
			`"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`,
		stream: namedEvents(`{"type":"message_start","message":{"id":"r","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"pay","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"amount\":5}"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":1}}`, `{"type":"message_stop"}`),
		refused: [][2]string{
			{`"content":[`, `"content":[],"content":[`}, {`"content":[`, `"Content":[`}, {`"name":"pay"`, `"name":"pay","Name":"steal"`}, {`"input":{`, `"input":{"amount":7},"input":{`},
			{`"input":{`, `"Input":{"amount":99999},"input":{`},
		},
	},
	"gemini": {
		codec: wire.Gemini(),
		whole: `{"candidates":[{"content":{"role":"model","parts":[{"text":"x"},{"functionCall":{"name":"pay","args":{"amount":5}}}]},"finishReason":"STOP","index":0}],"modelVersion":"m",` +
			`"usageMetadata":{"promptTokenCount":1}}`,
		stream: dataEvents(`{"candidates":[{"content":{"role":"model","parts":[{"text":"x"}]}}],"modelVersion":"m"}`,
			`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"pay","args":{"amount":5}}}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1}}`),
		arguments: `"args":{"amount":5}`, bad: `"args":{"amount":99999}`,
		read: [][2]string{
			{`"modelVersion":"m"`, `"modelVersion":5`}, {`"modelVersion":"m"`, `"responseId":5`}, {`"role":"model"`, `"role":5`}, {`"role":"model"`, `"role":"user"`},
			{`{"text":"x"}`, `{"text":5}`}, {`{"text":"x"}`, `{"inlineData":5}`}, {`{"text":"x"}`, `{"fileData":{"mimeType":5}}`}, {`{"text":"x"}`, `{"thought":5,"text":"x"}`},
			{`"modelVersion":"m"`, `"promptFeedback":5`}, {`"finishReason":"STOP"`, `"finishReason":{}`}, {`"finishReason":"STOP"`, `"finishReason":"BECAUSE"`},
			{`"index":0`, `"index":"0"`}, {`"index":0`, `"index":-1`}, {`"usageMetadata":{`, `"usageMetadata":{"a":1,"a":2,`}, {`"name":"pay"`, `"id":5,"name":"pay"`},
		},
		refused: [][2]string{
			{`"functionCall":{`, `"FunctionCall":{`}, {`"functionCall":{`, `"function_call":{"name":"x"},"functionCall":{`}, {`"candidates":[`, `"candidates":[],"candidates":[`},
			{`"parts":[`, `"parts":[],"parts":[`}, {`"content":{`, `"Content":{}, "content":{`}, {`"name":"pay"`, `"name":"pay","NAME":"steal"`}, {`"name":"pay"`, `"name":5`},
			{`"functionCall":{`, `"functionCall":[],"x":{`}, {`"candidates":[`, `"error":{"code":500,"message":"x"},"candidates":[`},
		},
	},
	"ollama": {
		codec: wire.Ollama(),
		whole: `{"model":"m","message":{"role":"assistant","content":"x","tool_calls":[{"id":"c","function":{"name":"pay","arguments":{"amount":5}}}]},"done_reason":"stop","done":true,"eval_count":1}`,
		stream: `{"model":"m","message":{"role":"assistant","content":"x"},"done":false}` + "\n" +
			`{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"id":"c","function":{"name":"pay","arguments":{"amount":5}}}]},"done":false}` + "\n" +
			`{"model":"m","message":{"role":"assistant","content":""},"done_reason":"stop","done":true,"eval_count":1}` + "\n",
		arguments: `"arguments":{"amount":5}`, bad: `"arguments":{"amount":99999}`,
		read: [][2]string{
			{`"model":"m"`, `"model":5`}, {`"content":"x"`, `"content":5`}, {`"content":"x"`, `"content":[5]`}, {`"content":"x"`, `"content":"x","images":5`},
			{`"done":true`, `"done":"true"`}, {`"done_reason":"stop"`, `"done_reason":5`}, {`"done_reason":"stop"`, `"done_reason":"because"`},
			{`"role":"assistant"`, `"role":5`}, {`"role":"assistant"`, `"role":"user"`}, {`"arguments":{"amount":5}`, `"arguments":"{\"amount\":5}"`},
			{`"id":"c"`, `"id":5`}, {`"eval_count":1`, `"eval_count":"1","Eval_Count":2`},
		},
		refused: [][2]string{
			{`"tool_calls":[`, `"Tool_Calls":[`}, {`"tool_calls":[`, `"tool_calls":[],"tool_calls":[`}, {`"message":{`, `"message":{},"message":{`}, {`"function":{`, `"Function":{`},
			{`"name":"pay"`, `"name":"pay","Name":"steal"`}, {`"name":"pay"`, `"name":5`}, {`"tool_calls":[`, `"tool_calls":{"0":1},"x":[`}, {`"message":{`, `"error":"x","message":{`},
		},
	},
}

// spread are changes that every format reads alike.
func (c target) spread() (read, refused [][2]string) {
	deep := strings.Repeat("[", 1001) + strings.Repeat("]", 1001)
	read = append(read, c.read...)
	for _, at := range []string{`{"id":"r"`, `{"candidates"`, `{"model":"m"`} {
		for _, unknown := range []string{`"x":` + deep, `"x":"` + "\xff" + `"`, "\"\xff\":1", `"x":1,"x":2,"X":3`} {
			read = append(read, [2]string{at, "{" + unknown + "," + at[1:]})
		}
	}
	refused = append(refused, c.refused...)
	if key, _, ok := strings.Cut(c.arguments, ":"); ok {
		key = strings.Trim(key, `"`)
		bad := strings.TrimPrefix(c.bad, `"`+key)
		refused = append(refused, [2]string{c.arguments, c.arguments + "," + c.bad}, [2]string{c.arguments, c.bad + "," + c.arguments},
			[2]string{c.arguments, c.arguments + `,"` + otherCase(key) + bad}, [2]string{c.arguments, `"` + otherCase(key) + bad + "," + c.arguments},
			[2]string{c.arguments, c.arguments + `,"` + strings.ToUpper(key) + bad},
			[2]string{c.arguments, c.arguments + `,"\u0061` + key[1:] + bad})
	}
	return read, refused
}

// An answer that is a little out of shape is read, and what was read is what a
// client reads. What came comes out, and a change reaches the client or is
// refused.
func TestOutOfShapeIsRead(t *testing.T) {
	t.Parallel()
	for name, c := range targets {
		read, _ := c.spread()
		for _, edit := range read {
			for _, body := range []string{c.whole, c.stream} {
				if body == "" || !strings.Contains(body, edit[0]) {
					continue
				}
				body = strings.ReplaceAll(body, edit[0], edit[1])
				t.Run(name+" "+edit[1][:min(40, len(edit[1]))], func(t *testing.T) {
					t.Parallel()
					requirePays(t, c.codec, body, `{"amount":5}`)
				})
			}
		}
	}
}

// requirePays requires that body holds the call with those arguments, and can be edited.
func requirePays(t *testing.T, c wire.Codec, body, arguments string) {
	t.Helper()
	resp, err := c.DecodeResponse(nil, []byte(body))
	require.NoError(t, err, body)
	require.Len(t, resp.Message.ToolCalls, 1, body)
	require.Equal(t, "pay", resp.Message.ToolCalls[0].Name)
	require.Equal(t, arguments, resp.Message.ToolCalls[0].Arguments)
	out, err := c.EncodeResponse(resp)
	require.NoError(t, err)
	same, err := c.DecodeResponse(nil, out)
	require.NoError(t, err, string(out))
	require.Equal(t, callsOf(resp), callsOf(same))
	resp.Message.ToolCalls[0].Arguments = `{"amount":6}`
	if out, err = c.EncodeResponse(resp); err != nil {
		require.ErrorIs(t, err, wire.ErrUnencodable)
		return
	}
	again, err := c.DecodeResponse(nil, out)
	require.NoError(t, err, string(out))
	require.Equal(t, `{"amount":6}`, again.Message.ToolCalls[0].Arguments)
}

// Where clients may read other calls than this package, the answer is unreadable, or what
// leaves is written, so that all of them read what was validated.
func TestOutOfShapeHasOneReading(t *testing.T) {
	t.Parallel()
	for name, c := range targets {
		_, refused := c.spread()
		for _, edit := range refused {
			for _, body := range []string{c.whole, c.stream} {
				if body == "" || !strings.Contains(body, edit[0]) {
					continue
				}
				body = strings.ReplaceAll(body, edit[0], edit[1])
				t.Run(name+" "+edit[1], func(t *testing.T) {
					t.Parallel()
					requireOneReading(t, c.codec, body)
				})
			}
		}
	}
}

// requireOneReading requires that body cannot be read, or that what is written of it has
// each member once and the calls that were read; nothing of a call is shown before.
func requireOneReading(t *testing.T, c wire.Codec, body string) {
	t.Helper()
	for _, size := range []int{1, len(body)} {
		s := c.NewStream(nil, nil)
		var err error
		for at := 0; at < len(body) && err == nil; at += size {
			_, err = s.Write([]byte(body[at : at+size]))
		}
		shown := string(s.Take())
		require.NotContains(t, shown, "pay")
		resp, closed := s.Close()
		var refused *middleware.ModelError
		if err = errors.Join(err, closed); err != nil {
			require.True(t, errors.Is(err, wire.ErrShape) || errors.Is(err, wire.ErrIncomplete) || errors.As(err, &refused), "%v", err)
			continue
		}
		out, err := c.EncodeResponse(resp)
		require.NoError(t, err)
		rest, err := s.Rest(resp)
		require.NoError(t, err)
		for _, left := range []string{string(out), shown + string(rest)} {
			again, err := c.DecodeResponse(nil, []byte(left))
			require.NoError(t, err, left)
			require.Equal(t, callsOf(resp), callsOf(again))
			for line := range strings.Lines(left) {
				line = strings.TrimSpace(strings.TrimPrefix(line, "data:"))
				if doc, err := rawjson.Parse(line, rawjson.Limits{Depth: -1, AnyBytes: true}); err == nil && doc.Root().Kind() == rawjson.Object {
					for i := range resp.Message.ToolCalls { // what is wrong in the arguments is for the validator
						if a := resp.Message.ToolCalls[i].Arguments; a != "" {
							line = strings.ReplaceAll(line, a, "{}")
						}
					}
					doc, err = rawjson.Parse(line, rawjson.Limits{Depth: -1, AnyBytes: true})
					require.NoError(t, err, line)
					require.True(t, doc.HasPlainKeys(), line)
				}
			}
		}
	}
}

// requireUnreadable requires that body cannot be read, and that nothing of its call
// was safe to show.
func requireUnreadable(t *testing.T, c wire.Codec, body string) {
	t.Helper()
	for _, size := range []int{1, len(body)} {
		s := c.NewStream(nil, nil)
		var err error
		for at := 0; at < len(body) && err == nil; at += size {
			_, err = s.Write([]byte(body[at : at+size]))
		}
		require.NotContains(t, body[:s.Safe()], "pay")
		_, closed := s.Close()
		require.ErrorIs(t, errors.Join(err, closed), wire.ErrShape, body)
	}
}

// Lines of a stream end as the HTML standard defines. All lines that leave end in LF, or all
// in CRLF.
func TestLinesOfAStream(t *testing.T) {
	t.Parallel()
	for name, c := range targets {
		if !strings.Contains(c.stream, "data: ") {
			continue
		}
		for how, body := range map[string]string{
			"CRLF":                strings.ReplaceAll(c.stream, "\n", "\r\n"),
			"CR":                  strings.ReplaceAll(c.stream, "\n", "\r"),
			"an unknown line":     "foo\n\n" + c.stream,
			"unknown fields":      strings.ReplaceAll(c.stream, "data: ", "bar: 1\ndata: "),
			"a byte order mark":   "\ufeff" + c.stream,
			"a mark, then a line": "\ufeff\n" + c.stream,
			"a comment with CRLF": ": hello\r\n\r\n" + c.stream,
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				for _, size := range []int{1, 7, len(body)} {
					s := c.codec.NewStream(nil, nil)
					for at := 0; at < len(body); at += size {
						_, err := s.Write([]byte(body[at:min(len(body), at+size)]))
						require.NoError(t, err)
					}
					resp, err := s.Close()
					require.NoError(t, err)
					require.Len(t, resp.Message.ToolCalls, 1)
					require.Equal(t, `{"amount":5}`, resp.Message.ToolCalls[0].Arguments)
				}
			})
		}
		for how, body := range map[string]string{
			"a comment that a CR ends": edited(t, c.stream, "data: ", ": x\rdata: "),
			"a CR in the data":         edited(t, c.stream, `"pay",`, "\"pay\",\r"),
			"a CR before the data":     strings.ReplaceAll(c.stream, "data: ", "data: \r"),
			"a mark before the call":   "\ufeff" + c.stream[strings.LastIndex(c.stream[:strings.Index(c.stream, "pay")], "\n\n")+2:],
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				requireOneReading(t, c.codec, body)
			})
		}
	}
}

// Calls of a chat stream are identified by their index, else by their id, else by their order.
func TestIndexOfStreamedCall(t *testing.T) {
	t.Parallel()
	for _, index := range []string{`"index":-1,`, ``, `"index":null,`, `"index":"x",`, `"index":"0",`, `"index":70000,`, `"index":[],`} {
		for _, id := range []string{`"id":"c",`, `"id":7,`, ``} {
			t.Run(index+id, func(t *testing.T) {
				t.Parallel()
				head := `{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`
				first := `{"choices":[{"index":0,"delta":{"tool_calls":[{` + index + id + `"type":"function","function":{"name":"pay","arguments":"{\"amount\":"}}]}}]}`
				more := `{"choices":[{"index":0,"delta":{"tool_calls":[{` + index + `"function":{"arguments":"5}"}}]}}]}`
				end := `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
				requirePays(t, wire.OpenAIChat(), dataEvents(head, first, more, end, "[DONE]"), `{"amount":5}`)
				requirePays(t, wire.OpenAIChat(), dataEvents(first, more, end), `{"amount":5}`)
				if index == `"index":"0",` || index == `"index":70000,` {
					return
				}
				second := strings.NewReplacer(`"c"`, `"d"`, `7`, `8`, `pay`, `rest`).Replace(first)
				resp, err := wire.OpenAIChat().DecodeResponse(nil, []byte(dataEvents(head, first, more, second, more, end)))
				require.NoError(t, err)
				require.Len(t, resp.Message.ToolCalls, 2)
				require.Equal(t, "rest", resp.Message.ToolCalls[1].Name)
				require.Equal(t, `{"amount":5}`, resp.Message.ToolCalls[1].Arguments)
			})
		}
	}
}

// Some clients stop reading at an error or at the end of a stream: only the others see a later
// call. One half of a line is not a line, and a reader that does not split lines joins the
// halves.
func TestCallsThatSomeClientsDoNotSee(t *testing.T) {
	t.Parallel()
	chat, ollama := targets["chat"], targets["ollama"]
	first, rest, _ := strings.Cut(chat.stream, "\n\n")
	line, lines, _ := strings.Cut(ollama.stream, "\n")
	const failed = `"error":{"message":"x","code":500}`
	for name, c := range map[string]struct {
		codec wire.Codec
		body  string
	}{
		"chat, beside an error":         {chat.codec, edited(t, chat.whole, `{"id"`, `{`+failed+`,"id"`)},
		"chat, beside an error, stream": {chat.codec, strings.ReplaceAll(chat.stream, `{"id"`, `{`+failed+`,"id"`)},
		"chat, behind an error":         {chat.codec, dataEvents(`{`+failed+`}`) + chat.stream},
		"chat, behind the end":          {chat.codec, first + "\n\n" + dataEvents("[DONE]") + rest},
		"ollama, behind the end":        {ollama.codec, edited(t, line, `"done":false`, `"done":true`) + "\n" + lines},
		"ollama, behind an error":       {ollama.codec, `{"error":"x"}` + "\n" + ollama.stream},
		"ollama, in two lines":          {ollama.codec, line + "\n" + `{"message":{"tool_calls":[{"function":{"name":"pay"}}` + "\n" + `]},"done":true}` + "\n" + lines},
		"ollama, behind other text":     {ollama.codec, line + "\n" + `x {"message":{"tool_calls":[{"function":{"name":"pay"}}]}}` + "\n" + lines},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireUnreadable(t, c.codec, c.body)
		})
	}
}

// Indices that are strings keep calls apart.
func TestIndexOfStreamedCallAsString(t *testing.T) {
	t.Parallel()
	delta := func(index, function string) string {
		return `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":"` + index + `","function":{` + function + `}}]}}]}`
	}
	resp, err := wire.OpenAIChat().DecodeResponse(nil, []byte(dataEvents(delta("0", `"name":"pay","arguments":"{"`), delta("0", `"arguments":"\"a\":1}"`),
		delta("1", `"name":"rest","arguments":"{"`), delta("1", `"arguments":"\"b\":2}"`), "[DONE]")))
	require.NoError(t, err)
	require.Equal(t, `{"a":1}`, resp.Message.ToolCalls[0].Arguments)
	require.Equal(t, `{"b":2}`, resp.Message.ToolCalls[1].Arguments)
}
