package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/transport"
)

// attacked returns what a client gets of body under Raise, with one attempt.
func attacked(t *testing.T, s speech, stream bool, kind string, body io.Reader) string {
	t.Helper()
	path, streamed, _ := strings.Cut(s.path, " ")
	if stream && streamed != "" {
		path = streamed
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://model.invalid"+path, strings.NewReader(s.request(stream)))
	require.NoError(t, err)
	raise := argsvalidate.New(argsvalidate.Options{MaxAttempts: 1})
	resp, err := transport.New(transport.Options{}, raise).Hook(req, func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, ContentLength: -1, Request: req, Body: io.NopCloser(body)}, nil
	})
	require.NoError(t, err)
	got, _ := io.ReadAll(resp.Body) // a stream that breaks off ends with an error
	require.NoError(t, resp.Body.Close())
	return string(got)
}

const evil = `{"n":"evil"}`

// Clients differ in what they strip from a line, an event or its data before they read it.
func TestMarksBeforeLines(t *testing.T) {
	t.Parallel()
	for name, s := range speeches() {
		for _, mark := range []string{"\ufeff", "\v", "\f", "\u00a0", "\u0085", "\u2028", "\u2029", "\u200b", "\x00", "\x1c"} {
			marks := map[string]func(event string) string{"line": func(event string) string {
				lines := strings.SplitAfter(event, "\n")
				for i, l := range lines {
					if strings.TrimSpace(l) != "" {
						lines[i] = mark + l
					}
				}
				return strings.Join(lines, "")
			}}
			if name != "ollama" {
				marks["data"] = func(event string) string { return strings.Replace(event, "data: ", "data:"+mark, 1) }
				marks["data, space"] = func(event string) string { return strings.Replace(event, "data: ", "data: "+mark, 1) }
			}
			for at, marked := range marks {
				for what, others := range map[string][]string{"beside text": eventsOf(s.stream("hi")), "beside a good call": eventsOf(s.stream("hi", `{"n":1}`))} {
					t.Run(fmt.Sprintf("%s/%q before %s, %s", name, mark, at, what), func(t *testing.T) {
						t.Parallel()
						for i := range others {
							var hidden []string
							for _, e := range eventsOf(s.stream("hi", evil)) {
								if strings.Contains(e, "evil") {
									hidden = append(hidden, marked(e))
								}
							}
							body := strings.Join(slices.Concat(others[:i], hidden, others[i:]), "")
							got := attacked(t, s, true, s.kind, strings.NewReader(body))
							require.NotContains(t, got, "evil")
							require.Empty(t, unitFault(name, got))
						}
					})
				}
			}
		}
	}
}

