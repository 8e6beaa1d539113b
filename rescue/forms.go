package rescue

import (
	"slices"
	"strings"
)

// form is one way to write calls: marks, and the text between them. To add a
// family of models, add its rows to forms, and their cases to TestTemplates.
type form struct {
	markup Markup
	// opens begin a section of calls, and closes end it. inner begin a call that
	// may occur outside of a section.
	opens, inner, closes []string
	// item reads one or more calls at an index of the section. The default is items.
	item func(f *form, s *source, i int) reading
	// read reads the whole form in place of section.
	read func(f *form, s *source, at int) reading
	// parts are the marks of a call inside a section.
	parts
	// shared means that the opening marks also begin other text: a section without a
	// call is then ignored. Without shared it is malformed.
	shared bool
	// strict means that nothing but a closing mark may follow the calls.
	strict bool
	// keyed means that a call in JSON has the name of the tool as its only key.
	keyed bool
	// first means that the form counts only at the beginning of an answer.
	first bool
	// models are words in the names of the models that write a form without marks.
	// Other models must be configured for it.
	models []string
}

// parts are the marks of one call.
type parts struct {
	call, head string // before and after the name
	end        string // after the call
	// A parameter is its mark, its key, keyEnd, perhaps the mark of its value, and
	// the value up to valueEnd.
	param, keyEnd, value, valueEnd string
	// lines means that the markup puts a value between two line breaks.
	lines bool
	loose func(f *form, s *source, name string, from int) func(at int) match
}

// The parts that several families write.
var (
	invoke    = parts{call: "<invoke name=", head: ">", param: "<parameter name=", keyEnd: ">", valueEnd: "</parameter>", end: "</invoke>", lines: true}
	qwenParts = parts{call: "<function=", head: ">", param: "<parameter=", keyEnd: ">", valueEnd: "</parameter>", end: "</function>", lines: true, loose: qwenLoose}
	glmParts  = parts{call: "<tool_call>", param: "<arg_key>", keyEnd: "</arg_key>", value: "<arg_value>", valueEnd: "</arg_value>", end: "</tool_call>", loose: glmLoose}
	hyParts   = parts{call: "<tool_call>", head: "<tool_sep>", param: "<arg_key>", keyEnd: "</arg_key>", value: "<arg_value>", valueEnd: "</arg_value>", end: "</tool_call>"}
	kimiParts = parts{call: "<|tool_call_begin|>", head: "<|tool_call_argument_begin|>", end: "<|tool_call_end|>"}
)

// with returns parts with a prefix in their marks.
func (p parts) with(prefix string) parts {
	for _, mark := range []*string{&p.call, &p.param, &p.keyEnd, &p.value, &p.valueEnd, &p.end} {
		*mark = strings.Replace(*mark, "<", "<"+prefix, 1)
		*mark = strings.Replace(*mark, "<"+prefix+"/", "</"+prefix, 1)
	}
	return p
}

// tagged returns parts with a suffix in their marks.
func (p parts) tagged(suffix string) parts {
	for _, mark := range []*string{&p.call, &p.head, &p.param, &p.keyEnd, &p.value, &p.valueEnd, &p.end} {
		*mark = strings.Replace(*mark, ">", suffix+">", 1)
	}
	return p
}

// one returns the marks of a form that has one of each.
func one(mark string) []string { return []string{mark} }

