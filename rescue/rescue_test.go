package rescue_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/rescue"
)

func tool(name, schema string) middleware.Tool {
	return middleware.Tool{Name: name, Parameters: json.RawMessage(schema)}
}

// request offers a few tools.
func request() *middleware.Request {
	return &middleware.Request{
		Messages: []middleware.Message{middleware.User("Go on.")},
		Tools: []middleware.Tool{
			tool("get_weather", `{"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "fast": {"type": "boolean"}, "tags": {"type": "array"}, "more": {"type": "object"}, "note": {"type": ["string", "null"]}, "any": {"type": ["string", "integer", "object"]}}}`),
			tool("get_time", `{"type": "object", "properties": {}}`),
			tool("write_file", `{"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}}`),
			{Name: "drop_table", Destructive: true},
			{Name: "shell", Kind: middleware.KindCustom},
		},
	}
}

// answers is a model that gives these texts one after the other, and the last one
// again and again. It records the requests.
func answers(asked *[]*middleware.Request, texts ...string) middleware.ModelCall {
	return func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		n := min(len(*asked), len(texts)-1)
		*asked = append(*asked, req)
		text, cut := strings.CutSuffix(texts[n], "\x00") // the length limit
		resp := &middleware.Response{Message: middleware.Assistant(text), FinishReason: middleware.FinishStop}
		if cut {
			resp.FinishReason = middleware.FinishLength
		}
		if req.Sink != nil {
			return resp, req.Sink(middleware.Event{Kind: middleware.EventText, Text: text})
		}
		return resp, nil
	}
}

// calls writes the calls of a message.
func calls(m middleware.Message) []string {
	var all []string
	for _, c := range m.ToolCalls {
		all = append(all, c.Name+c.Arguments)
	}
	return all
}