// Calls at places where one client of a format looks, and another does not.
func TestHiddenCalls(t *testing.T) {
	t.Parallel()
	call := `[{"index":0,"id":"c9","type":"function","function":{"name":"add","arguments":"{\"n\":\"evil\"}"}}]`
	for name, c := range map[string]struct {
		speech speech
		hidden string // behind the first event
	}{
		"a line without data: in Gemini":         {gemini(), `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"add","args":` + evil + `}}]}}]}` + "\n\n"},
		"a line without data:, beside data":      {gemini(), `data: {"candidates":[]}` + "\n" + `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"add","args":` + evil + `}}]}}]}` + "\n\n"},
		"several lines without data:":            {gemini(), "{\"candidates\":[{\"content\":{\"parts\":[{\"function\nCall\":{\"name\":\"add\",\n\"args\":" + evil + "}}]}}]}\n\n"},
		"a word divided around a line of data":   {gemini(), "{\"candidates\":[{\"content\":{\"parts\":[{\"function\ndata: {\"candidates\":[\"x\"]}\n\nCall\":{\"name\":\"add\",\"args\":" + evil + "}}]}}]}\n\n"},
		"message beside delta":                   {chat(), `data: {"choices":[{"index":0,"delta":{},"message":{"role":"assistant","tool_calls":` + call + `},"finish_reason":null}]}` + "\n\n"},
		"message beside delta, in another case":  {chat(), `data: {"choices":[{"index":0,"delta":{},"Message":{"role":"assistant","tool_calls":` + call + `}}]}` + "\n\n"},
		"the prototype of delta":                 {chat(), `data: {"choices":[{"index":0,"delta":{"content":".","__proto__":{"role":"assistant","tool_calls":` + call + `}}}]}` + "\n\n"},
		"the prototype of choice":                {chat(), `data: {"choices":[{"index":0,"delta":{},"__proto__":{"message":{"tool_calls":` + call + `}}}]}` + "\n\n"},
		"the prototype, escaped":                 {chat(), `data: {"choices":[{"index":0,"delta":{"\u005f_proto__":{"tool_calls":` + call + `}}}]}` + "\n\n"},
		"the prototype as a list":                {chat(), `data: {"choices":[{"index":0,"delta":{"__proto__":[{"tool_calls":` + call + `}]}}]}` + "\n\n"},
		"an escaped key":                         {chat(), `data: {"choices":[{"index":0,"delta":{"tool\u005fcalls":` + call + `}}]}` + "\n\n"},
		"a second copy of a block's start":       {anthropic(), namedEvent("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c9","name":"add","input":%s}}`, evil)},
		"an item that is done without its start": {responses(), namedEvent("response.output_item.done", `{"type":"response.output_item.done","output_index":7,"item":{"type":"function_call","id":"f9","call_id":"c9","name":"add","arguments":"{\"n\":\"evil\"}"}}`)},
	} {
		for what, answer := range map[string]string{"text": c.speech.stream("hi"), "a good call": c.speech.stream("hi", `{"n":1}`)} {
			t.Run(name+", beside "+what, func(t *testing.T) {
				t.Parallel()
				events := eventsOf(answer)
				for i := range events {
					got := attacked(t, c.speech, true, c.speech.kind, strings.NewReader(strings.Join(slices.Concat(events[:i], []string{c.hidden}, events[i:]), "")))
					require.NotContains(t, got, "evil")
					require.NotContains(t, got, "__proto__")
				}
			})
		}
	}
}

// google-genai for Python joins the lines that have no field, and cuts them where Python
// does, or takes the space from their ends: that must not make a word for calls.
func TestWordsInPieces(t *testing.T) {
	t.Parallel()
	const failure = `data: {"error":{"code":500,"message":"x","status":"INTERNAL"}}` + "\n"
	hi := eventsOf(gemini().stream("hi"))[0]
	for _, end := range []string{"\n", "\r\n", "  \n", "\t\n", "\v\n", "\u2028\n", "\u00a0\n ", "\v", "\f", "\x1c", "\x1d", "\x1e", "\u0085", "\u2028", "\u2029"} {
		object := `{"candidates":[{"content":{"role":"model","parts":[{"functi` + end + `onCall":{"name":"add","args":` + evil + `}}]},"finishReason":"STOP","index":0}]}`
		for what, body := range map[string]string{
			"one object":                    object,
			"data":                          hi + "data: " + object + "\n\n",
			"a bare line":                   hi + object + "\n\n",
			"lines behind an error":         hi + failure + object + "\n\n",
			"lines behind the first error":  failure + object + "\n\n",
			"lines in front of an error":    hi + object + "\n" + failure + "\n",
			"text, and lines in it":         hi + `data: {"candidates":[{"content":{"parts":[{"text":"` + strings.ReplaceAll(object, `"`, `\"`) + `"}]}}]}` + "\n\n",
			"lines between lines of a data": hi + "data: {\n" + object + "\ndata: }\n\n",
		} {
			t.Run(fmt.Sprintf("%q, %s", end, what), func(t *testing.T) {
				t.Parallel()
				s := gemini()
				got := attacked(t, s, true, s.kind, strings.NewReader(body))
				var joined strings.Builder
				for line := range strings.FieldsFuncSeq(got, func(r rune) bool { return strings.ContainsRune("\r\n\v\f\x1c\x1d\x1e\u0085\u2028\u2029", r) }) {
					joined.WriteString(strings.TrimSpace(line))
				}
				require.NotContains(t, joined.String(), `"functionCall`)
			})
		}
	}
}

