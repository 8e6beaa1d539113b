package hostile

import (
	"bytes"
	"compress/gzip"
	"math/rand/v2"
	"strings"
)

// text is an attack on package textcall: a repeated text.
func text(name, s string) Attack {
	return Attack{ReAct, name, func(size int) Sample {
		return Sample{Tools: some(tool("t", anyObject))(0), Text: fill(s, size)}
	}}
}

// texts are answers of models that only write text.
var texts = []Attack{
	text("opening braces", "{"),
	text("{action}", "{action} "),
	text("actions", "Action: t\nAction Input: {\n"),
	text("thoughts", "Thought: x\n"),
	text("fences", "```json\n"),
	text("unfinished thinking", "<think>"),
	text("JSON blocks", "```json\n{\"action\":\"t\",\"action_input\":{}}\n```\n"),
}

// answer is an attack with the body of an HTTP answer.
func answer(name string, body func(size int) string) Attack {
	return Attack{Answers, name, func(size int) Sample {
		return Sample{Tools: some(tool("t", ofStrings))(0), Text: body(size)}
	}}
}

// whole is a chat completion with that message.
func whole(message string) string {
	return `{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant",` + message + `}}]}`
}

// chunks is a stream of chat completions with that delta, size bytes long.
func chunks(delta string, size int) string {
	event := `data: {"id":"1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{` + delta + `}}]}` + "\n\n"
	return series(event, "", size) + "data: [DONE]\n\n"
}

// answers are bodies of OpenAI's chat completions.
var answers = []Attack{
	answer("a long text", func(n int) string { return whole(`"content":"` + fill("é", n) + `"`) }),
	answer("calls", func(n int) string {
		return whole(`"tool_calls":[` + list(`{"id":"c%d","type":"function","function":{"name":"t","arguments":"{}"}}`, n) + `]`)
	}),
	answer("invalid calls", func(n int) string {
		return whole(`"tool_calls":[` + list(`{"id":"c%d","type":"function","function":{"name":"t","arguments":"{\"a\":[1]}"}}`, n) + `]`)
	}),
	answer("unknown members", func(n int) string { return whole(`"content":"x",` + list(`"k%d":0`, n)) }),
	answer("nested lists", func(n int) string { return whole(`"content":"x","x":` + nested("[", "", "]", n/2)) }),
	answer("a stream of texts", func(n int) string { return chunks(`"content":"x"`, n) }),
	answer("a stream of one call's arguments", func(n int) string {
		return chunks(`"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"t","arguments":" "}}]`, n)
	}),
	answer("a stream of calls", func(n int) string {
		return chunks(`"tool_calls":[{"index":%d,"id":"c%d","type":"function","function":{"name":"t","arguments":"{}"}}]`, n)
	}),
	answer("a stream of comments", func(n int) string { return fill(": x\n", n) + chunks(`"content":"x"`, 200) }),
	answer("an event without an end", func(n int) string { return "data: " + fill("x", n) }),
	answer("line feeds", func(n int) string { return fill("\n", n) + chunks(`"content":"x"`, 200) }),
	{Answers, "gzip, 10 times its size", func(size int) Sample {
		return compressed(size, noise(10_000)+strings.Repeat(" ", 90_000))
	}},
	{Answers, "gzip, 1,000 times its size", func(size int) Sample { return compressed(size, strings.Repeat(" ", 1<<20)) }},
}

// compressed is an answer of about size compressed bytes.
func compressed(size int, block string) Sample {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for b.Len() < size {
		_, _ = z.Write([]byte(block))
		_ = z.Flush()
	}
	_ = z.Close()
	return Sample{Tools: some(tool("t", ofStrings))(0), Text: b.String(), Gzip: true}
}

// noise is n bytes that cannot be compressed, the same every time.
func noise(n int) string {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return string(b)
}
