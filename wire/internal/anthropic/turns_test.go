package anthropic_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// indexOnce returns the place of part in s, -1 unless s has it once.
func indexOnce(s, part string) int {
	if strings.Count(s, part) != 1 {
		return -1
	}
	return strings.Index(s, part)
}

const asked = `{"max_tokens":9,"model":"m","messages":[{"role":"user","content":"Go."}] ,"tools":[{"name":"a","input_schema":{"type":"object"}}]}`

const twoCalls = `{"id":"msg_1","type":"message","role":"assistant","model":"m-2","content":[{"type":"thinking","thinking":"hm","signature":"s=="},{"type":"text","text":""},` +
	`{"type":"tool_use","id":"t1","name":"a","input":{"big":12345678901234567890}},{"type":"tool_use","id":"t2","name":"a","input":{},"caller":{"type":"direct"}}],` +
	`"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"output_tokens":7,"output_tokens_details":{"thinking_tokens":4}}}`

func decodeResponse(t tester, body string) *middleware.Response {
	t.Helper()
	resp, err := codec.Decode(format.NewStream(decodeRequest(t, asked), nil), []byte(body))
	require.NoError(t, err)
	return resp
}

// reaskOfFirstCall returns what a re-ask appends when the first call of m is wrong.
func reaskOfFirstCall(m middleware.Message) []middleware.Message {
	var verdicts []middleware.Verdict
	for i, c := range m.ToolCalls {
		v := middleware.Verdict{Call: c}
		if i == 0 {
			v.Issues = []middleware.Issue{{Code: "required"}}
		}
		verdicts = append(verdicts, v)
	}
	return batch.Turn(m, nil, verdicts, batch.ReissueAll, func(middleware.Verdict) string { return "wrong" })
}

func TestReask(t *testing.T) {
	t.Parallel()
	req, resp := decodeRequest(t, asked), decodeResponse(t, twoCalls)
	turn := reaskOfFirstCall(resp.Message)
	turn[2].Parts[0].Text = "held"
	const inserted = `,{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s=="},` +
		`{"type":"tool_use","id":"t1","name":"a","input":{"big":12345678901234567890}},{"type":"tool_use","id":"t2","name":"a","input":{},"caller":{"type":"direct"}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"wrong","is_error":true},{"type":"tool_result","tool_use_id":"t2","content":"held"}]}`
	want := replaceOnce(t, asked, `"Go."}`, `"Go."}`+inserted)
	require.Equal(t, want, encodeRequest(t, req.With(turn...)))
	require.Equal(t, want, encodeRequest(t, req.With(throughJSON(t, turn)...)), "from storage")
	require.Equal(t, want, encodeRequest(t, throughJSON(t, req).With(throughJSON(t, turn)...)))
}

// What no history can hold is written as it must be, ids that were made unique
// with it.
func TestReaskOfRubbish(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"streamed": messageStream(textBlockStart(0), blockStop(0), toolBlockStart(1, "t1", "a"), inputDelta(1, `{"n": oops`), blockStop(1), toolBlockStart(2, "t1", "no such"), blockStop(2), messageEnd("tool_use", 2)),
		"whole": `{"content":[{"type":"text","text":""},{"type":"tool_use","id":"t1","name":"a","input":[1],"caller":{"type":"direct"}},` +
			`{"type":"tool_use","id":"t1","name":"no such","input":{},"caller":{"type":"direct"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turn := reaskOfFirstCall(history.FixIDs(nil, decodeResponse(t, body).Message))
			want := replaceOnce(t, asked, `"Go."}`, `"Go."},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"a","input":{},"caller":{"type":"direct"}},`+
				`{"type":"tool_use","id":"toolmend_2","name":"no_such","input":{},"caller":{"type":"direct"}}]},`+
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"wrong","is_error":true},{"type":"tool_result","tool_use_id":"toolmend_2","content":"ok"}]}`)
			turn[2].Parts[0].Text = "ok"
			require.Equal(t, want, encodeRequest(t, decodeRequest(t, asked).With(turn...)))
			require.Equal(t, want, encodeRequest(t, decodeRequest(t, asked).With(throughJSON(t, turn)...)), "from storage")
		})
	}
}