// TestMarkups has calls of the markups, beside those of the corpus.
func TestMarkups(t *testing.T) {
	t.Parallel()
	const oslo = `get_weather{"city": "Oslo"}`
	far := `get_weather{"city": "` + strings.Repeat("x", 189) + `"}`
	call := `<function_call>{"name": "get_weather", "arguments": ` + strings.TrimPrefix(far, "get_weather") + `}</function_call>`
	require.Equal(t, byte('>'), call[len(call)-256]) // of the second one's line
	for name, c := range map[string]struct {
		text, rest string
		calls      []string
	}{
		"hermes":                        {"Hm.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>", "Hm.\n", []string{oslo}},
		"indented":                      {"Now:\n    " + call, "Now:\n    ", []string{far}},
		"indented, at the beginning":    {"\n\n      " + call, "", []string{far}},
		"after a quotation":             {"> He wrote.\n\n" + call, "> He wrote.\n\n", []string{far}},
		"after marks":                   {"He’s “here”, ‘there’, «y» and 「z」: " + call, "He’s “here”, ‘there’, «y» and 「z」: ", []string{far}},
		"after an open mark, a line":    {"He wrote “now.\n" + call, "He wrote “now.\n", []string{far}},
		"after code":                    {"<pre>x</pre> <!-- y --> <code>z</code> ~~~ <prefix> " + call, "<pre>x</pre> <!-- y --> <code>z</code> ~~~ <prefix> ", []string{far}},
		"after a block of tildes":       {"~~~\nx\n~~~\n" + call, "~~~\nx\n~~~\n", []string{far}},
		"granite: calls in one line":    {call + call + call, "", []string{far, far, far}},
		"hermes: no closing tag":        {`<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}`, "", []string{oslo}},
		"hermes: no opening tag":        {`{"name": "get_weather", "arguments": {"city": "Oslo"}}` + "\n</tool_call>", "", []string{oslo}},
		"hermes: a list":                {`<tool_call>[{"name": "get_weather", "arguments": {"city": "Oslo"}}, {"name": "get_time"}]</tool_call>`, "", []string{oslo, "get_time{}"}},
		"hermes: arguments in a text":   {`<tool_call>{"name": "get_weather", "arguments": "{\"city\": \"Oslo\"}"}</tool_call>`, "", []string{oslo}},
		"hermes: the form of OpenAI":    {`<tool_call>{"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}</tool_call>`, "", []string{oslo}},
		"hermes: a variant of a name":   {`<tool_call>{"name": "functions.get_weather", "arguments": {"city": "Oslo"}}</tool_call>`, "", []string{oslo}},
		"qwen: several in one tag":      {"<tool_call>\n<function=get_time>\n</function>\n<function=get_time>\n</function>\n</tool_call>", "", []string{"get_time{}", "get_time{}"}},
		"qwen: types":                   {"<function=get_weather><parameter=days>3</parameter><parameter=fast>True</parameter><parameter=tags>[1]</parameter><parameter=note>null</parameter><parameter=city>5</parameter></function>", "", []string{`get_weather{"days": 3, "fast": true, "tags": [1], "note": null, "city": "5"}`}},
		"qwen: a union":                 {`<function=get_weather><parameter=any>{"a": 1}</parameter></function>`, "", []string{`get_weather{"any": {"a": 1}}`}},
		"qwen: a union, a number":       {`<function=get_weather><parameter=any>42</parameter></function>`, "", []string{`get_weather{"any": 42}`}},
		"qwen: a union, no integer":     {`<function=get_weather><parameter=any>4.2</parameter></function>`, "", []string{`get_weather{"any": "4.2"}`}},
		"qwen: a union, a list":         {`<function=get_weather><parameter=any>[1]</parameter></function>`, "", []string{`get_weather{"any": "[1]"}`}},
		"qwen: Python in a value":       {`<function=get_weather><parameter=more>{'a': None,}</parameter></function>`, "", []string{`get_weather{"more": {"a": null}}`}},
		"qwen: the last line break":     {"<function=write_file><parameter=content>a\n</parameter></function>", "", []string{`write_file{"content": "a\n"}`}},
		"qwen: both line breaks":        {"<function=write_file><parameter=content>\na\n\n</parameter></function>", "", []string{`write_file{"content": "a\n"}`}},
		"glm: line breaks of a value":   {"<tool_call>write_file<arg_key>content</arg_key><arg_value>\na\n</arg_value></tool_call>", "", []string{`write_file{"content": "\na\n"}`}},
		"ling: a role behind it":        {"<tool_call>get_time</tool_call><|role_end|>", "", []string{"get_time{}"}},
		"hermes: tokens behind it":      {`<tool_call>{"name": "get_time"}</tool_call><|im_end|>`, "", []string{"get_time{}"}},
		"hermes: > before the end":      {`<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}>` + "\n</tool_call>", "", []string{oslo}},
		"hermes: > at the end":          {`<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}>`, "", []string{oslo}},
		"hermes: > between calls":       {`<tool_call>{"name": "get_time"}><tool_call>{"name": "get_time"}}>`, "", []string{"get_time{}", "get_time{}"}},
		"hermes: > behind Python":       {`<tool_call>{'name': 'get_weather', 'arguments': {'city': 'Oslo', 'note': None}}></tool_call>`, "", []string{`get_weather{"city": "Oslo", "note": null}`}},
		"hermes: > in Python":           {`<tool_call>{'name': 'write_file', 'arguments': {'content': '}>'}}></tool_call>`, "", []string{`write_file{"content": "}>"}`}},
		"hermes: JavaScript":            {"<tool_call>{name: \"get_weather\", arguments: {city: \"Oslo\"}} // Oslo\n</tool_call>", "", []string{oslo}},
		"hermes: a mark in a string":    {`<tool_call>{'name': 'write_file', 'arguments': {'content': 'a</tool_call>b'}}</tool_call>`, "", []string{`write_file{"content": "a</tool_call>b"}`}},
		"kimi: Python":                  {`<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{'city': 'Oslo'}<|tool_call_end|>`, "", []string{oslo}},
		"harmony: Python":               {`<|channel|>commentary to=functions.get_weather<|message|>{'city': 'Oslo'}<|call|>`, "", []string{oslo}},
		"llama: parentheses":            {`[get_weather(city=('Oslo'), days=(3), tags=('a',), more={"a": ()})]`, "", []string{`get_weather{"city": "Oslo", "days": 3, "tags": ["a"], "more": {"a": []}}`}},
		"llama: a bracket too many":     {`[{"name": "get_weather", "arguments": {"city": "Oslo"}}]]`, "", []string{oslo}},
		"glm":                           {"<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>", "", []string{oslo}},
		"mistral":                       {`A[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}`, "A", []string{oslo}},
		"mistral: without a mark":       {`[TOOL_CALLS]get_weather{"city": "Oslo"}`, "", []string{oslo}},
		"deepseek":                      {"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Oslo\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "", []string{oslo}},
		"kimi":                          {`<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Oslo"}<|tool_call_end|><|tool_call_begin|>functions.get_time:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>`, "", []string{oslo, "get_time{}"}},
		"kimi: without a section":       {"Well.\n<|tool_call_begin|>functions.get_weather:0\n<|tool_call_argument_begin|>{\"city\": \"Oslo\"}<|tool_call_end|>", "Well.\n", []string{oslo}},
		"kimi 3":                        {`<|open|>response<|sep|>Well.<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>Oslo<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>`, "Well.", []string{oslo}},
		"llama: JSON":                   {`{"name": "get_weather", "parameters": {"city": "Oslo"}}`, "", []string{oslo}},
		"llama: several":                {`{"name": "get_weather", "parameters": {"city": "Oslo"}}; {"name": "get_time", "parameters": {}}<|eom_id|>`, "", []string{oslo, "get_time{}"}},
		"llama: tag":                    {`Now.<|python_tag|>{"name": "get_weather", "parameters": {"city": "Oslo"}}`, "Now.", []string{oslo}},
		"llama: Python":                 {`[get_weather(city='Oslo', days=-3, fast=False, tags=[1, "a\n"], more={'a': None}), get_time()]`, "", []string{`get_weather{"city": "Oslo", "days": -3, "fast": false, "tags": [1, "a\n"], "more": {"a": null}}`, "get_time{}"}},
		"llama: Python between tokens":  {`<|python_start|>[get_weather(city="Oslo")]<|python_end|>`, "", []string{oslo}},
		"llama: function tag":           {`<function=get_weather>{"city": "Oslo"}</function>`, "", []string{oslo}},
		"harmony":                       {`<|channel|>commentary<|message|>So.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>`, "So.", []string{oslo}},
		"gemma: block":                  {"Right.\n```tool_code\nprint(default_api.get_weather(city=\"Oslo\"))\n```", "Right.\n", []string{oslo}},
		"gemma: block, several":         {"```tool_code\nget_weather(city=\"Oslo\")\nget_time()\n```", "", []string{oslo, "get_time{}"}},
		"gemma: block, list":            {"```tool_code\n[get_weather(city=\"Oslo\"), get_time()]\n```", "", []string{oslo, "get_time{}"}},
		"gemma: function":               {"<start_function_call>call:get_weather{city:<escape>Oslo<escape>}<end_function_call>", "", []string{oslo}},
		"gemma: tokens":                 {`<|tool_call>call:get_weather{city:<|"|>O{s,lo<|"|>,days:3,fast:true,tags:[<|"|>a<|"|>,1],more:{a:null}}<tool_call|>`, "", []string{`get_weather{"city": "O{s,lo", "days": 3, "fast": true, "tags": ["a", 1], "more": {"a": null}}`}},
		"gemma: no closing token":       {`<|tool_call>call:get_time{}<tool_call|><|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}`, "", []string{"get_time{}", oslo}},
		"json block":                    {"```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n```\n", "", []string{oslo}},
		"json: tool_name, params":       {`{"tool_name": "get_weather", "params": {"city": "Oslo"}}`, "", []string{oslo}},
		"json: tool_call":               {`{"tool_call": "get_weather", "parameters": {"city": "Oslo"}}`, "", []string{oslo}},
		"json block: around a call":     {"```json\n{\"tool_call\": {\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}}\n```", "", []string{oslo}},
		"json: the same in a reasoning": {"{\"name\": \"get_time\", \"arguments\": {}}\n</think>\n{\"name\": \"get_time\", \"arguments\":  {}}", "{\"name\": \"get_time\", \"arguments\": {}}\n</think>\n", []string{"get_time{}"}},
		"gemma: block, JSON":            {"```tool_code\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n```", "", []string{oslo}},
		"json block without a language": {"```\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n```", "", []string{oslo}},
		"behind reasoning":              {"<think>Hm, <tool_call> it is.</think>\n\n<tool_call>{\"name\": \"get_time\", \"arguments\": {}}</tool_call>", "<think>Hm, <tool_call> it is.</think>\n\n", []string{"get_time{}"}},
		"ends reasoning":                {"<think>I call <tool_call>{\"name\": \"get_time\", \"arguments\": {}}</tool_call>\n</think>", "<think>I call \n</think>", []string{"get_time{}"}},
		"one whole, one cut":            {"<tool_call>{\"name\": \"get_time\", \"arguments\": {}}</tool_call><tool_call>{\"name\": \"get_wea\x00", "", []string{"get_time{}"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, _ := strings.CutSuffix(c.text, "\x00")
			for _, pieces := range append(splits(text), nil) {
				var asked []*middleware.Request
				model := answers(&asked, c.text)
				var shown screen
				req := request()
				if pieces != nil {
					req.Sink = shown.event
					model = streamed(model, pieces)
				}
				resp, err := rescue.New(rescue.Options{})(model)(context.Background(), req)
				require.NoError(t, err)
				require.Len(t, asked, 1)
				require.Equal(t, c.calls, calls(resp.Message), "%v", resp.Report.Attempts[0].Issues)
				require.Equal(t, c.rest, resp.Message.Text())
				require.Equal(t, middleware.FinishToolCalls, resp.FinishReason)
				require.Equal(t, middleware.Unchecked, resp.Report.Status)
				if pieces != nil {
					require.Equal(t, c.rest, string(shown.text), "%q", pieces)
				}
			}
		})
	}
}

// streamed shows the text of model in pieces.
func streamed(model middleware.ModelCall, pieces []string) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		quiet := *req
		quiet.Sink = nil
		resp, err := model(ctx, &quiet)
		for _, p := range pieces {
			if err == nil {
				err = req.Sink(middleware.Event{Kind: middleware.EventText, Text: p})
			}
		}
		if err != nil {
			return nil, err
		}
		return resp, nil
	}
}