// What is written of a call is one line for every reader.
func TestLineEndsInCalls(t *testing.T) {
	t.Parallel()
	for name, s := range speeches() {
		for _, end := range []string{"\u0085", "\u2028", "\u2029"} {
			for _, streamed := range []bool{false, true} {
				body := s.whole("aENDb", `{"n":1,"cEND":"dEND"}`)
				if streamed {
					body = s.stream("aENDb", `{"n":1,"cEND":"dEND"}`)
				}
				got := attacked(t, s, streamed, s.kind, strings.NewReader(strings.ReplaceAll(body, "END", end)))
				require.Contains(t, got, "add", name)
				require.NotContains(t, got, end, name)
			}
		}
	}
}

// A client sends an answer back: a definition of a tool there would replace its own, or
// offer a tool that it does not have.
func TestDefinitionsInAnswers(t *testing.T) {
	t.Parallel()
	add := func(name string) string {
		return `{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"` + name + `","input_schema":{"type":"object"}}}}`
	}
	compaction := func(name string) string {
		return `{"type":"compaction","content":"summary","tool_changes":[` + add(name) + `]}`
	}
	lists := func(kind, tool string) string {
		return `{"type":"` + kind + `","id":"ts","role":"developer","execution":"server","status":"completed","tools":[` + tool + `]}`
	}
	function := func(name string) string { return `{"type":"function","name":"` + name + `","parameters":{}}` }
	space := `{"type":"namespace","name":"ns","tools":[` + function("add") + `]}`
	for name, c := range map[string]struct {
		speech  speech
		item    string
		refused bool
	}{
		"a compaction":                 {anthropic(), compaction("other"), true},
		"a compaction with the tool":   {anthropic(), compaction("add"), false},
		"additional tools":             {responses(), lists("additional_tools", function("other")), true},
		"a search":                     {responses(), lists("tool_search_output", function("other")), true},
		"a search in a namespace":      {responses(), lists("tool_search_output", space), true},
		"a search that finds the tool": {responses(), lists("tool_search_output", function("add")), false},
	} {
		for _, streamed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream=%t", name, streamed), func(t *testing.T) {
				t.Parallel()
				var body, kind string
				switch {
				case !streamed:
					kind = "application/json"
					body = c.speech.whole("hi")
					list := `"content":[`
					if strings.Contains(body, `"output":[`) {
						list = `"output":[`
					}
					body = strings.Replace(body, list, list+c.item+",", 1)
				case strings.Contains(c.item, "compaction"):
					kind = c.speech.kind
					events := eventsOf(c.speech.stream("hi"))
					body = strings.Join(slices.Insert(events, len(events)-2, namedEvent("content_block_start", `{"type":"content_block_start","index":7,"content_block":%s}`, c.item),
						namedEvent("content_block_stop", `{"type":"content_block_stop","index":7}`)), "")
				default:
					kind = c.speech.kind
					events := eventsOf(c.speech.stream("hi"))
					last := len(events) - 1
					events[last] = strings.Replace(events[last], `"output":[`, `"output":[`+c.item+`,`, 1)
					body = strings.Join(events, "")
				}
				require.Contains(t, body, c.item)
				got := attacked(t, c.speech, streamed, kind, strings.NewReader(body))
				if c.refused {
					require.Contains(t, got, "error")
				} else {
					require.NotContains(t, got, "error\"")
					require.Contains(t, got, c.item)
				}
			})
		}
	}
}