// forms are the forms of all markups. The sources are those of TestTemplates.
var forms = []form{
	{markup: "hermes", opens: one("<tool_call>"), closes: one("</tool_call>"), item: jsonItem, shared: true, strict: true},
	{markup: "hermes", inner: one("{"), closes: one("</tool_call>"), read: readTail, first: true},
	{markup: "qwen3-coder", opens: []string{"<tool_call>"}, inner: one("<function="), closes: one("</tool_call>"), item: elementItem, parts: qwenParts, shared: true},
	{markup: "qwen3-coder", opens: one("<seed:tool_call>"), closes: one("</seed:tool_call>"), item: elementItem, parts: qwenParts},
	{markup: "glm", inner: one("<tool_call>"), item: elementItem, parts: glmParts, shared: true},
	{markup: "glm", first: true, item: namedItem, parts: parts{head: "\n"}, read: readBare, models: []string{"glm-4-", "glm4-", "chatglm"}},
	{markup: "hunyuan", opens: one("<tool_calls>"), closes: one("</tool_calls>"), item: elementItem, shared: true, parts: hyParts},
	{markup: "hunyuan", opens: one("<tool_calls:opensource>"), closes: one("</tool_calls:opensource>"), item: elementItem, parts: hyParts.tagged(":opensource")},
	{markup: "mistral", opens: one("[TOOL_CALLS]"), closes: one("[/TOOL_CALLS]"), item: mistralItem, shared: true},
	{markup: "deepseek", opens: one("<｜tool▁calls▁begin｜>"), closes: one("<｜tool▁calls▁end｜>"), item: namedItem,
		parts: parts{call: "<｜tool▁call▁begin｜>", head: "<｜tool▁sep｜>", end: "<｜tool▁call▁end｜>"}},
	{markup: "deepseek", opens: []string{"<｜DSML｜function_calls>", "<｜DSML｜tool_calls>"}, closes: []string{"</｜DSML｜function_calls>", "</｜DSML｜tool_calls>"},
		inner: one(`<｜DSML｜invoke name="`), item: elementItem, parts: dsml(""), strict: true},
	{markup: "deepseek", opens: one("<｜DSML｜ calls>"), closes: one("</｜DSML｜ calls>"), item: elementItem, parts: dsml(" "), strict: true},
	{markup: "harmony", opens: []string{harmonyChannel, harmonyStart}, read: readHarmony},
	{markup: "harmony", opens: []string{" " + harmonyRecipient, harmonyRecipient}, read: readHarmony, first: true},
	{markup: "kimi", opens: []string{"<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"}, closes: []string{"<|tool_calls_section_end|>", "<|tool_call_section_end|>"},
		inner: one(kimiParts.call), item: namedItem, parts: kimiParts},
	{markup: "kimi", opens: one(kimi3Tools), inner: []string{kimi3ResponseOpen, kimi3ResponseClose}, closes: one("<|close|>tools<|sep|>"), read: readKimi3, item: elementItem, strict: true,
		parts: parts{call: `<|open|>call tool=`, head: "<|sep|>", param: "<|open|>argument key=", keyEnd: "<|sep|>", valueEnd: "<|close|>argument<|sep|>", end: "<|close|>call<|sep|>"}},
	{markup: "llama", opens: []string{"<|python_tag|>", "<|python_start|>"}, closes: one("<|python_end|>")},
	{markup: "llama", inner: one("<function="), item: namedItem, parts: parts{call: "<function=", head: ">", end: "</function>"}, shared: true},
	{markup: "llama", first: true, inner: []string{"{", "["}, closes: one("<|python_end|>"), read: readBare, item: bareItem, shared: true},
	{markup: "gemma", opens: one("<|tool_call>"), closes: one("<tool_call|>"), item: gemmaItem, parts: parts{value: `<|"|>`}, strict: true},
	{markup: "gemma", opens: one("<start_function_call>"), closes: one("<end_function_call>"), item: gemmaItem, parts: parts{value: "<escape>"}, strict: true},
	{markup: "gemma", opens: one("```tool_code"), closes: one("```"), strict: true},
	{markup: "json", opens: one("```"), first: true, read: readJSONBlock},
	{markup: "xlam", inner: one("{"), first: true, read: readBare, item: bareItem, models: []string{"xlam"}},
	{markup: "granite", opens: []string{"<function_call>", "<|tool_call|>"}, closes: []string{"</function_call>", "<|/tool_call|>"}, item: jsonItem, shared: true},
	{markup: "functools", inner: one("functools["), item: jsonItem, parts: parts{call: "functools"}},
	{markup: "cohere", opens: one("<|START_ACTION|>"), closes: one("<|END_ACTION|>"), item: jsonItem},
	{markup: "cohere", opens: []string{"Action: ```json", "Action:```json"}, closes: one("```"), item: jsonItem, shared: true, strict: true, first: true},
	{markup: "longcat", opens: one("<longcat_tool_call>"), closes: one("</longcat_tool_call>"), item: jsonItem, shared: true, strict: true},
	{markup: "longcat", inner: one("<longcat_tool_call>"), item: elementItem, parts: glmParts.with("longcat_"), shared: true},
	{markup: "internlm", opens: []string{"<|action_start|><|plugin|>", "<|action_start|> <|plugin|>"}, closes: one("<|action_end|>"), item: jsonItem},
	{markup: "gigachat", opens: []string{"<|function_call|>", "<|message_sep|>\n\nfunction call<|role_sep|>"}, closes: one("<|message_sep|>"), item: jsonItem, shared: true},
	{markup: "gigachat", opens: one("function call<|role_sep|>"), closes: one("<|message_sep|>"), item: jsonItem, first: true},
	{markup: "nemotron", opens: one("<TOOLCALL>"), closes: one("</TOOLCALL>"), item: jsonItem, shared: true},
	{markup: "apriel", opens: one("<tool_calls>"), closes: one("</tool_calls>"), item: jsonItem, shared: true},
	{markup: "apertus", opens: one("<|tools_prefix|>"), closes: one("<|tools_suffix|>"), item: jsonItem, keyed: true},
	{markup: "lfm", opens: one("<|tool_call_start|>"), closes: one("<|tool_call_end|>")},
	{markup: "olmo", opens: one("<function_calls>"), closes: one("</function_calls>"), item: pythonItem, shared: true, strict: true},
	{markup: "minimax", opens: []string{"<minimax:tool_call>", "<function_calls>"}, closes: []string{"</minimax:tool_call>", "</function_calls>"}, inner: one(`<invoke name="`), item: elementItem, parts: invoke, shared: true},
	{markup: "minimax", opens: one(minimaxToken + "<tool_call>"), closes: one(minimaxToken + "</tool_call>"), item: minimaxItem, strict: true},
	{markup: "minicpm", inner: []string{`<function name="`, `<function name='`}, item: elementItem, shared: true,
		parts: parts{call: "<function name=", head: ">", param: "<param name=", keyEnd: ">", valueEnd: "</param>", end: "</function>", lines: true}},
	{markup: "minicpm", inner: []string{`<functionname="`}, item: elementItem, shared: true, // the same without spaces
		parts: parts{call: "<functionname=", head: ">", param: "<paramname=", keyEnd: ">", valueEnd: "</param>", end: "</function>", lines: true}},
	{markup: "step", opens: one("<｜tool_calls_begin｜>"), closes: one("<｜tool_calls_end｜>"), item: stepItem, parts: invoke.with("steptml:")},
	{markup: "muse", opens: one("<atem:function_calls>"), closes: one("</atem:function_calls>"), inner: one(`<atem:invoke name="`), item: elementItem, parts: invoke.with("atem:")},
	{markup: "dots", opens: one("<dots_function_call>"), closes: one("</dots_function_call>"), item: elementItem, parts: invoke},
	{markup: "dots", opens: one("<dots_function_call>"), closes: one("</dots_function_call>"), item: jsonItem},
	{markup: "functionary", opens: one(">>>"), item: namedItem, parts: parts{head: "\n"}, first: true, read: readBare, models: []string{"functionary"}},
	{markup: "functionary", item: namedItem, parts: parts{head: "\n"}, first: true, read: readBare, models: []string{"functionary"}},
}