// TestNoCalls has texts that are passed on as they are, without a re-ask.
func TestNoCalls(t *testing.T) {
	t.Parallel()
	const call = `<tool_call>{"name": "get_time", "arguments": {}}</tool_call>`
	for name, text := range map[string]string{
		"plain":                         "It is noon.",
		"a code block":                  "Write this:\n```xml\n" + call + "\n```\nand wait.",
		"between backticks":             "Write `" + call + "` and wait.",
		"in quotation marks":            `The page says "` + call + `".`,
		"in a quotation":                "He wrote:\n> " + call,
		"in a long quotation":           "> " + strings.Repeat("He wrote. ", 30) + call,
		"indented":                      "Write:\n\n    " + call,
		"a block of tildes":             "Write this:\n~~~xml\n" + call + "\n~~~\nand wait.",
		"tildes and backticks":          "~~~\n```\n" + call + "\n```\n~~~",
		"backticks and tildes":          "```\n~~~\n" + call + "\n~~~\n```",
		"pre":                           "<pre>\n" + call + "\n</pre>",
		"PRE with a class":              "See <PRE class=\"x\">" + call + "</PRE>.",
		"code":                          "See <code>" + call + "</code>.",
		"code in pre":                   "See <pre><code>" + call + "</code></pre>.",
		"a comment":                     "<!-- " + call + " -->",
		"a blockquote":                  "<blockquote>\n<p>" + call + "</p>\n</blockquote>",
		"q":                             "He wrote <q>" + call + "</q>.",
		"a line after a quotation":      "> He wrote:\n" + call,
		"lines after a quotation":       "> He wrote\nat noon:\n" + call + "\n",
		"typographic marks":             "The page says “" + call + "”.",
		"typographic marks, apart":      "The page says “do " + call + " now”.",
		"single typographic marks":      "The page says ‘" + call + "’.",
		"a typographic mark, a line":    "The page says “\n" + call + "\n”.",
		"low marks":                     "Die Seite sagt „" + call + "“.",
		"guillemets":                    "La page dit « " + call + " ».",
		"guillemets, inwards":           "Die Seite sagt »" + call + "«.",
		"corner brackets":               "ページには「" + call + "」とある。",
		"white corner brackets":         "ページには『" + call + "』とある。",
		"double angle brackets":         "页面写着《" + call + "》。",
		"a wide mark":                   "页面写着＂" + call + "＂。",
		"JSON that is not a call":       `{"name": "Oslo", "population": 5}`,
		"JSON of another form":          `{"name": "get_whether", "arguments": {}, "score": 5}`,
		"JSON of no tool, in a text":    `{"name": "get_whether", "arguments": {}} is a call.`,
		"a block of no tool, in a text": "```json\n{\"name\": \"get_whether\", \"arguments\": {}}\n```\nis a call.",
		"JSON5 that is data":            `{name: "get_time", size: 5}`,
		"JSON before text":              `{"name": "get_time", "arguments": {}} is a call.`,
		"a JSON block in a text":        "Like this:\n```json\n{\"name\": \"get_time\", \"arguments\": {}}\n```\nand wait.",
		"the name of a tag":             "The tag <tool_call> begins a call, and </tool_call> ends it.",
		"granite: no function":          `<function_call> {"name": "no_function", "arguments": {}}`,
		"hermes: no function":           `<tool_call>{"name": "no_function"}</tool_call>`,
		"HTML":                          "<function=foo> is not HTML, <div> is.",
		"code with brackets":            "if a[TOOL] < b { return x<y }",
		"in reasoning":                  "<think>" + call + " would be one way.</think>Noon.",
		"in open reasoning":             "<think>" + call + " would be one way, but",
		"a module":                      "Use functools, or functools.partial, of Python.",
		"a list that is data":           `[1, 2, {"name": "get_time"}]`,
		"text of a list":                "[get_time] is a tool.",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, pieces := range splits(text) {
				var asked []*middleware.Request
				var shown screen
				req := request()
				req.Sink = shown.event
				resp, err := rescue.New(rescue.Options{})(streamed(answers(&asked, text), pieces))(context.Background(), req)
				require.NoError(t, err)
				require.Len(t, asked, 1, "%v", resp.Report.Attempts[0].Issues)
				require.Empty(t, resp.Message.ToolCalls)
				require.Equal(t, text, resp.Message.Text())
				require.Equal(t, text, string(shown.text))
			}
		})
	}
}

