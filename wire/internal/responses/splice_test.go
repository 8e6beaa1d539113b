package responses_test

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/casefile"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/codectest"
	"github.com/toolmend/toolmend/wire/internal/responses"
)

// laterStream and laterObject are answers to a re-ask.
var laterStream = eventStream(
	`{"type":"response.created","sequence_number":0,"response":{"id":"resp_2","status":"in_progress","output":[]}}`,
	`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"rs_2","type":"reasoning","summary":[]}}`,
	`{"type":"response.output_item.done","sequence_number":2,"output_index":0,"item":{"id":"rs_2","type":"reasoning","summary":[]}}`,
	`{"type":"response.output_item.added","sequence_number":3,"output_index":1,"item":{"id":"fc_2","type":"function_call","call_id":"call_2","name":"weather","arguments":"","status":"in_progress"}}`,
	`{"type":"response.function_call_arguments.delta","sequence_number":4,"output_index":1,"item_id":"fc_2","delta":"{\"city\":\"Bergen\"}"}`,
	`{"type":"response.function_call_arguments.done","sequence_number":5,"output_index":1,"item_id":"fc_2","arguments":"{\"city\":\"Bergen\"}"}`,
	`{"type":"response.output_item.done","sequence_number":6,"output_index":1,"item":{"id":"fc_2","type":"function_call","call_id":"call_2","name":"weather","arguments":"{\"city\":\"Bergen\"}","status":"completed"}}`,
	`{"type":"response.completed","sequence_number":7,"response":{"id":"resp_2","status":"completed","model":"m","output":[{"id":"rs_2","type":"reasoning","summary":[]},`+
		`{"id":"fc_2","type":"function_call","call_id":"call_2","name":"weather","arguments":"{\"city\":\"Bergen\"}","status":"completed"}],"usage":{"input_tokens":7,"output_tokens":3,"total_tokens":10}}}`,
)

const laterObject = `{"id":"resp_3","object":"response","status":"completed","model":"m","output":[` +
	`{"id":"msg_3","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"It rains.","annotations":[],"logprobs":[]},{"type":"refusal","refusal":"No more."}]},` +
	`{"id":"ct_3","type":"custom_tool_call","call_id":"call_3","name":"sql","input":"select 1","status":"completed"}],` +
	`"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}`

// readStream returns what may go out of a stream before its call, and its reader.
func readStream(t *testing.T, body string) (string, codec.Stream) {
	t.Helper()
	s := responses.Format{}.NewStream(offering, nil)
	_, err := s.Write([]byte(body))
	require.NoError(t, err)
	return shownOf(s), s
}

// shownOf returns what the client may have of a stream.
func shownOf(s codec.Stream) string {
	out, safe, _ := s.Output()
	return out[:safe]
}

func TestRestAfterARejectedTurn(t *testing.T) {
	t.Parallel()
	f := responses.Format{}
	cases := []string{"a stream", "an object"}
	casefile.OneForEach(t, slices.Values(cases))
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown, s := readStream(t, casefile.Body(t, "first"))
			require.NotContains(t, shown, `"id":"rs_1b"`, "reasoning in front of a call waits")
			require.NotContains(t, shown, "function_call")
			_, err := s.Close()
			require.NoError(t, err)
			resp, err := codec.Decode(f.NewStream(nil, nil), []byte(casefile.Body(t, "later")))
			require.NoError(t, err)
			resp.Usage = resp.Usage.Add(middleware.Usage{InputTokens: 100})
			rest, err := s.Rest(len(shown), resp)
			require.NoError(t, err)
			casefile.Expect(t, "spliced", shown+string(rest))
			p, err := play(shown + string(rest))
			require.NoError(t, err, shown+string(rest))

			require.Equal(t, "resp_1", p.finished["id"], "the client has seen this one begin")
			ids := []any{}
			for _, o := range p.finished["output"].([]any) {
				ids = append(ids, o.(object)["id"])
			}
			want := []any{"rs_1", "msg_1", "rs_2", "fc_2"}
			if name == "an object" {
				want = []any{"rs_1", "msg_1", "msg_3", "ct_3"}
			}
			require.Equal(t, want, ids, "what was shown stays, but for the reasoning that led to the rejected call")
			got, err := codec.Decode(f.NewStream(nil, nil), []byte(shown+string(rest)))
			require.NoError(t, err)
			require.Equal(t, "Let me see."+resp.Message.Text(), got.Message.Text())
			require.Equal(t, resp.Message.ToolCalls[0].Arguments, got.Message.ToolCalls[0].Arguments)
			require.Equal(t, resp.Usage, got.Usage)
			require.NotContains(t, got.Message.Native.Raw, "rs_1b")

			whole, err := s.Rest(0, resp)
			require.NoError(t, err)
			require.NotContains(t, string(whole), "resp_1", "nothing was shown: the later answer as it is")
		})
	}
}