// dsml returns the parts of DeepSeek's XML, in which a space may follow the token.
func dsml(space string) parts {
	p := invoke.with("｜DSML｜" + space)
	p.lines = false
	return p
}

// marks returns the openers of a form.
func (f *form) marks() []string { return append(slices.Clone(f.opens), f.inner...) }

// closers are the closing marks of raw values and their calls. A closer outside of a call
// shows that the call ended too early: its value held a closing mark.
var closers = func() (all []string) {
	for _, f := range forms {
		if f.valueEnd != "" {
			all = append(append(all, f.valueEnd, f.end), f.closes...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}()

// tails are tokens after a call that some servers leave in the text.
var tails = []string{"<|eom_id|>", "<|eot_id|>", "<|eot|>", "<|im_end|>", "<|role_end|>", "[/TOOL_CALLS]", "<|python_end|>", "<|tool_response>", "</s>", "<|endoftext|>"}

// thinking are the marks around reasoning that a server left in the text. A
// chat template may have written the first of a pair into the prompt.
var thinking = []struct{ open, close string }{
	{"<think>", "</think>"},
	{"[THINK]", "[/THINK]"},
	{"<|channel>", "<channel|>"},
	{"<|open|>think<|sep|>", "<|close|>think<|sep|>"},
	{"<seed:think>", "</seed:think>"},
	{"<|START_THINKING|>", "<|END_THINKING|>"},
}

// thoughtEnds are the closing marks of thinking.
var thoughtEnds = func() (all []string) {
	for _, p := range thinking {
		all = append(all, p.close)
	}
	return all
}()

// opener is where a form may begin.
type opener struct {
	*form
	mark string
}

// table is the openers of some markups, by their first byte.
type table struct {
	at     [256][]opener
	first  [256][]opener   // of the forms that begin an answer
	named  []opener        // of those that begin with the name of a tool
	stop   [256]bool       // bytes at which the scanner tries to read
	next   [256]bool       // the second bytes of marks
	chosen map[Markup]bool // by the options
}

// newTable returns the forms of these markups, or of all markups for nil. The scanner always
// stops at the marks of reasoning, closers, the marks of quotations and line ends.
func newTable(markups []Markup) *table {
	t := &table{chosen: map[Markup]bool{}}
	for _, m := range markups {
		t.chosen[m] = true
	}
	for i := range forms {
		f := &forms[i]
		if markups != nil && !t.chosen[f.markup] && len(f.models) == 0 {
			continue
		}
		for _, mark := range f.marks() {
			if f.first {
				t.first[mark[0]] = append(t.first[mark[0]], opener{f, mark})
				continue
			}
			t.at[mark[0]] = append(t.at[mark[0]], opener{f, mark})
			t.stop[mark[0]] = true
		}
		if len(f.opens)+len(f.inner) == 0 {
			t.named = append(t.named, opener{f, ""})
		}
	}
	for _, c := range append(slices.Clone(closers), thoughtEnds...) {
		t.stop[c[0]] = true
	}
	for _, openers := range t.at {
		for _, o := range openers {
			t.next[o.mark[1]] = true
		}
	}
	for _, c := range "<[`~-\n" {
		t.stop[c] = true
	}
	return t
}