// TestReasks: a call that is not certain is sent back once, with its reason.
func TestReasks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, code, contains string }{
		"cut by the limit":              {"<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Os\x00", "truncated", "shorter"},
		"cut at the mark":               {"I look.\n<tool_call>\x00", "truncated", "shorter"},
		"ends early":                    {`<tool_call>{"name": "get_weather", "arguments": {"city": "Os`, "incomplete", "ends inside"},
		"no JSON":                       {`<tool_call>{"name": get_weather}</tool_call>`, "unreadable", "not JSON"},
		"unknown tool":                  {`<tool_call>{"name": "get_whether", "arguments": {}}</tool_call>`, "unknown_tool", "get_whether"},
		"a custom tool":                 {`<tool_call>{"name": "shell", "arguments": {"a": "b"}}</tool_call>`, "unknown_tool", "shell"},
		"arguments twice":               {`<tool_call>{"name": "get_time", "arguments": {}, "parameters": {}}</tool_call>`, "ambiguous", "once"},
		"a parameter twice":             {"<function=get_weather><parameter=city>a</parameter><parameter=city>b</parameter></function>", "ambiguous", "twice"},
		"an unknown parameter":          {"<function=get_weather><parameter=where>Oslo</parameter></function>", "ambiguous", "does not declare"},
		"two possible ends":             {"<tool_call>get_weather<arg_key>city</arg_key><arg_value>a</tool_call>\n<tool_call>get_weather<arg_key>city</arg_key><arg_value>b</arg_value></tool_call>", "unreadable", "the end of a call"},
		"no closing mark, a later one":  {"<tool_call><function=write_file><parameter=content></parameter></tool_call><function=write_file><parameter=content></parameter></function></tool_call>", "unreadable", "a later one"},
		"a mark left over":              {"<function=write_file><parameter=content><function=get_time></parameter></function>\n</parameter></function>", "ambiguous", "left over"},
		"two markups":                   {`[TOOL_CALLS]get_time[ARGS]{}<tool_call>{"name": "get_time"}</tool_call>`, "ambiguous", "two markups"},
		"an example":                    {`For example: <tool_call>{"name": "get_time"}</tool_call>`, "uncertain", "example"},
		"a destructive tool":            {`<tool_call>{"name": "drop_table", "arguments": {"a": 1}}</tool_call>`, "destructive", "never executed"},
		"JSON of another tool":          {`{"name": "get_whether", "arguments": {}}`, "uncertain", "no tool get_whether"},
		"a block of another tool":       {"```json\n{\"tool_name\": \"get_whether\", \"params\": {}}\n```", "uncertain", "no tool get_whether"},
		"JSON with a comment":           {"```json\n{\"name\": \"get_weather\", \"arguments\": {\"days\": 3} // three\n}\n```", "uncertain", "not JSON"},
		"bare JSON, not closed":         {`{"name": "get_weather", "arguments": {"days": 3}`, "incomplete", "ends inside"},
		"bare JSON with a comment":      {"{\"name\": \"get_weather\", // the forecast\n\"arguments\": {\"days\": 3}}", "uncertain", "not JSON"},
		"another call in the reasoning": {`{"name": "get_time", "arguments": {}}</think>{"name": "get_weather", "arguments": {}}`, "ambiguous", "reasoning"},
		"a number of no kind":           {"```tool_code\nget_weather(days=007)\n```", "unreadable", "Python"},
		"a bracket too few":             {`<tool_call>{"name": "get_time", "arguments": {}</tool_call>`, "unreadable", "not JSON"},
		"Python that is cut":            {"<tool_call>{'name': 'get_weather', 'arguments': {'city': 'Os\x00", "truncated", "shorter"},
		"two tags of one name":          {m3("<tool_call>", `<invoke name="get_weather">`, "<city>a", "<city>b", "</city>", "</city>", "</invoke>", "</tool_call>"), "unreadable", "parameters"},
		"an unknown tag":                {m3("<tool_call>", `<invoke name="get_weather">`, "<where>a", "</where>", "</invoke>", "</tool_call>"), "ambiguous", "does not declare"},
		"Python with a value":           {"```tool_code\nx = 1\n```", "unreadable", "Python"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked []*middleware.Request
			var shown screen
			req := request()
			req.Sink = shown.event
			resp, err := rescue.New(rescue.Options{})(answers(&asked, c.text, "Done."))(context.Background(), req)
			require.NoError(t, err)
			require.Len(t, asked, 2)
			require.Equal(t, "Done.", resp.Message.Text())
			require.Equal(t, "Done.", string(shown.text))
			first := resp.Report.Attempts[0]
			require.Equal(t, c.code, first.Issues[0].Code)
			require.Len(t, first.Replies, 1)
			require.Contains(t, first.Replies[0].Text(), c.contains)
			history := asked[1].Messages
			require.Equal(t, strings.TrimSuffix(c.text, "\x00"), history[len(history)-2].Text())
			require.Equal(t, first.Replies[0].Text(), history[len(history)-1].Text())

			// With Pass the last attempt is returned as it is.
			asked = nil
			_, err = rescue.New(rescue.Options{})(answers(&asked, c.text))(context.Background(), request())
			if c.code == "uncertain" {
				require.NoError(t, err)
			} else {
				var failed *rescue.Error
				require.ErrorIs(t, err, rescue.ErrExhausted)
				require.ErrorAs(t, err, &failed)
				require.Equal(t, c.code, failed.Issue.Code)
				require.Equal(t, strings.TrimSuffix(c.text, "\x00"), failed.Response.Message.Text())
				require.Equal(t, "invalid_tool_call", failed.ErrorType())
				require.Contains(t, failed.ClientMessage(), "("+c.code+")")
				require.NotContains(t, err.Error(), "city")
				require.Len(t, middleware.ReportOf(nil, err).Attempts, 2)
			}
			asked = nil
			resp, err = rescue.New(rescue.Options{OnExhausted: middleware.Pass})(answers(&asked, c.text))(context.Background(), request())
			require.NoError(t, err)
			require.Len(t, asked, 2)
			require.Empty(t, resp.Message.ToolCalls)
			require.Equal(t, strings.TrimSuffix(c.text, "\x00"), resp.Message.Text())
			want := middleware.Invalid
			if c.code == "uncertain" {
				want = middleware.NoCalls
			}
			require.Equal(t, want, resp.Report.Status)
		})
	}
}

