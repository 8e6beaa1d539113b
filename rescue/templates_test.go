package rescue_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
)

// template is what the chat template of a model writes for one call or two, and for
// arguments of several types. The source is the file in the model's repository, where no
// other is named.
type template struct {
	markup rescue.Markup
	source string
	text   string
	calls  []string
	model  string // of forms without marks
	rest   string
}

const (
	oslo = `get_weather{"city": "Oslo"}`
	days = `get_weather{"city": "Oslo", "days": 3}`
)

// templates has a case for each row of the table of forms.
var templates = []template{
	{markup: "hermes", source: "NousResearch/Hermes-2-Pro-Llama-3-8B, tokenizer_config.json", calls: []string{days},
		text: "<tool_call>\n{\"arguments\": {\"city\": \"Oslo\", \"days\": 3}, \"name\": \"get_weather\"}\n</tool_call>"},
	{markup: "hermes", source: "NousResearch/Hermes-2-Pro-Mistral-7B, as BFCL 2024 recorded it: a Python dictionary", calls: []string{days},
		text: "<tool_call>\n{'arguments': {'city': 'Oslo', 'days': 3,}, 'name': 'get_weather'}\n</tool_call>"},
	{markup: "hermes", source: "the same, with a bracket too many", calls: []string{days},
		text: "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}}\n</tool_call>"},
	{markup: "hermes", source: "the same without the opening tag, which servers drop as a control token", calls: []string{days},
		text: "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}\n</tool_call>"},
	{markup: "qwen3-coder", source: "Qwen/Qwen3-Coder-30B-A3B-Instruct, chat_template.jinja", calls: []string{days},
		text: "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"},
	{markup: "qwen3-coder", source: "ByteDance-Seed/Seed-OSS-36B-Instruct, chat_template.jinja", calls: []string{days, "get_time{}"},
		text: "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Oslo</parameter>\n<parameter=days>3</parameter>\n</function>\n</seed:tool_call>\n<seed:tool_call>\n<function=get_time>\n</function>\n</seed:tool_call>"},
	{markup: "glm", source: "zai-org/GLM-4.5, chat_template.jinja", calls: []string{days},
		text: "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>"},
	{markup: "glm", source: "zai-org/GLM-4.7, chat_template.jinja", calls: []string{days},
		text: "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value><arg_key>days</arg_key><arg_value>3</arg_value></tool_call>"},
	{markup: "glm", source: "THUDM/glm-4-9b-chat, tokenizer_config.json", calls: []string{days}, model: "glm-4-9b-chat",
		text: "get_weather\n{\"city\": \"Oslo\", \"days\": 3}"},
	{markup: "hunyuan", source: "tencent/Hy3, as vLLM's hy_v3_tool_parser.py reads it", calls: []string{days, "get_time{}"},
		text: "<tool_calls>\n<tool_call>get_weather<tool_sep>\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n<tool_call>get_time<tool_sep>\n</tool_call>\n</tool_calls>"},
	{markup: "hunyuan", source: "tencent/Hy3 as published: each tag has the suffix of its tokenizer (token_suffix in the same file)", calls: []string{days, "get_time{}"},
		text: "<tool_calls:opensource>\n<tool_call:opensource>get_weather<tool_sep:opensource>\n<arg_key:opensource>city</arg_key:opensource>\n<arg_value:opensource>Oslo</arg_value:opensource>\n<arg_key:opensource>days</arg_key:opensource>\n<arg_value:opensource>3</arg_value:opensource>\n</tool_call:opensource>\n<tool_call:opensource>get_time<tool_sep:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>"},
	{markup: "mistral", source: "mistralai/Mistral-7B-Instruct-v0.3, tokenizer_config.json", calls: []string{days},
		text: `[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}, "id": "a1b2c3d4e"}]`},
	{markup: "mistral", source: "mistralai/Magistral-Small-2507, through mistral-common", calls: []string{days},
		text: `[TOOL_CALLS]get_weather[CALL_ID]a1b2c3d4e[ARGS]{"city": "Oslo", "days": 3}`},
	{markup: "mistral", source: "the same with the closing mark that some fine-tunes add", calls: []string{oslo},
		text: `[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo"}}][/TOOL_CALLS]`},
	{markup: "deepseek", source: "deepseek-ai/DeepSeek-V3-0324, tokenizer_config.json", calls: []string{days},
		text: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\": \"Oslo\", \"days\": 3}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
	{markup: "deepseek", source: "deepseek-ai/DeepSeek-V3.1, tokenizer_config.json", calls: []string{days, "get_time{}"},
		text: `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Oslo", "days": 3}<｜tool▁call▁end｜><｜tool▁call▁begin｜>get_time<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`},
	{markup: "deepseek", source: "deepseek-ai/DeepSeek-V3.2, encoding/encoding_dsv32.py", calls: []string{days},
		text: "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">Oslo</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" string=\"false\">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"},
	{markup: "deepseek", source: "the same without the mark that begins the section", calls: []string{oslo},
		text: "<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">Oslo</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"},
	{markup: "deepseek", source: "deepseek-ai/DeepSeek-V4.1, as SGLang's deepseekv41_detector.py reads it", calls: []string{oslo},
		text: "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"get_weather\">\n<｜DSML｜ parameter name=\"city\" string=\"true\">Oslo</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>"},
	{markup: "harmony", source: "openai/harmony, docs/format.md", calls: []string{days},
		text: `<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo", "days": 3}<|call|>`},
	{markup: "harmony", source: "the same behind a prompt that ends in the role", calls: []string{days},
		text: ` to=functions.get_weather<|channel|>commentary <|constrain|>json<|message|>{"city": "Oslo", "days": 3}<|call|>`},
	{markup: "kimi", source: "moonshotai/Kimi-K2-Instruct, docs/tool_call_guidance.md", calls: []string{days},
		text: `<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Oslo", "days": 3}<|tool_call_end|><|tool_calls_section_end|>`},
	{markup: "kimi", source: "moonshotai/Kimi-K3, chat_template.jinja", calls: []string{days},
		text: `<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>Oslo<|close|>argument<|sep|><|open|>argument key="days" type="number"<|sep|>3<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>`},
	{markup: "llama", source: "meta-llama/Llama-3.1-8B-Instruct, prompt format", calls: []string{days},
		text: `<|python_tag|>{"name": "get_weather", "parameters": {"city": "Oslo", "days": 3}}<|eom_id|>`},
	{markup: "llama", source: "meta-llama/Llama-3.1-8B-Instruct, prompt format, custom tools", calls: []string{days},
		text: `<function=get_weather>{"city": "Oslo", "days": 3}</function>`},
	{markup: "llama", source: "meta-llama/Llama-3.2-3B-Instruct, tokenizer_config.json", calls: []string{days},
		text: `{"name": "get_weather", "parameters": {"city": "Oslo", "days": 3}}`},
	{markup: "llama", source: "meta-llama/Llama-4-Scout-17B-16E-Instruct, prompt format", calls: []string{days, "get_time{}"},
		text: `<|python_start|>[get_weather(city="Oslo", days=3), get_time()]<|python_end|>`},
	{markup: "gemma", source: "google/functiongemma-270m-it, chat_template.jinja", calls: []string{days},
		text: "<start_function_call>call:get_weather{city:<escape>Oslo<escape>,days:3}<end_function_call>"},
	{markup: "gemma", source: "google/gemma-4-31B-it, chat_template.jinja", calls: []string{days},
		text: `<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>,days:3}<tool_call|>`},
	{markup: "gemma", source: "the same without the word call, as vLLM's tests have it", calls: []string{oslo},
		text: `<|tool_call>:get_weather{city:<|"|>Oslo<|"|>}<tool_call|>`},
	{markup: "gemma", source: "ai.google.dev/gemma/docs, function calling with Gemma 3", calls: []string{days},
		text: "```tool_code\nprint(get_weather(city=\"Oslo\", days=3))\n```"},
	{markup: "json", source: "no template: what small models write", calls: []string{days},
		text: "```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}\n```"},
	{markup: "xlam", source: "Salesforce/xLAM-7b-fc-r, README.md", calls: []string{days, "get_time{}"}, model: "Salesforce/xLAM-7b-fc-r",
		text: `{"tool_calls": [{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}, {"name": "get_time", "arguments": {}}]}`},
	{markup: "granite", source: "ibm-granite/granite-20b-functioncalling, README.md", calls: []string{days, "get_time{}"},
		text: `<function_call> {"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}} <function_call> {"name": "get_time", "arguments": {}}`},
	{markup: "granite", source: "ibm-granite/granite-3.1-8b-instruct, tokenizer_config.json", calls: []string{days},
		text: `<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}]`},
	{markup: "granite", source: "microsoft/Phi-4-mini-instruct, as llama.cpp's template has it", calls: []string{days},
		text: `<|tool_call|>{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}<|/tool_call|>`},
	{markup: "functools", source: "microsoft/Phi-4-mini-instruct and fireworks-ai/llama-3-firefunction-v2, as vLLM's phi4mini_tool_parser.py reads it", calls: []string{days},
		text: `functools[{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}]`},
	{markup: "functools", source: "the same with text around it, in vLLM's tests", calls: []string{oslo}, rest: "I look.\n\nWait.",
		text: "I look.\nfunctools[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}]\nWait."},
	{markup: "cohere", source: "CohereLabs/c4ai-command-r7b-12-2024, tokenizer_config.json", calls: []string{days}, rest: "<|START_THINKING|>I look.<|END_THINKING|>",
		text: "<|START_THINKING|>I look.<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"get_weather\", \"parameters\": {\"city\": \"Oslo\", \"days\": 3}}\n]<|END_ACTION|>"},
	{markup: "cohere", source: "CohereLabs/c4ai-command-r-plus, tokenizer_config.json", calls: []string{days},
		text: "Action: ```json\n[\n    {\n        \"tool_name\": \"get_weather\",\n        \"parameters\": {\"city\": \"Oslo\", \"days\": 3}\n    }\n]```"},
	{markup: "longcat", source: "meituan-longcat/LongCat-Flash-Chat, as vLLM's longcat_tool_parser.py reads it", calls: []string{days},
		text: "<longcat_tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}</longcat_tool_call>"},
	{markup: "longcat", source: "meituan-longcat/LongCat-Flash-Thinking, chat_template.jinja", calls: []string{days},
		text: "<longcat_tool_call>get_weather\n<longcat_arg_key>city</longcat_arg_key>\n<longcat_arg_value>Oslo</longcat_arg_value>\n<longcat_arg_key>days</longcat_arg_key>\n<longcat_arg_value>3</longcat_arg_value>\n</longcat_tool_call>"},
	{markup: "internlm", source: "internlm/internlm2_5-7b-chat, as vLLM's internlm2_tool_parser.py reads it", calls: []string{days}, rest: "I look.",
		text: `I look.<|action_start|><|plugin|>{"name": "get_weather", "parameters": {"city": "Oslo", "days": 3}}<|action_end|>`},
	{markup: "gigachat", source: "ai-sage/GigaChat3-10B-A1.8B, chat_template.jinja", calls: []string{days}, rest: "I look.",
		text: "I look.<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}<|message_sep|>\n\n"},
	{markup: "gigachat", source: "the same without a text before it", calls: []string{days},
		text: "function call<|role_sep|>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}"},
	{markup: "nemotron", source: "nvidia/NVIDIA-Nemotron-Nano-9B-v2, tokenizer_config.json", calls: []string{days, "get_time{}"},
		text: `<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}, {"name": "get_time", "arguments": {}}]</TOOLCALL>`},
	{markup: "apriel", source: "ServiceNow-AI/Apriel-1.6-15b-Thinker, chat_template.jinja", calls: []string{days},
		text: `<tool_calls>[{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}, "id": "a"}]</tool_calls>`},
	{markup: "apertus", source: "swiss-ai/Apertus-8B-Instruct-2509, chat_template.jinja", calls: []string{days, "get_time{}"},
		text: `<|tools_prefix|>[{"get_weather": {"city": "Oslo", "days": 3}}, {"get_time": {}}]<|tools_suffix|>`},
	{markup: "lfm", source: "LiquidAI/LFM2-1.2B, chat_template.jinja", calls: []string{days, "get_time{}"},
		text: `<|tool_call_start|>[get_weather(city="Oslo", days=3), get_time()]<|tool_call_end|>`},
	{markup: "lfm", source: "LiquidAI/LFM2.5-8B-A1B, chat_template.jinja", calls: []string{`get_weather{"city": "Oslo", "more": {"a": [1, true]}}`},
		text: `<|tool_call_start|>[get_weather(city='Oslo', more={"a": [1, true]})]<|tool_call_end|>`},
	{markup: "olmo", source: "allenai/Olmo-3-7B-Instruct, chat_template.jinja", calls: []string{days, "get_time{}"},
		text: "<function_calls>get_weather(city=\"Oslo\", days=3)\nget_time()</function_calls>"},
	{markup: "minimax", source: "MiniMaxAI/MiniMax-M2, chat_template.jinja", calls: []string{days, "get_time{}"},
		text: "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Oslo</parameter>\n<parameter name=\"days\">3</parameter>\n</invoke>\n<invoke name=\"get_time\">\n</invoke>\n</minimax:tool_call>"},
	{markup: "minimax", source: "MiniMaxAI/MiniMax-M3, as SGLang's minimax_m3.py reads it", calls: []string{`get_weather{"city": "Oslo", "days": 3, "tags": ["a", 5], "more": {"b": "c"}}`},
		text: m3("<tool_call>\n", `<invoke name="get_weather">`, "<city>Oslo", "</city>", "<days>3", "</days>", "<tags>", "<item>a", "</item>", "<item>5", "</item>", "</tags>", "<more>", "<b>c", "</b>", "</more>", "</invoke>\n", "</tool_call>")},
	{markup: "minicpm", source: "openbmb/MiniCPM5, as SGLang's minicpm5_detector.py reads it", calls: []string{days, `get_weather{"city": "O\ns"}`},
		text: "<function name=\"get_weather\"><param name=\"city\">Oslo</param><param name=\"days\">3</param></function><function name=\"get_weather\"><param name=\"city\"><![CDATA[O\ns]]></param></function>"},
	{markup: "minicpm", source: "the same as some servers decode it, in vLLM's tests", calls: []string{days},
		text: "<functionname=\"get_weather\"><paramname=\"city\">Oslo</param><paramname=\"days\">3</param></function>"},
	{markup: "step", source: "stepfun-ai/step3, as vLLM's step3_tool_parser.py reads it", calls: []string{days},
		text: "<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"get_weather\"><steptml:parameter name=\"city\">Oslo</steptml:parameter><steptml:parameter name=\"days\">3</steptml:parameter></steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>"},
	{markup: "muse", source: "Muse Glimmer, as SGLang's muse_glimmer_detector.py reads it", calls: []string{days},
		text: "<atem:function_calls>\n<atem:invoke name=\"get_weather\">\n<atem:parameter name=\"city\">Oslo</atem:parameter>\n<atem:parameter name=\"days\">3</atem:parameter>\n</atem:invoke>\n</atem:function_calls>"},
	{markup: "dots", source: "rednote-hilab/dots, as SGLang's dots_detector.py reads it", calls: []string{days},
		text: "<dots_function_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Oslo</parameter>\n<parameter name=\"days\">3</parameter>\n</invoke>\n</dots_function_call>"},
	{markup: "dots", source: "the same in JSON", calls: []string{days},
		text: `<dots_function_call>{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}</dots_function_call>`},
	{markup: "functionary", source: "meetkai/functionary-small-v3.2, tokenizer_config.json", calls: []string{days}, model: "functionary-small-v3.2",
		text: ">>>get_weather\n{\"city\": \"Oslo\", \"days\": 3}"},
	{markup: "functionary", source: "the same behind a prompt that ends in the mark", calls: []string{days}, model: "functionary-small-v3.2",
		text: "get_weather\n{\"city\": \"Oslo\", \"days\": 3}"},
}

// m3 writes the tags of MiniMax M3.
func m3(tags ...string) string { return "]<]minimax[>[" + strings.Join(tags, "]<]minimax[>[") }

// TestTemplates: what the template of each family writes is read, by the markup of its
// row, in every split. A form without marks is read only if the model writes it or it
// was chosen, and not if the request asks for JSON.
func TestTemplates(t *testing.T) {
	t.Parallel()
	seen := map[rescue.Markup]bool{}
	for _, c := range templates {
		seen[c.markup] = true
		t.Run(string(c.markup)+": "+c.source, func(t *testing.T) {
			t.Parallel()
			for _, pieces := range append(splits(c.text), nil) {
				req, shown := request(), screen{}
				req.Model = c.model
				var asked []*middleware.Request
				model := answers(&asked, c.text)
				if pieces != nil {
					req.Sink, model = shown.event, streamed(model, pieces)
				}
				resp, err := rescue.New(rescue.Options{})(model)(context.Background(), req)
				require.NoError(t, err)
				require.Equal(t, c.calls, calls(resp.Message), "%v", resp.Report.Attempts[0].Issues)
				require.Equal(t, c.rest, strings.TrimSpace(resp.Message.Text()))
				require.Equal(t, "rescue/"+string(c.markup), resp.Report.Attempts[0].Changes[0].By)
				require.Len(t, asked, 1)
				if pieces != nil {
					require.Equal(t, c.rest, strings.TrimSpace(string(shown.text)))
				}
			}
			// In a code block, or in the request, it is not a call.
			var asked []*middleware.Request
			resp, err := rescue.New(rescue.Options{ReaskUnread: true})(answers(&asked, "Write:\n`````\n"+c.text+"\n`````\n"))(context.Background(), request())
			require.NoError(t, err)
			require.Empty(t, resp.Message.ToolCalls)
			require.Len(t, asked, 1)
			quoting := request()
			quoting.Model = c.model
			quoting.Messages = append(quoting.Messages, middleware.User("See "+c.text))
			asked = nil
			resp, err = rescue.New(rescue.Options{ReaskUnread: true})(answers(&asked, c.text))(context.Background(), quoting)
			require.NoError(t, err)
			require.Empty(t, resp.Message.ToolCalls)
			require.Len(t, asked, 1)
			if c.model == "" {
				return
			}
			for _, o := range []rescue.Options{{}, {Markups: []rescue.Markup{c.markup}}} {
				for _, params := range []string{``, `{"response_format": {"type": "json_object"}}`} {
					req := request()
					req.Params = []byte(params)
					resp, err := rescue.New(o)(answers(&asked, c.text))(context.Background(), req)
					require.NoError(t, err)
					require.Equal(t, o.Markups != nil && params == "", len(resp.Message.ToolCalls) > 0)
					require.Equal(t, o.Markups == nil && params == "", rescue.Unread(resp.Report))
				}
			}
		})
	}
	require.ElementsMatch(t, rescue.Markups(), slices.Collect(func(yield func(rescue.Markup) bool) {
		for m := range seen {
			if !yield(m) {
				return
			}
		}
	}))
}

// TestEachForm: each row of the table reads a template that no other row reads.
func TestEachForm(t *testing.T) {
	t.Parallel()
	needs := func(c template, row int) bool {
		req := request()
		req.Model = c.model
		return !slices.Equal(c.calls, rescue.ReadWithout(row, req, c.text))
	}
	for row := range rescue.Forms() {
		require.True(t, slices.ContainsFunc(templates, func(c template) bool { return needs(c, row) }), "no case needs %s", rescue.FormName(row))
	}
	for _, c := range templates {
		require.False(t, needs(c, -1), c.source)
	}
}