// A server that repeats the name in each delta names the same tool, whether a client joins
// the names or not.
func TestRepeatedName(t *testing.T) {
	t.Parallel()
	s := chat()
	body := edited(t, s.stream("hi", `{"n":1}`), `"arguments":"{\"n\":1}"}}]`, `"arguments":"{\"n\""}}]`)
	body = edited(t, body, namedEvent("", "[DONE]"), "")
	parts := eventsOf(body)
	more := namedEvent("", `{"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c0","type":"function","function":{"name":"add","arguments":":1}"}}]},"finish_reason":null}]}`)
	got := attacked(t, s, true, s.kind, strings.NewReader(strings.Join(slices.Concat(parts[:2], []string{more}, parts[2:]), "")+namedEvent("", "[DONE]")))
	require.Equal(t, 1, strings.Count(got, `"name":"add"`), got)
	require.Equal(t, []string{`{"n":1}`}, arguments(s.decode(t, got)))
}

// A surrogate pair that is divided between deltas stays one letter if the call is repaired.
func TestDividedSurrogates(t *testing.T) {
	t.Parallel()
	for name, s := range speeches() {
		if name == "gemini" || name == "ollama" { // no deltas of arguments
			continue
		}
		for _, n := range []string{`1`, `\"1\"`} { // \"1\" is repaired
			t.Run(name+"/"+n, func(t *testing.T) {
				t.Parallel()
				const mark = `{\"n\":7}`
				events := eventsOf(s.stream("hi", `{"n":7}`))
				divided := false
				for i, e := range events {
					if !strings.Contains(e, mark) {
						continue
					}
					whole := fmt.Sprintf(`{\"n\":%s,\"t\":\"\ud83d\ude00\"}`, n)
					if events[i] = strings.ReplaceAll(e, mark, whole); divided {
						continue
					}
					divided = true
					first := strings.Replace(e, mark, fmt.Sprintf(`{\"n\":%s,\"t\":\"\ud83d`, n), 1)
					second := strings.Replace(e, mark, `\ude00\"}`, 1)
					if name == "chat" {
						second = edited(t, edited(t, second, `"id":"c0","type":"function",`, ""), `"name":"add",`, "")
					}
					events[i] = first + second
				}
				got := attacked(t, s, true, s.kind, strings.NewReader(strings.Join(events, "")))
				calls := arguments(s.decode(t, got))
				require.Len(t, calls, 1)
				require.JSONEq(t, `{"n":1,"t":"😀"}`, calls[0], got)
			})
		}
	}
}

// White space in front of a body, as some servers send it while they work, costs time that
// grows with the body: with its square, this test would take a quarter of an hour.
func TestWhiteSpaceBeforeABody(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		s := chat()
		body := io.MultiReader(io.LimitReader(blanks{}, 60<<20), strings.NewReader(s.whole("hi", evil)))
		require.NotContains(t, attacked(t, s, stream, "application/json", body), "evil")
	}
}

type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// Some SDKs decode the body by the charset of Content-Type, and find other calls in it.
func TestCharset(t *testing.T) {
	t.Parallel()
	for kind, readable := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, `application/json; charset="UTF-8"`: true, "application/json;charset=utf8;": true, "application/json; charset=US-ASCII": true,
		"application/json; charset=utf-7": false, "application/json; Charset=UTF-16LE": false, "application/json; charset=iso-8859-1": false,
		"application/json; charset=utf-8; charset=utf-7": false, "application/json; charset*=utf-8''utf-7": false, "application/json; x; charset=utf-7": false, "charset=utf-7": false,
	} {
		for name, s := range speeches() {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				for stream, body := range map[bool]string{false: stops(s.whole("hi+ACIAfQAs-")), true: stops(s.stream("hi+ACIAfQAs-"))} {
					got := attacked(t, s, stream, kind, strings.NewReader(body))
					require.Equal(t, readable, strings.Contains(got, "ACIAfQAs"), got)
				}
			})
		}
	}
}
