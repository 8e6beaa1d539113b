package rescue_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
)

// scraps are pieces of all markups, and of texts around them.
var scraps = []string{
	"<tool_call>", "</tool_call>", "<function=get_weather>", "<function=write_file>", "</function>", "<parameter=city>", "<parameter=content>", "</parameter>",
	"<arg_key>city</arg_key>", "<arg_value>", "</arg_value>", "get_weather", "get_time", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]12",
	"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", "function", "```json", "```",
	"<｜DSML｜function_calls>", `<｜DSML｜invoke name="get_weather">`, `<｜DSML｜parameter name="city" string="true">`, "</｜DSML｜parameter>", "</｜DSML｜invoke>", "</｜DSML｜function_calls>",
	"<|channel|>commentary to=functions.get_time ", "<|message|>", "<|call|>", "<|end|>", "<|start|>assistant", "<|channel|>analysis", " to=functions.get_time<|channel|>commentary",
	"<|tool_calls_section_begin|>", "<|tool_call_begin|>functions.get_time:0", "<|tool_call_argument_begin|>", "<|tool_call_end|>", "<|tool_calls_section_end|>",
	"<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|open|>tools<|sep|>", `<|open|>call tool="get_weather" index="1"<|sep|>`, `<|open|>argument key="city" type="string"<|sep|>`,
	"<|close|>argument<|sep|>", "<|close|>call<|sep|>", "<|close|>tools<|sep|>", "<|close|>message<|sep|>", "<|close|>think<|sep|>",
	"<|python_tag|>", "<|python_start|>", "<|python_end|>", "[get_time()]", "get_weather(city='Oslo')", "```tool_code\n", "print(", ")",
	"<start_function_call>", "call:get_weather{", "city:<escape>Oslo<escape>}", "<end_function_call>", "<|tool_call>", `city:<|"|>`, `<|"|>}`, "<tool_call|>",
	`{"name": "get_time", "arguments": {}}`, `{"name": "get_weather", "arguments": {"city": "O`, `slo"}}`, "{}", "{", "}", "[", "]", "<", "`", `"`, "\n", " ", "\n\n", "> ", "    ",
	"<seed:tool_call>", "</seed:tool_call>", "<minimax:tool_call>", "</minimax:tool_call>", `<invoke name="get_weather">`, `<parameter name="city">`, "</invoke>", "<function_calls>", "</function_calls>",
	"]<]minimax[>[<tool_call>", `]<]minimax[>[<invoke name="get_weather">`, "]<]minimax[>[<city>", "]<]minimax[>[</city>", "]<]minimax[>[</invoke>", "]<]minimax[>[</tool_call>",
	`<function name="get_weather">`, `<param name="city">`, "</param>", "<tool_calls>", "</tool_calls>", "<tool_sep>", "<longcat_tool_call>", "</longcat_tool_call>", "<TOOLCALL>", "</TOOLCALL>",
	"<｜tool_calls_begin｜>", "<｜tool_call_begin｜>", "<｜tool_sep｜>", `<steptml:invoke name="get_time">`, "</steptml:invoke>", "<｜tool_call_end｜>", "<｜tool_calls_end｜>",
	"<function_call>", "<|/tool_call|>", "<|tool_call|>", "functools[", "<|START_ACTION|>", "<|END_ACTION|>", "Action: ```json", "<|tool_call_start|>", "<|tool_call_end|>", "<|tools_prefix|>", "<|tools_suffix|>",
	"<|action_start|><|plugin|>", "<|action_end|>", "<|message_sep|>\n\nfunction call<|role_sep|>", "<dots_function_call>", ">>>get_weather\n", `{"tool_calls": [`, "]}", "{'name': 'get_time', 'arguments': {}}", "'", "<acme_call>", "<|im_end|>",
	"<think>", "</think>", "[THINK]", "[/THINK]", "So.", "For example", "å", "\xff", ",", ";", ":", "=", "(",
}

// run sends a text through the middleware in pieces, and returns the response
// and what a user saw.
func run(t require.TestingT, text string, pieces []string, finish middleware.FinishReason) (*middleware.Response, string) {
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		for _, p := range pieces {
			if err := req.Sink(middleware.Event{Kind: middleware.EventText, Text: p}); err != nil {
				return nil, err
			}
		}
		return &middleware.Response{Message: middleware.Assistant(text), FinishReason: finish}, nil
	}
	var shown screen
	req := request()
	req.Sink = shown.event
	resp, err := rescue.New(rescue.Options{MaxAttempts: 1, OnExhausted: middleware.Pass})(model)(context.Background(), req)
	require.NoError(t, err)
	return resp, string(shown.text)
}