func TestFreshResultsJoinTheMessageThatIsThere(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, conversation)
	first := middleware.ToolReply(req.Messages[3].ToolCalls[0], "new")
	req.Messages[4] = first
	require.Equal(t, replaceOnce(t, conversation, `{"type":"tool_result","tool_use_id":"t1","content":"ok","cache_control":{"type":"ephemeral"}}`,
		`{"type":"tool_result","tool_use_id":"t1","content":"new"}`), encodeRequest(t, req))

	second := middleware.ToolReply(middleware.ToolCall{ID: "t3"}, "more")
	req = decodeRequest(t, conversation)
	req.Messages = append(req.Messages[:6:6], append([]middleware.Message{second}, req.Messages[7:]...)...)
	require.Equal(t, replaceOnce(t, conversation, `{"type":"text","text":"Well?"}`, `{"type":"tool_result","tool_use_id":"t3","content":"more"}`), encodeRequest(t, req))
}

// Two messages with results that were apart stay so.
func TestResultsApart(t *testing.T) {
	t.Parallel()
	const body = `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"2"}]}]}`
	req := decodeRequest(t, body)
	require.Len(t, req.Messages, 2)
	req.Messages[1].IsError = true
	require.Equal(t, replaceOnce(t, body, `"tool_use_id":"2"`, `"tool_use_id":"2","is_error":true`), encodeRequest(t, req))
}

// Without its request, what was stored is written by the rules for fresh
// messages: results together, everything of the provider kept.
func TestStoredHistoryInAFreshRequest(t *testing.T) {
	t.Parallel()
	req := throughJSON(t, decodeRequest(t, conversation))
	req.Native, req.Tools = nil, nil
	body := encodeRequest(t, req)
	again := decodeRequest(t, body)
	require.Len(t, again.Messages, len(req.Messages))
	for i, m := range again.Messages {
		require.Equal(t, req.Messages[i].Role, m.Role)
		require.Equal(t, req.Messages[i].Text(), m.Text())
	}
	for _, kept := range []string{`"signature":"sig="`, `"caller":{"type":"direct"}`, `"cache_control":{"type":"ephemeral"}`, `"web_search_tool_result"`} {
		require.Contains(t, body, kept)
	}
	require.Equal(t, 1, strings.Count(body, `"role":"user","content":[{"type":"tool_result"`), "one message for both results")
}

