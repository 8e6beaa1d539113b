package transport_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/strict"
	"github.com/toolmend/toolmend/transport"
)

type object = map[string]any

// reasoner is a client that reasons and keeps what its SDK collects of a stream, before a
// provider that refuses what the real one refuses.
type reasoner struct {
	strict.Format
	path    string
	first   any // of the history
	request func(history []any) object
	// collect returns what the client adds to its history: the answer, and the results of
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

// dataOf returns the data of the events of a stream.
func dataOf(t *testing.T, body string) (all []object) {
	t.Helper()
	for line := range strings.SplitSeq(body, "\n") {
		if data := strings.TrimPrefix(line, "data: "); strings.HasPrefix(data, "{") {
			var v object
			require.NoError(t, json.Unmarshal([]byte(data), &v), data)
			all = append(all, v)
		}
	}
	return all
}

func stringOf(v any) string { s, _ := v.(string); return s }

func reasoners() map[string]reasoner {
	tool := object{"name": "add", "description": "Add.", "input_schema": json.RawMessage(schema)}
	all := map[string]reasoner{}
	all["anthropic"] = reasoner{
		Format: strict.Anthropic, path: "/v1/messages", first: object{"role": "user", "content": "Go."},
		request: func(history []any) object {
			return object{"model": "m", "max_tokens": 9000, "stream": true, "thinking": object{"type": "enabled", "budget_tokens": 1024}, "messages": history, "tools": []any{tool}}
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
	responses := reasoner{
		Format: strict.Responses, path: "/v1/responses", first: object{"role": "user", "content": "Go."},
		request: func(history []any) object {
			return object{"model": "m", "store": false, "stream": true, "include": []any{"reasoning.encrypted_content"}, "input": history, "tools": []any{object{"type": "function", "name": "add", "parameters": json.RawMessage(schema)}}}
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
	all["gemini"] = reasoner{
		Format: strict.Gemini, path: "/v1beta/models/m:streamGenerateContent?alt=sse", first: object{"role": "user", "parts": []any{object{"text": "Go."}}},
		request: func(history []any) object {
			return object{"contents": history, "tools": []any{object{"functionDeclarations": []any{object{"name": "add", "parametersJsonSchema": json.RawMessage(schema)}}}}}
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
	all["chat"] = reasoner{
		Format: strict.Chat, path: "/v1/chat/completions", first: object{"role": "user", "content": "Go."},
		request: func(history []any) object {
			return object{"model": "m", "stream": true, "messages": history, "tools": []any{object{"type": "function", "function": object{"name": "add", "parameters": json.RawMessage(schema)}}}}
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
	all["ollama"] = reasoner{
		Format: strict.Ollama, path: "/api/chat", first: object{"role": "user", "content": "Go."},
		request: func(history []any) object {
			return object{"model": "m", "think": true, "messages": history, "tools": []any{object{"type": "function", "function": object{"name": "add", "parameters": json.RawMessage(schema)}}}}
		},
		collect: func(t *testing.T, body string) []any {
			message := object{"role": "assistant", "content": "", "thinking": ""}
			var results []any
			for _, e := range dataOf(t, body) {
				for _, key := range []string{"content", "thinking"} {
					message[key] = stringOf(message[key]) + stringOf(member(e, "message", key))
				}
				for _, call := range list(member(e, "message", "tool_calls")) {
					message["tool_calls"] = append(list(message["tool_calls"]), call)
					results = append(results, object{"role": "tool", "tool_name": "add", "tool_call_id": member(call, "id"), "content": "ok"})
				}
			}
			require.Len(t, results, 1, body)
			return append([]any{message}, results...)
		},
	}
	return all
}

// TestHistoryOfAReask: behind a re-ask, each later request of a client that keeps what it
// was given is one that the provider accepts. A re-ask is what the client sent, byte for
// byte, with turns put in behind the last one: so the provider's prompt cache serves it.
func TestHistoryOfAReask(t *testing.T) {
	t.Parallel()
	for name, p := range reasoners() {
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
							require.Empty(t, p.Refuse(sent, strict.Rules{Answers: answers, Strictest: true}), string(sent))
							require.True(t, p.Extends(body, sent), "%s\n%s", body, sent)
							arguments := `{"n":1}`
							if bad {
								require.Equal(t, string(body), string(sent))
								arguments = `{"m":"x"}`
							}
							var answer strings.Builder
							for _, f := range p.Frames(strict.Answer{N: answers, Text: text, Calls: []strict.Call{{Name: "add", Arguments: arguments}}}) {
								answer.WriteString(f.Text)
							}
							bad = false
							answers++
							return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {p.Kind}}, ContentLength: -1, Request: req, Body: io.NopCloser(&piecewise{pieces: eventsOf(answer.String())})}, nil
						})
						require.NoError(t, err)
						got := read(t, resp)
						require.Equal(t, http.StatusOK, resp.StatusCode, got)
						history = append(history, p.collect(t, got)...)
					}
					require.Equal(t, 60, answers, "each turn has a re-ask")
					last, err := json.Marshal(p.request(history))
					require.NoError(t, err)
					require.Empty(t, p.Refuse(last, strict.Rules{Answers: answers, Strictest: true}))
				})
			}
		}
	}
}

// TestHistoryOfAnEmptyAnswer: a re-ask because of reasoning alone is one that the provider
// accepts, also behind results, and so is each later request of the client.
func TestHistoryOfAnEmptyAnswer(t *testing.T) {
	t.Parallel()
	all := reasoners()
	mistral := all["chat"]
	mistral.Format = strict.Mistral
	all["mistral"] = mistral
	for name, p := range all {
		for _, hold := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, hold=%t", name, hold), func(t *testing.T) {
				t.Parallel()
				answers := 0
				tr := transport.New(transport.Options{Hold: hold}, validate())
				history := []any{p.first}
				for range 5 {
					body, err := json.Marshal(p.request(history))
					require.NoError(t, err)
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://model.invalid"+p.path, strings.NewReader(string(body)))
					require.NoError(t, err)
					var calls []strict.Call
					resp, err := tr.Hook(req, func(req *http.Request) (*http.Response, error) {
						sent, err := io.ReadAll(req.Body)
						require.NoError(t, err)
						require.Empty(t, p.Refuse(sent, strict.Rules{Answers: answers, Strictest: true}), string(sent))
						require.True(t, p.Extends(body, sent), "%s\n%s", body, sent)
						var answer strings.Builder
						for _, f := range p.Frames(strict.Answer{N: answers, Calls: calls}) {
							answer.WriteString(f.Text)
						}
						calls = []strict.Call{{Name: "add", Arguments: `{"n":1}`}}
						answers++
						return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {p.Kind}}, ContentLength: -1, Request: req, Body: io.NopCloser(&piecewise{pieces: eventsOf(answer.String())})}, nil
					})
					require.NoError(t, err)
					got := read(t, resp)
					require.Equal(t, http.StatusOK, resp.StatusCode, got)
					history = append(history, p.collect(t, got)...)
				}
				require.Equal(t, 10, answers, "each turn has a re-ask")
				last, err := json.Marshal(p.request(history))
				require.NoError(t, err)
				require.Empty(t, p.Refuse(last, strict.Rules{Answers: answers, Strictest: true}))
			})
		}
	}
}
