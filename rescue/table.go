package rescue

import "slices"

// reader reads one markup where its opener stands.
type reader struct {
	markup Markup
	opener string
	first  bool // only at the beginning of the answer
	read   func(s *source, at int) reading
}

// readers are the readers of all markups. Several markups have the same opener.
var readers = []reader{
	{markup: Hermes, opener: toolCallOpen, read: readHermes},
	{markup: Hermes, opener: "{", first: true, read: readHermesTail},
	{markup: Qwen3Coder, opener: toolCallOpen, read: readQwenCoder},
	{markup: Qwen3Coder, opener: functionOpen, read: readQwenCoder},
	{markup: GLM, opener: toolCallOpen, read: readGLM},
	{markup: Mistral, opener: mistralOpen, read: readMistral},
	{markup: DeepSeek, opener: deepSeekOpen, read: readDeepSeek},
	{markup: DeepSeek, opener: dsmlOpen, read: readDSML},
	{markup: Harmony, opener: harmonyChannel, read: readHarmony},
	{markup: Harmony, opener: harmonyStart, read: readHarmony},
	{markup: Harmony, opener: " " + harmonyRecipient, first: true, read: readHarmony},
	{markup: Harmony, opener: harmonyRecipient, first: true, read: readHarmony},
	{markup: Kimi, opener: kimiSections[0], read: readKimi},
	{markup: Kimi, opener: kimiSections[1], read: readKimi},
	{markup: Kimi, opener: kimiCall, read: readKimi},
	{markup: Kimi, opener: kimi3ResponseOpen, read: readKimi3},
	{markup: Kimi, opener: kimi3ResponseClose, read: readKimi3},
	{markup: Kimi, opener: kimi3ToolsOpen, read: readKimi3},
	{markup: Llama, opener: llamaTag, read: readLlamaTag},
	{markup: Llama, opener: llamaStart, read: readLlamaTag},
	{markup: Llama, opener: functionOpen, read: readLlamaFunction},
	{markup: Llama, opener: "{", first: true, read: readLlamaBare},
	{markup: Llama, opener: "[", first: true, read: readLlamaBare},
	{markup: Gemma, opener: gemmaMarks[0].open, read: readGemma},
	{markup: Gemma, opener: gemmaMarks[1].open, read: readGemma},
	{markup: Gemma, opener: gemmaBlock, read: readGemmaBlock},
	{markup: JSONBlock, opener: "```", first: true, read: readJSONBlock},
}

// closers are the closing marks whose content may be any text. One that stands
// outside of a call shows that a call was closed too early.
var closers = []string{toolCallClose, functionClose, parameterClose, argKeyClose, argValueClose, dsmlClose, kimi3ArgumentClose, kimi3CallClose}

// thinking are the marks around reasoning that a server left in the text. A
// chat template may have written the first of a pair into the prompt.
var thinking = []struct{ open, close string }{
	{"<think>", "</think>"},
	{"[THINK]", "[/THINK]"},
	{"<|channel>", "<channel|>"},
	{"<|open|>think<|sep|>", "<|close|>think<|sep|>"},
}

// thoughtEnds are the closing marks of thinking.
var thoughtEnds = func() (all []string) {
	for _, p := range thinking {
		all = append(all, p.close)
	}
	return all
}()

// table is the readers of some markups, by the first byte of their openers.
type table struct {
	at   [256][]reader
	stop [256]bool // bytes at which the scanner looks closer
}

// newTable returns the readers of these markups. The marks of reasoning, the closers,
// backticks and line ends are looked at whatever the markups are.
func newTable(markups []Markup) *table {
	t := &table{}
	for _, r := range readers {
		if slices.Contains(markups, r.markup) {
			t.at[r.opener[0]] = append(t.at[r.opener[0]], r)
			t.stop[r.opener[0]] = true
		}
	}
	for _, c := range closers {
		t.stop[c[0]] = true
	}
	for _, p := range thinking {
		t.stop[p.open[0]], t.stop[p.close[0]] = true, true
	}
	t.stop['`'], t.stop['\n'] = true, true
	return t
}