func TestRestRefuses(t *testing.T) {
	t.Parallel()
	f := responses.Format{}
	shown, s := readStream(t, talkative)
	own, err := s.Close()
	require.NoError(t, err)
	other, err := codec.Decode(f.NewStream(nil, nil), []byte(laterStream))
	require.NoError(t, err)
	retold := own.Clone()
	retold.Message.Parts[1].Text = "Other words."
	for name, c := range map[string]struct {
		sent int
		resp *middleware.Response
	}{
		"more than there is":          {len(talkative) + 1, other},
		"other words than were shown": {len(shown), retold},
		"an answer of nobody":         {0, &middleware.Response{}},
	} {
		_, err := s.Rest(c.sent, c.resp)
		require.ErrorIs(t, err, codec.ErrUnencodable, name)
	}
	cut := strings.Index(talkative, `event: response.output_text.done`)
	half, err := s.Rest(cut, other)
	require.NoError(t, err, "an item that was begun is finished first")
	_, err = play(talkative[:cut] + string(half))
	require.NoError(t, err)

	broken := responses.Format{}.NewStream(offering, nil)
	_, err = broken.Write([]byte(talkative[:cut]))
	require.NoError(t, err)
	_, err = broken.Close()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	half, err = broken.Rest(cut, other)
	require.NoError(t, err, "a text without an end ends with what was shown")
	p, err := play(talkative[:cut] + string(half))
	require.NoError(t, err)
	require.Len(t, p.finished["output"], 4)
}

// A text that a middleware wrote anew goes on with the text that the client has begun, if it
// begins with it.
func TestRestOfATextWrittenAnew(t *testing.T) {
	t.Parallel()
	cut := strings.Index(talkative, `event: response.output_text.done`)
	for text, want := range map[string]error{"Let me see. It rains.": nil, "Other words.": codec.ErrShown} {
		_, s := readStream(t, talkative)
		resp, err := s.Close()
		require.NoError(t, err)
		resp = resp.Clone()
		i := slices.IndexFunc(resp.Message.Parts, func(p middleware.Part) bool { return p.Kind == middleware.PartText })
		resp.Message.Parts[i] = middleware.Part{Text: text}
		rest, err := s.Rest(cut, resp)
		require.ErrorIs(t, err, want)
		if want != nil {
			continue
		}
		p, err := play(talkative[:cut] + string(rest))
		require.NoError(t, err)
		got, err := codec.Decode(responses.Format{}.NewStream(nil, nil), []byte(talkative[:cut]+string(rest)))
		require.NoError(t, err)
		require.Equal(t, text, got.Message.Text())
		require.Equal(t, "msg_1", p.finished["output"].([]any)[1].(object)["id"], "the item that was begun")
	}
}