// TestLeftAlone has responses and requests that are not read.
func TestLeftAlone(t *testing.T) {
	t.Parallel()
	const call = `<tool_call>{"name": "get_time"}</tool_call>`
	for name, c := range map[string]struct {
		req  func(*middleware.Request)
		resp func(*middleware.Response)
	}{
		"no tools":           {req: func(r *middleware.Request) { r.Tools = nil }},
		"no function tools":  {req: func(r *middleware.Request) { r.Tools = r.Tools[4:] }},
		"not allowed":        {req: func(r *middleware.Request) { r.AllowedTools = []string{"none_of_them"} }},
		"no tool allowed":    {req: func(r *middleware.Request) { r.ToolChoice.Mode = middleware.ToolNone }},
		"calls of its own":   {resp: func(r *middleware.Response) { r.Message.ToolCalls = []middleware.ToolCall{{ID: "a", Name: "get_time"}} }},
		"stopped by filters": {resp: func(r *middleware.Response) { r.FinishReason = middleware.FinishFilter }},
		"invalid already":    {resp: func(r *middleware.Response) { r.Report.Status = middleware.Invalid }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, resp := request(), &middleware.Response{Message: middleware.Assistant(call), FinishReason: middleware.FinishStop}
			if c.req != nil {
				c.req(req)
			}
			if c.resp != nil {
				c.resp(resp)
			}
			out, err := rescue.New(rescue.Options{})(func(context.Context, *middleware.Request) (*middleware.Response, error) { return resp, nil })(context.Background(), req)
			require.NoError(t, err)
			require.Equal(t, resp.Message, out.Message)
			require.Equal(t, resp.FinishReason, out.FinishReason)
		})
	}
}

