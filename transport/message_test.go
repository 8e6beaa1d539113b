package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// emptyAnswers are answers of a format, whole or streamed, that hold no text and no call.
type emptyAnswers struct{ nothing, thinks, announces, blank string }

func emptiesOf(format string, stream bool) emptyAnswers {
	chunk := func(delta, finish string) string {
		return namedEvent("", `{"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, delta, finish)
	}
	switch format {
	case "chat":
		form := func(reasoning, finish string) string {
			return `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null` + reasoning + `,"refusal":null,"annotations":[]},"finish_reason":"` + finish + `"}]}`
		}
		if stream {
			form = func(reasoning, finish string) string {
				s := chunk(`{"role":"assistant","content":""}`, "null")
				if reasoning != "" {
					s += chunk(`{"reasoning_content":"Hm."}`, "null")
				}
				return s + chunk("{}", `"`+finish+`"`) + namedEvent("", "[DONE]")
			}
		}
		return emptyAnswers{form("", "stop"), form(`,"reasoning_content":"Hm."`, "stop"), form("", "tool_calls"), strings.Replace(form("", "stop"), "null,", `" ",`, 1)}
	case "anthropic":
		form := func(thinking bool, stop string) string {
			blocks := ""
			if thinking {
				blocks = `{"type":"thinking","thinking":"Hm.","signature":"c2ln"}`
			}
			return `{"id":"x","type":"message","role":"assistant","model":"m","content":[` + blocks + `],"stop_reason":"` + stop + `","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}}`
		}
		if stream {
			form = func(thinking bool, stop string) string {
				s := namedEvent("message_start", `{"type":"message_start","message":{"id":"x","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}`)
				if thinking {
					s += namedEvent("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`) +
						namedEvent("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}}`) +
						namedEvent("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`) +
						namedEvent("content_block_stop", `{"type":"content_block_stop","index":0}`)
				}
				return s + namedEvent("message_delta", `{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":5}}`, stop) +
					namedEvent("message_stop", `{"type":"message_stop"}`)
			}
		}
		return emptyAnswers{form(false, "end_turn"), form(true, "end_turn"), form(false, "tool_use"), ""}
	case "responses":
		whole := func(items string) string {
			return `{"id":"x","object":"response","status":"completed","model":"m","output":[` + items + `],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}`
		}
		const thought = `{"id":"rs1","type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}]}`
		if stream {
			created := namedEvent("response.created", `{"type":"response.created","sequence_number":0,"response":{"id":"x","object":"response","status":"in_progress","model":"m","output":[]}}`)
			end := func(n int, items string) string {
				return namedEvent("response.completed", `{"type":"response.completed","sequence_number":%d,"response":%s}`, n, whole(items))
			}
			return emptyAnswers{nothing: created + end(1, ""), thinks: created +
				namedEvent("response.output_item.added", `{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"rs1","type":"reasoning","summary":[]}}`) +
				namedEvent("response.reasoning_summary_part.added", `{"type":"response.reasoning_summary_part.added","sequence_number":2,"item_id":"rs1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}`) +
				namedEvent("response.reasoning_summary_text.delta", `{"type":"response.reasoning_summary_text.delta","sequence_number":3,"item_id":"rs1","output_index":0,"summary_index":0,"delta":"Hm."}`) +
				namedEvent("response.reasoning_summary_text.done", `{"type":"response.reasoning_summary_text.done","sequence_number":4,"item_id":"rs1","output_index":0,"summary_index":0,"text":"Hm."}`) +
				namedEvent("response.reasoning_summary_part.done", `{"type":"response.reasoning_summary_part.done","sequence_number":5,"item_id":"rs1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"Hm."}}`) +
				namedEvent("response.output_item.done", `{"type":"response.output_item.done","sequence_number":6,"output_index":0,"item":%s}`, thought) + end(7, thought)}
		}
		return emptyAnswers{nothing: whole(""), thinks: whole(thought), blank: whole(`{"id":"m1","type":"message","status":"completed","role":"assistant","content":[]}`)}
	case "gemini":
		form := func(parts string) string {
			body := `{"candidates":[{"content":{"role":"model"` + parts + `},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":10,"totalTokenCount":10},"modelVersion":"m"}`
			if stream {
				return namedEvent("", "%s", body)
			}
			return body
		}
		return emptyAnswers{nothing: form(""), thinks: form(`,"parts":[{"text":"Hm.","thought":true}]`)}
	}
	form := func(thinking string) string {
		end := `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":""` + thinking + `},"done":true,"done_reason":"stop","prompt_eval_count":10,"eval_count":5}`
		if stream {
			return strings.Replace(end, `"done":true,"done_reason":"stop","prompt_eval_count":10,"eval_count":5`, `"done":false`, 1) + "\n" + strings.Replace(end, thinking, "", 1) + "\n"
		}
		return end
	}
	return emptyAnswers{nothing: form(""), thinks: form(`,"thinking":"Hm."`)}
}

// step sends a request, which the upstream answers one answer after the other, and returns the
// client's answer and the requests that the upstream got.
func (s speech) step(t *testing.T, tr *transport.Transport, stream bool, body string, answers ...string) (got *middleware.Response, header http.Header, sent [][]byte) {
	kind := "application/json"
	if stream {
		kind = s.kind
	}
	var script []http.HandlerFunc
	for _, a := range answers {
		script = append(script, answer(http.StatusOK, a, "Content-Type", kind))
	}
	u := serve(t, script...)
	resp, err := http.Post(proxy(t, tr, u.URL)+s.pathFor(stream), "application/json", strings.NewReader(body))
	require.NoError(t, err)
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode, string(b))
	asked, err := s.codec.DecodeRequest([]byte(body))
	require.NoError(t, err)
	got, err = s.codec.DecodeResponse(asked, b)
	require.NoError(t, err, string(b))
	header = resp.Header
	for k, v := range resp.Trailer {
		header[k] = v
	}
	return got, header, u.body
}