// Every recorded stream, shown up to each of its events, goes on with its own
// answer without a call, and with every kind of later answer.
func TestRestOfRecordedStreams(t *testing.T) {
	t.Parallel()
	f := responses.Format{}
	var others []*middleware.Response
	for _, body := range []string{laterStream, laterObject} {
		resp, err := codec.Decode(f.NewStream(nil, nil), []byte(body))
		require.NoError(t, err)
		others = append(others, resp)
	}
	spliced := 0
	for _, x := range codectest.Load(t, "openai-responses") {
		if _, err := play(x.Response); err != nil || !x.Streamed() {
			continue
		}
		s := f.NewStream(offering, nil)
		var boundaries []int
		for _, piece := range strings.SplitAfter(x.Response, "\n\n") {
			_, err := s.Write([]byte(piece))
			require.NoError(t, err)
			boundaries = append(boundaries, s.Safe())
		}
		resp, err := s.Close()
		require.NoError(t, err)
		dropped := resp.Clone()
		dropped.Message.ToolCalls = nil
		for _, sent := range []int{0, boundaries[len(boundaries)/2], s.Safe()} {
			for _, other := range append(others, dropped) {
				rest, err := s.Rest(sent, other)
				require.NoError(t, err, "%s, %d shown", x.ID, sent)
				if sent == 0 && other == others[1] {
					continue
				}
				out, _, _ := s.Output()
				_, err = play(out[:sent] + string(rest))
				require.NoError(t, err, "%s, %d shown\n%s", x.ID, sent, out[:sent]+string(rest))
				spliced++
			}
		}
	}
	t.Logf("%d streams spliced", spliced)
}

// Content that was shown before a re-ask and is not a part of the answer stays in the stream,
// whatever is changed after it, and out of the message.
func TestSplicedStreamIsEditedAgain(t *testing.T) {
	t.Parallel()
	shown, s := readStream(t, talkative)
	_, err := s.Close()
	require.NoError(t, err)
	rest, err := s.Rest(len(shown), decodeResponse(t, laterStream))
	require.NoError(t, err)
	for name, edit := range map[string]func(m *middleware.Message){
		"a call more": func(m *middleware.Message) {
			m.ToolCalls = append(m.ToolCalls, middleware.ToolCall{ID: "c", Name: "f", Arguments: "{}"})
		},
		"no call": func(m *middleware.Message) { m.ToolCalls = nil },
		"a call":  func(m *middleware.Message) { m.ToolCalls[0].Name = "g" },
	} {
		again, outer := readStream(t, shown+string(rest))
		resp, err := outer.Close()
		require.NoError(t, err)
		edit(&resp.Message)
		tail, err := outer.Rest(len(again), resp)
		require.NoError(t, err, name)
		_, err = play(again + string(tail))
		require.NoError(t, err, name)
		require.NotContains(t, again+string(tail), "rs_1b", "it led to what was rejected")
		got := decodeResponse(t, again+string(tail))
		require.NotContains(t, got.Message.Native.Raw, "rs_1b", name)
		require.Len(t, got.Message.ToolCalls, len(resp.Message.ToolCalls), name)
	}
}

