package transport_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/transport"
)

type object = map[string]any

// strict is a provider that thinks before each call, and refuses the histories that the
// real ones refuse, with a client that keeps what its SDK collects of a stream.
type strict struct {
	path, kind string
	request    func(history []any) object
	first      any // of the history
	// stream is answer k: reasoning, a text if there is one, and a call.
	stream func(k int, text, arguments string) string
	// refuses returns why the provider refuses a request; "" if it does not. Answers says
	// how many answers it has given.
	refuses func(request object, answers int) string
	// collect returns what a client adds to its history: the answer, and the results of
	// its calls.
	collect func(t *testing.T, body string) []any
}

func list(v any) []any { l, _ := v.([]any); return l }

func member(v any, keys ...string) any {
	for _, k := range keys {
		m, _ := v.(object)
		v = m[k]
	}
	return v
}

// number returns the k of an id that ends with _k; -1 if it has none.
func number(id any) int {
	s, _ := id.(string)
	k := -1
	_, _ = fmt.Sscan(s[strings.LastIndex(s, "_")+1:], &k)
	return k
}

// dataOf returns the data of the events of a stream.
func dataOf(t *testing.T, body string) (all []object) {
	t.Helper()
	for line := range strings.SplitSeq(body, "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok && data != "[DONE]" {
			var v object
			require.NoError(t, json.Unmarshal([]byte(data), &v), data)
			all = append(all, v)
		}
	}
	return all
}

func stringOf(v any) string { s, _ := v.(string); return s }