// TestEmptyAnswers: in each format an empty answer is re-asked once, and marked if it stays
// empty. The client gets the last answer alone, also if reasoning was streamed before.
func TestEmptyAnswers(t *testing.T) {
	t.Parallel()
	pass := argsvalidate.New(argsvalidate.Options{OnExhausted: middleware.Pass})
	for format, s := range speeches() {
		for _, stream := range []bool{false, true} {
			form := s.whole
			if stream {
				form = s.stream
			}
			e := emptiesOf(format, stream)
			for name, first := range map[string]string{"nothing": e.nothing, "reasoning": e.thinks, "announced": e.announces, "a blank message": e.blank} {
				if first == "" { // the format does not have it
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/stream=%t", format, name, stream), func(t *testing.T) {
					t.Parallel()
					got, header, sent := s.step(t, transport.New(transport.Options{}, pass), stream, s.request(stream), first, stops(form("Done.")))
					require.Equal(t, "Done.", text(got))
					require.Empty(t, header.Get("X-Toolmend-Status"))
					require.Len(t, sent, 2)
					again, err := s.codec.DecodeRequest(sent[1])
					require.NoError(t, err)
					last := again.Messages[len(again.Messages)-1]
					require.Equal(t, middleware.RoleUser, last.Role)
					require.Contains(t, last.Text(), "say so in a short text")
					for _, m := range again.Messages {
						require.NotEmpty(t, strings.TrimSpace(m.Text()), string(sent[1]))
					}

					got, header, _ = s.step(t, transport.New(transport.Options{}, pass), stream, s.request(stream), first, form("", `{"n":1}`))
					require.Equal(t, []string{`{"n":1}`}, arguments(got))
					require.Equal(t, "valid", header.Get("X-Toolmend-Status"))

					got, header, _ = s.step(t, transport.New(transport.Options{}, pass), stream, s.request(stream), first, first)
					require.Empty(t, got.Message.ToolCalls)
					require.Equal(t, "invalid", header.Get("X-Toolmend-Status"))
				})
			}
		}
	}
}