// Items of one id are two calls in an object, and one for clients of a stream that put
// arguments together by the id of their item: so the second one gets another.
func TestItemsOfOneIDInAStream(t *testing.T) {
	t.Parallel()
	f := responses.Format{}
	for name, ids := range map[string][2]string{"of one answer": {"fc_3", "fc_3"}, "of what was shown": {"rs_1", "fc_4"}, "of their own": {"fc_3", "fc_4"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := `{"id":"resp_3","object":"response","status":"completed","model":"m","output":[` +
				`{"id":"` + ids[0] + `","type":"function_call","call_id":"call_3","name":"pay","arguments":"{}","status":"completed"},` +
				`{"id":"` + ids[1] + `","type":"function_call","call_id":"call_4","name":"ping","arguments":"","status":"completed"}]}`
			resp, err := codec.Decode(f.NewStream(nil, nil), []byte(object))
			require.NoError(t, err)
			shown, s := readStream(t, talkative)
			_, err = s.Close()
			require.NoError(t, err)
			spliced, err := s.Rest(len(shown), resp)
			require.NoError(t, err)
			fresh, _, err := f.EncodeAnswer("/v1/responses", []byte(`{"stream":true}`), resp)
			require.NoError(t, err)
			for _, body := range []string{string(fresh), shown + string(spliced)} {
				p, err := play(body)
				require.NoError(t, err)
				seen := map[any]bool{}
				for _, it := range p.items {
					require.False(t, seen[it.done["id"]], it.done["id"])
					seen[it.done["id"]] = true
				}
				require.Len(t, decodeResponse(t, body).Message.ToolCalls, 2)
			}
		})
	}
	twice := `{"id":"a","type":"mcp_approval_request","server_label":"l","name":"pay","arguments":"{}"}`
	_, _, err := f.EncodeAnswer("/v1/responses", []byte(`{"stream":true}`), decodeResponse(t, answerBody("", twice, twice)))
	require.ErrorIs(t, err, codec.ErrUnencodable, "an id that an answer to it repeats")
}

// An object follows where nothing of an answer was shown, too.
func TestObjectAfterAComment(t *testing.T) {
	t.Parallel()
	s := format.NewStream(offering, nil)
	_, err := s.Write([]byte(": wait\n\n: a little\n\n" + talkative))
	require.NoError(t, err)
	_, err = s.Close()
	require.NoError(t, err)
	body := `{"id":"resp_4","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"id":"rs_4","type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}]},` +
		`{"id":"msg_4","type":"message","role":"assistant","status":"incomplete","content":[{"type":"new"},{"type":"output_text","text":"It","annotations":[]}]}]}`
	for _, sent := range []int{len(": wait\n\n"), len(": wait\n\n: a little\n\n")} {
		rest, err := s.Rest(sent, decodeResponse(t, body))
		require.NoError(t, err)
		_, err = play(": wait\n\n" + string(rest))
		require.NoError(t, err)
		got := decodeResponse(t, ": wait\n\n"+string(rest))
		require.Equal(t, middleware.FinishLength, got.FinishReason)
		require.Equal(t, "It", got.Message.Text())
		require.Len(t, got.Message.Parts, 3)
	}
}

func TestBrokenFormsFromStorage(t *testing.T) {
	t.Parallel()
	broken := &middleware.Native{Dialect: "openai-responses", Raw: `{"type":`}
	for name, m := range map[string]middleware.Message{
		"a message": {Role: middleware.RoleUser, Native: broken},
		"a part":    {Role: middleware.RoleUser, Parts: []middleware.Part{{Text: "a", Native: broken}}},
		"a call":    {Role: middleware.RoleAssistant, ToolCalls: []middleware.ToolCall{{Native: broken}}},
		"no call":   {Role: middleware.RoleAssistant, ToolCalls: []middleware.ToolCall{{Native: &middleware.Native{Dialect: "openai-responses", Raw: `{}`}}}},
	} {
		_, err := format.EncodeRequest(&middleware.Request{Messages: []middleware.Message{m}})
		require.ErrorIs(t, err, codec.ErrUnencodable, name)
	}
	_, err := format.EncodeRequest(&middleware.Request{Native: broken})
	require.ErrorIs(t, err, codec.ErrUnencodable)
	_, err = format.EncodeRequest(&middleware.Request{Tools: []middleware.Tool{{Native: broken}}})
	require.ErrorIs(t, err, codec.ErrUnencodable)
	_, err = format.EncodeResponse(&middleware.Response{Native: broken})
	require.ErrorIs(t, err, codec.ErrUnencodable)
}

// offering is a request that offers a tool: only then reasoning waits.
var offering = &middleware.Request{Tools: []middleware.Tool{{Name: "weather"}}}