// Sources of the rules: found in the errors of the providers, as their users report them.
// Anthropic: blocks of thinking cannot be changed, nor stand beside those of another
// response. OpenAI: reasoning without its following item, and an item without its
// reasoning. Gemini: a function call without its thought signature. DeepSeek and Moonshot: a
// tool call without reasoning_content.
func strictProviders() map[string]strict {
	tool := object{"name": "add", "description": "Add.", "input_schema": json.RawMessage(schema)}
	all := map[string]strict{}
	all["anthropic"] = strict{
		path: "/v1/messages", kind: "text/event-stream", first: object{"role": "user", "content": "Go."},
		request: func(history []any) object {
			return object{"model": "m", "max_tokens": 9000, "stream": true, "thinking": object{"type": "enabled", "budget_tokens": 1024}, "messages": history, "tools": []any{tool}}
		},
		stream: func(k int, text, arguments string) string {
			index := -1
			block := func(start, deltas string, delta ...string) string {
				index++
				s := namedEvent("content_block_start", `{"type":"content_block_start","index":%d,"content_block":%s}`, index, start)
				for _, d := range append(delta, deltas) {
					s += namedEvent("content_block_delta", `{"type":"content_block_delta","index":%d,"delta":%s}`, index, d)
				}
				return s + namedEvent("content_block_stop", `{"type":"content_block_stop","index":%d}`, index)
			}
			s := namedEvent("message_start", `{"type":"message_start","message":{"id":"msg_%d","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}`, k) +
				block(`{"type":"thinking","thinking":"","signature":""}`, fmt.Sprintf(`{"type":"signature_delta","signature":"sig_%d"}`, k), fmt.Sprintf(`{"type":"thinking_delta","thinking":"thought_%d"}`, k))
			if text != "" {
				s += block(`{"type":"text","text":""}`, fmt.Sprintf(`{"type":"text_delta","text":%q}`, text))
			}
			return s + block(fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":"add","input":{}}`, k), fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, arguments)) +
				namedEvent("message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":5}}`) + namedEvent("message_stop", `{"type":"message_stop"}`)
		},
		refuses: func(request object, answers int) string {
			for i, m := range list(request["messages"]) {
				if member(m, "role") != "assistant" {
					continue
				}
				thought := -1
				blocks := list(member(m, "content"))
				for j, b := range blocks {
					switch member(b, "type") {
					case "thinking":
						k := number(member(b, "signature"))
						if k < 0 || k >= answers || member(b, "signature") != fmt.Sprintf("sig_%d", k) || member(b, "thinking") != fmt.Sprintf("thought_%d", k) || thought >= 0 {
							return fmt.Sprintf("messages.%d: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified", i)
						}
						thought = k
					case "tool_use":
						if thought < 0 || member(blocks[j-1], "type") == "thinking" && thought != number(member(b, "id")) {
							return fmt.Sprintf("messages.%d: expected `thinking`, but found `tool_use`", i)
						}
						next := list(request["messages"])[i+1]
						if !slices.ContainsFunc(list(member(next, "content")), func(r any) bool { return member(r, "tool_use_id") == member(b, "id") }) {
							return fmt.Sprintf("messages.%d: tool_use without tool_result", i)
						}
					}
				}
			}
			return ""
		},
		collect: func(t *testing.T, body string) []any {
			var blocks []any
			results := []any{}
			partial := ""
			for _, e := range dataOf(t, body) {
				switch e["type"] {
				case "content_block_start":
					require.EqualValues(t, len(blocks), e["index"], body)
					blocks, partial = append(blocks, e["content_block"]), ""
				case "content_block_delta":
					b := blocks[int(e["index"].(float64))].(object)
					for key, v := range e["delta"].(object) {
						switch key {
						case "type":
						case "partial_json":
							partial += stringOf(v)
						default:
							b[key] = stringOf(b[key]) + stringOf(v)
						}
					}
				case "content_block_stop":
					if b := blocks[len(blocks)-1].(object); b["type"] == "tool_use" {
						b["input"] = json.RawMessage(partial)
						results = append(results, object{"type": "tool_result", "tool_use_id": b["id"], "content": "ok"})
					}
				}
			}
			require.Len(t, results, 1, body)
			return []any{object{"role": "assistant", "content": blocks}, object{"role": "user", "content": results}}
		},
	}
	responses := strict{
		path: "/v1/responses", kind: "text/event-stream", first: object{"role": "user", "content": "Go."},
		request: func(history []any) object {
			return object{"model": "m", "store": false, "stream": true, "include": []any{"reasoning.encrypted_content"}, "input": history, "tools": []any{object{"type": "function", "name": "add", "parameters": json.RawMessage(schema)}}}
		},
		stream: func(k int, text, arguments string) string {
			n := -1
			ev := func(name, format string, args ...any) string {
				n++
				return namedEvent(name, `{"type":%q,"sequence_number":%d,%s}`, name, n, fmt.Sprintf(format, args...))
			}
			items := []string{fmt.Sprintf(`{"id":"rs_%d","type":"reasoning","summary":[{"type":"summary_text","text":"thought_%d"}],"encrypted_content":"sealed_%d"}`, k, k, k)}
			if text != "" {
				items = append(items, fmt.Sprintf(`{"id":"msg_%d","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":%q,"annotations":[]}]}`, k, text))
			}
			items = append(items, fmt.Sprintf(`{"id":"fc_%d","type":"function_call","status":"completed","call_id":"call_%d","name":"add","arguments":%q}`, k, k, arguments))
			s := ev("response.created", `"response":{"id":"resp_%d","object":"response","status":"in_progress","model":"m","output":[]}`, k)
			for i, it := range items {
				s += ev("response.output_item.added", `"output_index":%d,"item":%s`, i, it)
				if i == 0 {
					s += ev("response.reasoning_summary_text.delta", `"item_id":"rs_%d","output_index":0,"summary_index":0,"delta":"thought_%d"`, k, k)
				}
				if text != "" && i == 1 {
					s += ev("response.output_text.delta", `"item_id":"msg_%d","output_index":1,"content_index":0,"delta":%q`, k, text)
				}
				s += ev("response.output_item.done", `"output_index":%d,"item":%s`, i, it)
			}
			return s + ev("response.completed", `"response":{"id":"resp_%d","object":"response","status":"completed","model":"m","output":[%s],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}`, k, strings.Join(items, ","))
		},
		refuses: func(request object, answers int) string {
			input := list(request["input"])
			before := -1 // whose items go on
			for i, it := range input {
				k := number(member(it, "id"))
				if member(it, "type") == "function_call" && k < 0 {
					k = number(member(it, "call_id"))
				}
				switch member(it, "type") {
				case "reasoning":
					if k < 0 || k >= answers || member(it, "encrypted_content") != fmt.Sprintf("sealed_%d", k) {
						return "the encrypted content could not be verified"
					}
					if i+1 == len(input) || number(member(input[i+1], "id")) != k {
						return fmt.Sprintf("Item 'rs_%d' of type 'reasoning' was provided without its required following item.", k)
					}
					before = k
				case "function_call":
					if before != k {
						return fmt.Sprintf("Item 'fc_%d' of type 'function_call' was provided without its required 'reasoning' item: 'rs_%d'.", k, k)
					}
					if !slices.ContainsFunc(input[i+1:], func(o any) bool {
						return member(o, "type") == "function_call_output" && member(o, "call_id") == member(it, "call_id")
					}) {
						return "No tool output found for function call"
					}
				case "message":
					if k >= 0 && before != k {
						return fmt.Sprintf("Item 'msg_%d' of type 'message' was provided without its required 'reasoning' item: 'rs_%d'.", k, k)
					}
				}
			}
			return ""
		},
	}
	withOutputs := func(t *testing.T, items []any, body string) []any {
		for _, it := range slices.Clone(items) {
			if member(it, "type") == "function_call" {
				items = append(items, object{"type": "function_call_output", "call_id": member(it, "call_id"), "output": "ok"})
			}
		}
		require.Equal(t, "function_call_output", member(items[len(items)-1], "type"), body)
		return items
	}
	responses.collect = func(t *testing.T, body string) (items []any) {
		for i, e := range dataOf(t, body) {
			require.EqualValues(t, i, e["sequence_number"], body)
			if e["type"] == "response.output_item.done" {
				require.EqualValues(t, len(items), e["output_index"], body)
				items = append(items, e["item"])
			}
		}
		return withOutputs(t, items, body)
	}
	all["responses, items that are done"] = responses
	responses.collect = func(t *testing.T, body string) []any {
		events := dataOf(t, body)
		return withOutputs(t, list(member(events[len(events)-1], "response", "output")), body)
	}
	all["responses, the completed response"] = responses
	all["gemini"] = strict{
		path: "/v1beta/models/m:streamGenerateContent?alt=sse", kind: "text/event-stream", first: object{"role": "user", "parts": []any{object{"text": "Go."}}},
		request: func(history []any) object {
			return object{"contents": history, "tools": []any{object{"functionDeclarations": []any{object{"name": "add", "parametersJsonSchema": json.RawMessage(schema)}}}}}
		},
		stream: func(k int, text, arguments string) string {
			part := func(part string) string {
				return namedEvent("", `{"candidates":[{"content":{"role":"model","parts":[%s]},"index":0}],"modelVersion":"m"}`, part)
			}
			s := part(fmt.Sprintf(`{"text":"thought_%d","thought":true}`, k))
			if text != "" {
				s += part(fmt.Sprintf(`{"text":%q}`, text))
			}
			return s + part(fmt.Sprintf(`{"functionCall":{"id":"call_%d","name":"add","args":%s},"thoughtSignature":"sig_%d"}`, k, arguments, k)) +
				namedEvent("", `{"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP","index":0}],"modelVersion":"m","usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}}`)
		},
		refuses: func(request object, answers int) string {
			for _, c := range list(request["contents"]) {
				for _, p := range list(member(c, "parts")) {
					if call := member(p, "functionCall"); call != nil {
						if k := number(member(p, "thoughtSignature")); k < 0 || k >= answers || number(member(call, "id")) != k {
							return "Function call is missing a thought_signature in functionCall parts."
						}
					}
				}
			}
			return ""
		},
		collect: func(t *testing.T, body string) []any {
			var parts, results []any
			for _, e := range dataOf(t, body) {
				for _, c := range list(e["candidates"]) {
					parts = append(parts, list(member(c, "content", "parts"))...)
				}
			}
			for _, p := range parts {
				if call := member(p, "functionCall"); call != nil {
					results = append(results, object{"functionResponse": object{"id": member(call, "id"), "name": "add", "response": object{"result": "ok"}}})
				}
			}
			require.Len(t, results, 1, body)
			return []any{object{"role": "model", "parts": parts}, object{"role": "user", "parts": results}}
		},
	}
	all["chat"] = strict{
		path: "/v1/chat/completions", kind: "text/event-stream", first: object{"role": "user", "content": "Go."},
		request: func(history []any) object {
			return object{"model": "m", "stream": true, "messages": history, "tools": []any{object{"type": "function", "function": object{"name": "add", "parameters": json.RawMessage(schema)}}}}
		},
		stream: func(k int, text, arguments string) string {
			delta := func(delta, finish string) string {
				return namedEvent("", `{"id":"x_%d","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, k, delta, finish)
			}
			s := delta(fmt.Sprintf(`{"role":"assistant","reasoning_content":"thought_%d"}`, k), "null")
			if text != "" {
				s += delta(fmt.Sprintf(`{"content":%q}`, text), "null")
			}
			return s + delta(fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_%d","type":"function","function":{"name":"add","arguments":%q}}]}`, k, arguments), "null") +
				delta("{}", `"tool_calls"`) + namedEvent("", "[DONE]")
		},
		refuses: func(request object, answers int) string {
			for i, m := range list(request["messages"]) {
				for _, call := range list(member(m, "tool_calls")) {
					if k := number(member(m, "reasoning_content")); k < 0 || member(m, "content") == "" && k != number(member(call, "id")) || k >= answers || member(m, "reasoning_content") != fmt.Sprintf("thought_%d", k) {
						return fmt.Sprintf("thinking is enabled but reasoning_content is missing in assistant tool call message at index %d", i)
					}
				}
			}
			return ""
		},
		collect: func(t *testing.T, body string) []any {
			content, reasoning := "", ""
			var calls, results []any
			for _, e := range dataOf(t, body) {
				for _, c := range list(e["choices"]) {
					d := member(c, "delta")
					content += stringOf(member(d, "content"))
					reasoning += stringOf(member(d, "reasoning_content"))
					for _, call := range list(member(d, "tool_calls")) {
						delete(call.(object), "index")
						calls = append(calls, call)
						results = append(results, object{"role": "tool", "tool_call_id": member(call, "id"), "content": "ok"})
					}
				}
			}
			require.Len(t, calls, 1, body)
			return append([]any{object{"role": "assistant", "content": content, "reasoning_content": reasoning, "tool_calls": calls}}, results...)
		},
	}
	return all
}