// TestContentThatIsNotText: an answer with other content than text is not empty.
func TestContentThatIsNotText(t *testing.T) {
	t.Parallel()
	chatDelta := func(message string) [2]string {
		return [2]string{`{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":` + message + `,"finish_reason":"stop"}]}`,
			namedEvent("", `{"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":%s,"finish_reason":null}]}`, message) +
				namedEvent("", `{"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`) + namedEvent("", "[DONE]")}
	}
	items := func(output string) [2]string {
		whole := `{"id":"x","object":"response","status":"completed","model":"m","output":[` + output + `]}`
		return [2]string{whole, namedEvent("response.created", `{"type":"response.created","sequence_number":0,"response":{"id":"x","object":"response","status":"in_progress","model":"m","output":[]}}`) +
			namedEvent("response.output_item.done", `{"type":"response.output_item.done","sequence_number":1,"output_index":0,"item":%s}`, output) +
			namedEvent("response.completed", `{"type":"response.completed","sequence_number":2,"response":%s}`, whole)}
	}
	parts := func(part string) [2]string {
		whole := `{"candidates":[{"content":{"role":"model","parts":[` + part + `]},"finishReason":"STOP","index":0}],"modelVersion":"m"}`
		return [2]string{whole, namedEvent("", "%s", whole)}
	}
	for name, c := range map[string]struct {
		format  string
		answers [2]string // whole, streamed
	}{
		"images":        {"chat", chatDelta(`{"role":"assistant","content":"","images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}]}`)},
		"citations":     {"chat", chatDelta(`{"role":"assistant","content":"","annotations":[{"type":"url_citation","url_citation":{"url":"https://example.com"}}]}`)},
		"sound":         {"chat", chatDelta(`{"role":"assistant","content":null,"audio":{"id":"audio_1","data":"AA==","transcript":"Hi.","expires_at":1}}`)},
		"sound, no id":  {"chat", chatDelta(`{"role":"assistant","content":null,"audio":{"data":"AA==","transcript":"Hi."}}`)},
		"an image":      {"responses", items(`{"id":"ig1","type":"image_generation_call","status":"completed","result":"iVBORw=="}`)},
		"a search":      {"responses", items(`{"id":"ws1","type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}}`)},
		"compaction":    {"responses", items(`{"id":"cmp1","type":"compaction","encrypted_content":"c2ln"}`)},
		"inline data":   {"gemini", parts(`{"inlineData":{"mimeType":"image/png","data":"iVBORw=="}}`)},
		"code":          {"gemini", parts(`{"executableCode":{"language":"PYTHON","code":"1"}}`)},
		"ollama images": {"ollama", [2]string{`{"model":"m","message":{"role":"assistant","content":"","images":["iVBORw0KGgo="]},"done":true,"done_reason":"stop"}`, `{"model":"m","message":{"role":"assistant","content":"","images":["iVBORw0KGgo="]},"done":false}` + "\n" + `{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}` + "\n"}},
		"load":          {"ollama", [2]string{`{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"load"}`, `{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"load"}` + "\n"}},
		"a server tool": {"anthropic", [2]string{`{"id":"x","type":"message","role":"assistant","model":"m","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`, ""}},
		"a compaction":  {"anthropic", [2]string{`{"id":"x","type":"message","role":"assistant","model":"m","content":[{"type":"compaction","content":"So far."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`, ""}},
		"queued":        {"responses", [2]string{`{"id":"x","object":"response","status":"queued","background":true,"model":"m","output":[]}`, ""}},
	} {
		s := speeches()[c.format]
		for i, answered := range c.answers {
			if answered == "" {
				continue
			}
			t.Run(fmt.Sprintf("%s/stream=%t", name, i == 1), func(t *testing.T) {
				t.Parallel()
				_, header, _ := s.step(t, transport.New(transport.Options{}, validate()), i == 1, s.request(i == 1), answered)
				require.Empty(t, header.Get("X-Toolmend-Status"))
			})
		}
	}
}