// holds checks what is true of every text: nothing is lost or doubled, arguments
// are JSON objects, names are offered, and a sink shows the text of the response.
func holds(t require.TestingT, text string, resp *middleware.Response, shown string) {
	require.Equal(t, resp.Message.Text(), shown)
	if len(resp.Message.ToolCalls) == 0 {
		require.Equal(t, text, resp.Message.Text())
		return
	}
	left, names, wraps := len(text), 0, false
	for _, c := range resp.Report.Attempts[0].Changes {
		require.Contains(t, text, c.Before)
		left -= len(c.Before)
		wraps = wraps || slices.Contains([]string{"rescue/harmony", "rescue/kimi"}, c.By) // the text may stand inside
		if c.After != "" {
			names += strings.Count(c.After, ", ") + 1
		}
	}
	require.Equal(t, len(resp.Message.ToolCalls), names)
	if got := resp.Message.Text(); got != "" && !wraps {
		require.Len(t, got, left)
		at := 0
		for _, b := range []byte(got) {
			n := strings.IndexByte(text[at:], b)
			require.GreaterOrEqual(t, n, 0, "%q is not left of %q", got, text)
			at += n + 1
		}
	}
	for _, c := range resp.Message.ToolCalls {
		var object map[string]any
		if utf8.ValidString(c.Arguments) {
			require.NoError(t, json.Unmarshal([]byte(c.Arguments), &object), c.Arguments)
		}
		require.Contains(t, []string{"get_weather", "get_time", "write_file"}, c.Name)
	}
}

// TestSplits: any split of a text gives the same result.
func TestSplits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(scraps), 0, 14).Draw(t, "text"), "")
		finish := rapid.SampledFrom([]middleware.FinishReason{middleware.FinishStop, middleware.FinishLength}).Draw(t, "finish")
		want, shown := run(t, text, []string{text}, finish)
		holds(t, text, want, shown)
		var pieces []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "size")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		got, shown := run(t, text, pieces, finish)
		require.Equal(t, want.Message, got.Message)
		holds(t, text, got, shown)
	})
}

// TestWrittenIsReadBack: a call comes back as it was written, whatever stands in
// its arguments.
func TestWrittenIsReadBack(t *testing.T) {
	t.Parallel()
	quote := func(v any) string {
		b, _ := json.Marshal(v)
		return string(b)
	}
	forms := map[string]func(content string) string{
		"hermes": func(c string) string {
			return `<tool_call>{"name": "write_file", "arguments": {"content": ` + quote(c) + `}}</tool_call>`
		},
		"mistral": func(c string) string { return `[TOOL_CALLS]write_file[ARGS]{"content": ` + quote(c) + `}` },
		"deepseek": func(c string) string {
			return "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>write_file<｜tool▁sep｜>{\"content\": " + quote(c) + "}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
		},
		"kimi": func(c string) string {
			return "<|tool_calls_section_begin|><|tool_call_begin|>functions.write_file:0<|tool_call_argument_begin|>{\"content\": " + quote(c) + "}<|tool_call_end|><|tool_calls_section_end|>"
		},
		"harmony": func(c string) string {
			return "<|channel|>commentary to=functions.write_file <|constrain|>json<|message|>{\"content\": " + quote(c) + "}<|call|>"
		},
		"llama": func(c string) string { return `{"name": "write_file", "parameters": {"content": ` + quote(c) + `}}` },
		"dictionary": func(c string) string {
			return `<tool_call>{'name': 'write_file', 'arguments': {'content': ` + quote(c) + `},}</tool_call>`
		},
		"granite": func(c string) string {
			return `<function_call> {"name": "write_file", "arguments": {"content": ` + quote(c) + `}}`
		},
		"functools": func(c string) string {
			return `functools[{"name": "write_file", "arguments": {"content": ` + quote(c) + `}}]`
		},
		"cohere": func(c string) string {
			return `<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "write_file", "parameters": {"content": ` + quote(c) + `}}]<|END_ACTION|>`
		},
		"apertus": func(c string) string {
			return `<|tools_prefix|>[{"write_file": {"content": ` + quote(c) + `}}]<|tools_suffix|>`
		},
		"lfm": func(c string) string {
			return `<|tool_call_start|>[write_file(content=` + quote(c) + `)]<|tool_call_end|>`
		},
		"olmo":   func(c string) string { return `<function_calls>write_file(content=` + quote(c) + `)</function_calls>` },
		"python": func(c string) string { return `[write_file(content=` + quote(c) + `)]` },
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				content := strings.ToValidUTF8(strings.Join(rapid.SliceOfN(rapid.SampledFrom(scraps), 0, 10).Draw(t, "content"), ""), "")
				text := form(content)
				resp, shown := run(t, text, []string{text}, middleware.FinishStop)
				holds(t, text, resp, shown)
				require.Len(t, resp.Message.ToolCalls, 1, "%q: %v", text, resp.Report.Attempts[0].Issues)
				var got struct{ Content string }
				require.NoError(t, json.Unmarshal([]byte(resp.Message.ToolCalls[0].Arguments), &got))
				require.Equal(t, content, got.Content)
			})
		})
	}
}