// asObject returns v as a provider reads it.
func asObject(t *testing.T, v any) (read object) {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &read))
	return read
}

// TestHistoryOfAReask: behind a re-ask, each later request of a client that keeps what it
// was given is one that the provider accepts.
func TestHistoryOfAReask(t *testing.T) {
	t.Parallel()
	for name, p := range strictProviders() {
		for what, text := range map[string]string{"thinking": "", "thinking and text": "Let me see. "} {
			for _, hold := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s, hold=%t", name, what, hold), func(t *testing.T) {
					t.Parallel()
					answers := 0
					tr := transport.New(transport.Options{Hold: hold}, validate())
					history := []any{p.first}
					for range 30 {
						body, err := json.Marshal(p.request(history))
						require.NoError(t, err)
						req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://model.invalid"+p.path, strings.NewReader(string(body)))
						require.NoError(t, err)
						bad := true
						resp, err := tr.Hook(req, func(req *http.Request) (*http.Response, error) {
							sent, err := io.ReadAll(req.Body)
							require.NoError(t, err)
							var read object
							require.NoError(t, json.Unmarshal(sent, &read))
							require.Empty(t, p.refuses(read, answers), string(sent))
							answer := p.stream(answers, text, `{"n":1}`)
							if bad {
								answer = p.stream(answers, text, `{"m":"x"}`)
							}
							bad = false
							answers++
							return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {p.kind}}, ContentLength: -1, Request: req, Body: io.NopCloser(&piecewise{pieces: eventsOf(answer)})}, nil
						})
						require.NoError(t, err)
						got := read(t, resp)
						require.Equal(t, http.StatusOK, resp.StatusCode, got)
						history = append(history, p.collect(t, got)...)
					}
					require.Equal(t, 60, answers, "each turn has a re-ask")
					require.Empty(t, p.refuses(asObject(t, p.request(history)), answers))
				})
			}
		}
	}
}