// TestPartsWithoutContent: a part of Gemini that has no content does not make an answer.
func TestPartsWithoutContent(t *testing.T) {
	t.Parallel()
	s := gemini()
	for _, part := range []string{`{}`, `{"thoughtSignature":"c2ln"}`, `{"thought_signature":"c2ln","thought":null}`, `{"thoughtSignature":"c2ln","text":""}`} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			for _, stream := range []bool{false, true} {
				first := `{"candidates":[{"content":{"role":"model","parts":[` + part + `]},"finishReason":"STOP","index":0}],"modelVersion":"m"}`
				last := s.whole("Done.")
				if stream {
					first, last = namedEvent("", "%s", first), s.stream("Done.")
				}
				got, _, _ := s.step(t, transport.New(transport.Options{}, validate()), stream, s.request(stream), first, stops(last))
				require.Equal(t, "Done.", text(got))
			}
		})
	}
}

// TestStopTokens: a text that a server names, or a token that the request names, may have ended an
// empty answer. A token that only the server names may end every answer of the model.
func TestStopTokens(t *testing.T) {
	t.Parallel()
	s := chat()
	for _, stream := range []bool{false, true} {
		nothing, request := emptiesOf("chat", stream).nothing, s.request(stream)
		for name, c := range map[string]struct{ request, answer string }{
			"a text":           {request, strings.Replace(nothing, `"finish_reason":"stop"`, `"finish_reason":"stop","stop_reason":"END"`, 1)},
			"a text of SGLang": {request, strings.Replace(nothing, `"finish_reason":"stop"`, `"finish_reason":"stop","matched_stop":"END"`, 1)},
			"of the request":   {strings.Replace(request, `"model"`, `"stop_token_ids":[7],"model"`, 1), nothing},
		} {
			_, header, _ := s.step(t, transport.New(transport.Options{}, validate()), stream, c.request, c.answer)
			require.Empty(t, header.Get("X-Toolmend-Status"), name)
		}
		for name, c := range map[string]struct{ request, answer string }{
			"no token":                   {request, strings.Replace(nothing, `"finish_reason":"stop"`, `"finish_reason":"stop","stop_reason":null,"matched_stop":151645`, 1)},
			"a token of the model":       {request, strings.Replace(nothing, `"finish_reason":"stop"`, `"finish_reason":"stop","stop_reason":128009`, 1)},
			"no token in the request":    {strings.Replace(request, `"model"`, `"stop_token_ids":[],"model"`, 1), nothing},
			"null in place of the token": {strings.Replace(request, `"model"`, `"stop_token_ids":null,"model"`, 1), nothing},
		} {
			form := s.whole
			if stream {
				form = s.stream
			}
			got, _, _ := s.step(t, transport.New(transport.Options{}, validate()), stream, c.request, c.answer, stops(form("Done.")))
			require.Equal(t, "Done.", text(got), name)
		}
	}
}

// TestStopSequence: a stop sequence that fired ends an answer, and reaches the client.
func TestStopSequence(t *testing.T) {
	t.Parallel()
	s := anthropic()
	for _, stream := range []bool{false, true} {
		e := emptiesOf("anthropic", stream)
		fired := strings.NewReplacer(`"end_turn","stop_sequence":null`, `"stop_sequence","stop_sequence":"END"`).Replace(e.nothing)
		got, header, _ := s.step(t, transport.New(transport.Options{}, validate()), stream, s.request(stream), fired)
		require.Equal(t, middleware.FinishStopSequence, got.FinishReason)
		require.Contains(t, got.Native.Raw, `"stop_sequence":"END"`)
		require.Empty(t, header.Get("X-Toolmend-Status"))
	}
}