func TestSystemPrompt(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct{ body, want string }{
		"none":     {`{"messages":[]}`, `{"messages":[],"system":"N"}`},
		"a string": {`{"system":"S","messages":[]}`, `{"system":[{"type":"text","text":"S"},{"type":"text","text":"N"}],"messages":[]}`},
		"empty":    {`{"system":"","messages":[]}`, `{"system":"N","messages":[]}`},
		"no block": {`{"system":[],"messages":[]}`, `{"system":[{"type":"text","text":"N"}],"messages":[]}`},
		"in the list": {`{"messages":[{"role":"system","content":"S"}]}`,
			`{"messages":[{"role":"system","content":"S"},{"role":"system","content":"N"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := decodeRequest(t, x.body)
			require.Equal(t, x.body, encodeRequest(t, req))
			body := encodeRequest(t, req.WithSystem("N"))
			require.Equal(t, x.want, body)
			require.Len(t, decodeRequest(t, body).Messages, len(req.Messages)+1)
		})
	}
}

// A top-level prompt that a middleware puts after a message keeps its place.
func TestSystemPromptMoved(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, `{"system":"S","messages":[{"role":"user","content":"U"}]}`)
	req.Messages[0], req.Messages[1] = req.Messages[1], req.Messages[0]
	require.Equal(t, `{"messages":[{"role":"user","content":"U"},{"role":"system","content":"S"}]}`, encodeRequest(t, req))
}

func TestEmptyText(t *testing.T) {
	t.Parallel()
	const body = `{"messages":[{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"a"}]}]}`
	req := decodeRequest(t, body)
	req.Messages[0].Parts[1].Text = "b"
	require.Equal(t, replaceOnce(t, body, `"a"`, `"b"`), encodeRequest(t, req), "the client's own stays")

	nothing := decodeResponse(t, `{"type":"message","content":[{"type":"text","text":""}],"stop_reason":"end_turn"}`).Message
	for _, m := range []middleware.Message{nothing, throughJSON(t, nothing), middleware.Assistant("")} {
		require.Equal(t, asked, encodeRequest(t, decodeRequest(t, asked).With(m)), "an assistant message without content is left out")
	}
}

// Code goes on to run in the container of the answer that is re-asked: its files are gone in
// another one.
func TestReaskNamesTheContainer(t *testing.T) {
	t.Parallel()
	const ran = `"stop_reason":"tool_use","stop_sequence":null,"container":{"id":"container_1","expires_at":"2026-12-01T00:00:00Z"},"usage":{"input_tokens":1,"output_tokens":1}}`
	whole := replaceOnce(t, twoCalls, twoCalls[indexOnce(twoCalls, `"stop_reason"`):], ran)
	streamed := messageStream(toolBlockStart(0, "t1", "a"), blockStop(0),
		replaceOnce(t, messageEnd("tool_use", 2), `"stop_sequence":null`, `"stop_sequence":null,"container":{"id":"container_1"}`))
	for name, c := range map[string]struct{ answer, request, want string }{
		"whole":                           {whole, `{`, `"container":"container_1"}`},
		"streamed":                        {streamed, `{`, `"container":"container_1"}`},
		"null":                            {whole, `{"container":null,`, `{"container":"container_1",`},
		"skills":                          {whole, `{"container":{"skills":[]},`, `{"container":{"skills":[],"id":"container_1"},`},
		"the request has one":             {whole, `{"container":"container_0",`, `{"container":"container_0",`},
		"the request has one with skills": {whole, `{"container":{"id":"container_0"},`, `{"container":{"id":"container_0"},`},
		"no code ran":                     {twoCalls, `{`, ``},
		"nor here":                        {replaceOnce(t, whole, `{"id":"container_1","expires_at":"2026-12-01T00:00:00Z"}`, `null`), `{`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turn := reaskOfFirstCall(decodeResponse(t, c.answer).Message)
			req := decodeRequest(t, replaceOnce(t, asked, `{"max_tokens"`, c.request+`"max_tokens"`))
			out := encodeRequest(t, req.With(turn...))
			require.Contains(t, out, c.want)
			require.Equal(t, c.want != "", strings.Contains(out, "container"), out)
			require.LessOrEqual(t, strings.Count(out, "container"), 2, "no message holds it")
			require.Equal(t, out, encodeRequest(t, req.With(throughJSON(t, turn)...)), "from storage")
			require.Equal(t, out, encodeRequest(t, decodeRequest(t, out)))

			later := req.With(append(turn, middleware.User("Go on."))...)
			require.Equal(t, strings.Contains(c.request, "container_0"), strings.Contains(encodeRequest(t, later), "container_"), "it is of the turn")

			fresh := &middleware.Request{Model: "m", Messages: append([]middleware.Message{middleware.User("Go.")}, turn...)}
			if params := strings.TrimSuffix(c.request, ","); params != "{" {
				fresh.Params = []byte(params + "}")
			}
			if c.want != "" && name != "null" {
				require.Contains(t, encodeRequest(t, fresh), strings.Trim(c.want, "{},"), "afresh")
			}
		})
	}
}