// The strict providers refuse what the real ones refuse.
func TestStrictProviders(t *testing.T) {
	t.Parallel()
	all := strictProviders()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p := all[name]
		good := append([]any{p.first}, p.collect(t, p.stream(0, "", `{"n":1}`))...)
		require.Empty(t, p.refuses(asObject(t, p.request(good)), 1), name)
		b, err := json.Marshal(p.request(good))
		require.NoError(t, err)
		for _, change := range [][2]string{{"sig_0", "sig_x"}, {"sealed_0", "sealed_1"}, {`"reasoning_content":"thought_0"`, `"x":1`}, {`"rs_0"`, `"rs_1"`}, {`"fc_0"`, `"fc_1"`}} {
			changed := strings.ReplaceAll(string(b), change[0], change[1])
			var read object
			require.NoError(t, json.Unmarshal([]byte(changed), &read))
			require.Equal(t, changed != string(b), p.refuses(read, 2) != "", "%s: %s", name, changed)
		}
	}
	thinking := func(k int) object {
		return object{"type": "thinking", "thinking": fmt.Sprintf("thought_%d", k), "signature": fmt.Sprintf("sig_%d", k)}
	}
	call := object{"type": "tool_use", "id": "toolu_1", "name": "add", "input": object{}}
	result := object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": "toolu_1"}}}
	two := object{"messages": []any{object{"role": "assistant", "content": []any{thinking(0), thinking(1), call}}, result}}
	require.Contains(t, all["anthropic"].refuses(asObject(t, two), 2), "cannot be modified")
	orphan := object{"input": []any{object{"type": "reasoning", "id": "rs_0", "encrypted_content": "sealed_0"}, object{"type": "reasoning", "id": "rs_1", "encrypted_content": "sealed_1"}, object{"type": "function_call", "id": "fc_1", "call_id": "call_1"}}}
	require.Contains(t, all["responses, items that are done"].refuses(asObject(t, orphan), 2), "'rs_0' of type 'reasoning' was provided without")
}