// TestDemandedCallIsMarked: an answer without the demanded call is re-asked once, and marked.
func TestDemandedCallIsMarked(t *testing.T) {
	t.Parallel()
	pass := argsvalidate.New(argsvalidate.Options{OnExhausted: middleware.Pass})
	for format, choice := range map[string]string{"chat": `"tool_choice":"required"`, "anthropic": `"tool_choice":{"type":"any"}`, "responses": `"tool_choice":"required"`, "gemini": `"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`} {
		s := speeches()[format]
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%t", format, stream), func(t *testing.T) {
				t.Parallel()
				form := s.whole
				if stream {
					form = s.stream
				}
				words := stops(form("Sunny."))
				got, header, _ := s.step(t, transport.New(transport.Options{}, pass), stream, "{"+choice+","+s.request(stream)[1:], words, words)
				require.Contains(t, text(got), "Sunny.")
				require.Equal(t, "invalid", header.Get("X-Toolmend-Status"))
			})
		}
	}
}

// TestRaisedTokens: a re-ask because of a truncated call has twice the length limit, in the
// member that the client used.
func TestRaisedTokens(t *testing.T) {
	t.Parallel()
	pass := argsvalidate.New(argsvalidate.Options{OnExhausted: middleware.Pass})
	for name, c := range map[string]struct {
		format, limit, want string
		end, ended          string
	}{
		"chat, old name": {"chat", `"max_tokens":50`, `"max_tokens":100`, `"finish_reason":"tool_calls"`, `"finish_reason":"length"`},
		"chat, new name": {"chat", `"max_completion_tokens":50`, `"max_completion_tokens":100`, `"finish_reason":"tool_calls"`, `"finish_reason":"length"`},
		"anthropic":      {"anthropic", "", `"max_tokens":18`, `"stop_reason":"tool_use"`, `"stop_reason":"max_tokens"`},
		"responses":      {"responses", `"max_output_tokens":50`, `"max_output_tokens":100`, `"status":"completed","model"`, `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"model"`},
		"gemini":         {"gemini", `"generationConfig":{"maxOutputTokens":50}`, `"maxOutputTokens":100`, `"finishReason":"STOP"`, `"finishReason":"MAX_TOKENS"`},
		"ollama":         {"ollama", `"options":{"num_predict":50}`, `"num_predict":100`, `"done_reason":"stop"`, `"done_reason":"length"`},
	} {
		s := speeches()[c.format]
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%t", name, stream), func(t *testing.T) {
				t.Parallel()
				form, body := s.whole, s.request(stream)
				if stream {
					form = s.stream
				}
				cut := strings.Replace(form("", `{"n":1}`), c.end, c.ended, 1)
				if c.format == "responses" && stream {
					cut = strings.ReplaceAll(cut, "response.completed", "response.incomplete")
				}
				if c.limit != "" {
					body = "{" + c.limit + "," + body[1:]
				}
				got, header, sent := s.step(t, transport.New(transport.Options{}, pass), stream, body, cut, form("", `{"n":2}`))
				require.Equal(t, []string{`{"n":2}`}, arguments(got))
				require.Equal(t, "valid", header.Get("X-Toolmend-Status"))
				require.Contains(t, string(sent[1]), c.want)
				require.NotContains(t, string(sent[1]), "max_tokens\":50")

				_, header, sent = s.step(t, transport.New(transport.Options{}, pass), stream, body, cut, cut)
				require.Equal(t, "invalid", header.Get("X-Toolmend-Status"))
				require.Len(t, sent, 2)
				if c.limit != "" { // without a limit of the request the answer is final
					_, header, _ = s.step(t, transport.New(transport.Options{}, pass), stream, s.request(stream), cut)
					require.Equal(t, "invalid", header.Get("X-Toolmend-Status"))
				}
			})
		}
	}
}