// TestRawValues: a raw value that holds markup comes back as it was written, or
// the call is not made.
func TestRawValues(t *testing.T) {
	t.Parallel()
	forms := map[string]func(content string) string{
		"qwen": func(c string) string {
			return "<tool_call>\n<function=write_file>\n<parameter=content>\n" + c + "\n</parameter>\n</function>\n</tool_call>"
		},
		"glm": func(c string) string {
			return "<tool_call>write_file<arg_key>content</arg_key><arg_value>" + c + "</arg_value></tool_call>"
		},
		"seed": func(c string) string {
			return "<seed:tool_call>\n<function=write_file>\n<parameter=content>\n" + c + "\n</parameter>\n</function>\n</seed:tool_call>"
		},
		"minimax": func(c string) string {
			return "<minimax:tool_call>\n<invoke name=\"write_file\">\n<parameter name=\"content\">\n" + c + "\n</parameter>\n</invoke>\n</minimax:tool_call>"
		},
		"minicpm": func(c string) string {
			return "<function name=\"write_file\"><param name=\"content\">\n" + c + "\n</param></function>"
		},
		"step": func(c string) string {
			return "<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"write_file\"><steptml:parameter name=\"content\">\n" + c + "\n</steptml:parameter></steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>"
		},
		"m3": func(c string) string {
			return m3("<tool_call>", `<invoke name="write_file">`, "<content>"+c, "</content>", "</invoke>", "</tool_call>")
		},
		"hunyuan": func(c string) string {
			return "<tool_calls>\n<tool_call>write_file<tool_sep><arg_key>content</arg_key><arg_value>" + c + "</arg_value></tool_call></tool_calls>"
		},
		"kimi": func(c string) string {
			return `<|open|>tools<|sep|><|open|>call tool="write_file" index="1"<|sep|><|open|>argument key="content" type="string"<|sep|>` + c + "<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>"
		},
		"dsml": func(c string) string {
			return "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"write_file\">\n<｜DSML｜parameter name=\"content\" string=\"true\">" + c + "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"
		},
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				content := strings.ToValidUTF8(strings.Join(rapid.SliceOfN(rapid.SampledFrom(scraps), 0, 8).Draw(t, "content"), ""), "")
				text := form(content)
				resp, shown := run(t, text, []string{text}, middleware.FinishStop)
				holds(t, text, resp, shown)
				if len(resp.Message.ToolCalls) == 0 {
					return
				}
				var got struct{ Content string }
				require.NoError(t, json.Unmarshal([]byte(resp.Message.ToolCalls[0].Arguments), &got))
				require.Equal(t, content, got.Content, "%q", text)
			})
		})
	}
}

// TestLinear: 128 KiB of anything takes a moment, in pieces. Quadratic work
// would take minutes.
func TestLinear(t *testing.T) {
	t.Parallel()
	repeated := append([]string{
		`<tool_call>{"name": "get_time", "arguments": {}}</tool_call>`, `<tool_call>{"a": "`, "<tool_call>{'a': ", "</think><tool_call>{'a': '", m3("<tool_call>", `<invoke name="get_weather">`, "<tags>"), m3("<tool_call>", `<invoke name="get_weather">`, "<tags>", "</tags>", "</invoke>"), "<acme_call> ", "<acme_call>{\"name\": ", "<get_weather> ", `<tool_calls><tool_call>get_weather<tool_sep>`, "</think>functools[{", "</think>get_time\n{",
		"<tool_call><function=get_weather><parameter=city>", "<function=get_weather><parameter=city></parameter>x",
		"<tool_call>get_weather<arg_key>city</arg_key><arg_value></arg_value> ", "[TOOL_CALLS]get_time[ARGS]{}", "<|channel|>analysis<|message|>x<|end|>", "<|start|>assistant<|channel|>x<|message|>",
		"</think><tool_call>{", "[/THINK]<tool_call>{", "</think>{\"name\": \"", "</think>[get_time(", "<function=get_weather>{\"a\":", "```tool_code\nget_time()\n", "<|tool_call>call:get_weather{a:{", "[get_weather(a=[[", "<|python_tag|>{\"name\":\"get_time\",\"parameters\":{}};",
	}, scraps...)
	for _, r := range repeated {
		text := strings.Repeat(r, 1<<17/len(r))
		var pieces []string
		for at := 0; at < len(text); at += 64 {
			pieces = append(pieces, text[at:min(len(text), at+64)])
		}
		start := time.Now()
		resp, shown := run(t, text, pieces, middleware.FinishStop)
		require.Equal(t, resp.Message.Text(), shown)
		require.Less(t, time.Since(start), 10*time.Second, "%q", r)
	}
}

func FuzzText(f *testing.F) {
	for i := range scraps {
		f.Add(strings.Join(scraps[i:min(len(scraps), i+8)], ""), uint16(i), true)
	}
	f.Fuzz(func(t *testing.T, text string, at uint16, cut bool) {
		finish := middleware.FinishStop
		if cut {
			finish = middleware.FinishLength
		}
		want, shown := run(t, text, []string{text}, finish)
		holds(t, text, want, shown)
		n := int(at) % (len(text) + 1)
		got, shown := run(t, text, []string{text[:n], text[n:]}, finish)
		require.Equal(t, want.Message, got.Message)
		holds(t, text, got, shown)
	})
}