// TestReasoning: reasoning is read only if there is no text and the call ends it.
func TestReasoning(t *testing.T) {
	t.Parallel()
	const call = `<tool_call>{"name": "get_time"}</tool_call>`
	for name, c := range map[string]struct {
		thought, text string
		calls         int
		left          string
	}{
		"at the end":    {"I call.\n" + call, "", 1, "I call.\n"},
		"in the middle": {call + "\nNo, I do not.", "", 0, call + "\nNo, I do not."},
		"beside a text": {call, "It is noon.", 0, call},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := middleware.Message{Role: middleware.RoleAssistant, Parts: []middleware.Part{{Kind: middleware.PartReasoning, Text: c.thought}, {Text: c.text}}}
			var shown screen
			req := request()
			req.Sink = shown.event
			out, err := rescue.New(rescue.Options{})(func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
				if err := req.Sink(middleware.Event{Kind: middleware.EventReasoning, Text: c.thought}); err != nil {
					return nil, err
				}
				return &middleware.Response{Message: m}, req.Sink(middleware.Event{Kind: middleware.EventText, Text: c.text})
			})(context.Background(), req)
			require.NoError(t, err)
			require.Len(t, out.Message.ToolCalls, c.calls)
			require.Equal(t, c.left, out.Message.Parts[0].Text)
			require.Equal(t, c.text, string(shown.text))
			require.Equal(t, c.left, string(shown.thought))
		})
	}
}

// TestOptions: the markups, and destructive tools.
func TestOptions(t *testing.T) {
	t.Parallel()
	var asked []*middleware.Request
	model := answers(&asked, `[TOOL_CALLS]drop_table[ARGS]{"name": "x"}`)
	out, err := rescue.New(rescue.Options{AllowDestructive: true})(model)(context.Background(), request())
	require.NoError(t, err)
	require.Equal(t, []string{`drop_table{"name": "x"}`}, calls(out.Message))

	out, err = rescue.New(rescue.Options{AllowDestructive: true, Markups: []rescue.Markup{"hermes"}})(model)(context.Background(), request())
	require.NoError(t, err)
	require.Empty(t, out.Message.ToolCalls)

	req := request()
	req.ToolChoice.Name = "get_time"
	out, err = rescue.New(rescue.Options{AllowDestructive: true, MaxAttempts: 1, OnExhausted: middleware.Pass})(model)(context.Background(), req)
	require.NoError(t, err)
	require.Empty(t, out.Message.ToolCalls, "only the tool that is demanded")

	out, err = rescue.New(rescue.Options{Destructive: []string{"get_time"}, MaxAttempts: 1, OnExhausted: middleware.Pass})(answers(&asked, "[TOOL_CALLS]get_time[ARGS]{}"))(context.Background(), request())
	require.NoError(t, err)
	require.Empty(t, out.Message.ToolCalls, "marked by the option")

	require.ErrorContains(t, rescue.Options{Markups: []rescue.Markup{"xml"}}.Validate(), "Markups")
	require.Panics(t, func() { rescue.New(rescue.Options{MaxAttempts: -1}) })
	require.Subset(t, rescue.Markups(), []rescue.Markup{"hermes", "json", "olmo"})
}

// TestIDs: a rescued call has an id that the conversation does not have.
func TestIDs(t *testing.T) {
	t.Parallel()
	req := request()
	old := middleware.ToolCall{ID: "rescue_2", Name: "get_time", Arguments: "{}"}
	req.Messages = append(req.Messages, middleware.Assistant("", old), middleware.ToolReply(old, "noon"))
	var asked []*middleware.Request
	out, err := rescue.New(rescue.Options{})(answers(&asked, `[TOOL_CALLS]get_time[ARGS]{}[TOOL_CALLS]get_time[ARGS]{}`))(context.Background(), req)
	require.NoError(t, err)
	require.Equal(t, "rescue_2_2", out.Message.ToolCalls[0].ID)
	require.Equal(t, "rescue_3", out.Message.ToolCalls[1].ID)
	require.Equal(t, 2, out.Report.Rescued())
}

// TestLaws holds the middleware to the rules of package middleware.
func TestLaws(t *testing.T) { middlewaretest.Run(t, rescue.New(rescue.Options{})) }
