package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
	"github.com/toolmend/toolmend/wire/internal/codectest"
)

// specimen is an exchange to be broken.
type specimen struct{ request, answer string }

// specimens are the recorded exchanges that are small enough to be mutated by
// the million, and hand-made ones where there are no recordings.
func specimens(t *testing.T, c wire.Codec) []specimen {
	var out []specimen
	for _, p := range providers() {
		if p.codec == c {
			request, err := c.EncodeRequest(question())
			require.NoError(t, err)
			out = append(out, specimen{string(request), p.unary}, specimen{string(request), p.stream})
		}
	}
	t.Run("recordings", func(t *testing.T) {
		for _, x := range codectest.Load(t, c.Dialect()) {
			if len(x.Request)+len(x.Response) < 12<<10 && x.Status < 400 {
				out = append(out, specimen{x.Request, x.Response})
			}
		}
	})
	return out
}

// mutationsPerCheck makes `make soak`, with 100,000 checks, a run of a million
// mutations of each format.
const mutationsPerCheck = 10

// A body that is not quite right may be refused, but never panics. A request is never
// written differently than it came, an answer never with other calls, and no change to
// them is lost.
func TestMutations(t *testing.T) {
	t.Parallel()
	for name, p := range providers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := specimens(t, p.codec)
			rapid.Check(t, func(t *rapid.T) {
				for range mutationsPerCheck {
					s := all[rapid.IntRange(0, len(all)-1).Draw(t, "specimen")]
					for range rapid.IntRange(1, 3).Draw(t, "mutations") {
						if rapid.Bool().Draw(t, "of the request") {
							s.request = mutate(t, s.request)
						} else {
							s.answer = mutateAnswer(t, s.answer)
						}
					}
					if err := survives(p.codec, s); err != nil {
						t.Fatalf("%v\nrequest %s\nanswer %s", err, s.request, s.answer)
					}
				}
			})
		})
	}
}

var mutants = []string{
	`null`, `""`, `"x"`, `0`, `-1`, `1e400`, `12345678901234567890`, `true`, `[]`, `{}`, `[null]`, `[[]]`, `[{}]`, `{"type":"text"}`, `{"a":{}}`,
	`"tool_use"`, `"function_call"`, `"assistant"`, `"\ud800"`, `{"type":7}`,
}

// mutate breaks one value of a JSON text: another value in its place, gone,
// there twice, under another key, or of another member.
func mutate(t *rapid.T, text string) string {
	doc, err := rawjson.Parse(text, rawjson.Limits{Bytes: -1, Depth: -1, Number: -1, Exponent: -1})
	if err != nil {
		return text
	}
	var values []rawjson.Value
	for todo := []rawjson.Value{doc.Root()}; len(todo) > 0; todo = todo[1:] {
		for v := range todo[0].Each() {
			values, todo = append(values, v), append(todo, v)
		}
	}
	if len(values) == 0 {
		return rapid.SampledFrom(mutants).Draw(t, "whole")
	}
	v := rapid.SampledFrom(values).Draw(t, "value")
	start, end := v.Span()
	var edits []rawjson.Edit
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		edits = []rawjson.Edit{{Start: start, End: end, Text: rapid.SampledFrom(mutants).Draw(t, "mutant")}}
	case 1:
		edits = v.Parent().Cut(func(c rawjson.Value) bool { return c == v })
	case 2:
		twice := v.Raw()
		if v.IsMember() {
			twice = rawjson.Quote(v.Key()) + ":" + twice
		}
		edits = []rawjson.Edit{{Start: end, End: end, Text: "," + twice}}
	case 3:
		if from, to := v.KeySpan(); v.IsMember() {
			other := rapid.SampledFrom(values).Draw(t, "other").Key()
			edits = []rawjson.Edit{{Start: from, End: to, Text: rawjson.Quote(other)}}
		}
	case 4:
		edits = []rawjson.Edit{{Start: start, End: end, Text: rapid.SampledFrom(values).Draw(t, "other").Raw()}}
	case 5:
		if v.Kind() == rawjson.String {
			edits = []rawjson.Edit{{Start: start, End: end, Text: `"\u00e9\n{\"a\":1}` + v.Raw()[1:]}}
		}
	}
	out, err := rawjson.Apply(text, edits)
	if err != nil {
		return text
	}
	return out
}

// mutateAnswer breaks one event of a stream, or their order, or a whole body.
func mutateAnswer(t *rapid.T, body string) string {
	sep := "\n"
	switch {
	case strings.HasPrefix(strings.TrimSpace(body), "{") && !strings.Contains(body, "}\n{"), strings.HasPrefix(strings.TrimSpace(body), "["):
		return mutate(t, body)
	case strings.Contains(body, "\r\n\r\n"):
		sep = "\r\n\r\n"
	case strings.Contains(body, "\n\n"):
		sep = "\n\n"
	}
	events := strings.Split(body, sep)
	i := rapid.IntRange(0, len(events)-1).Draw(t, "event")
	switch rapid.IntRange(0, 7).Draw(t, "event kind") {
	case 0:
		events = slices.Delete(events, i, i+1)
	case 1:
		events = slices.Insert(events, i, events[i])
	case 2:
		j := rapid.IntRange(0, len(events)-1).Draw(t, "other event")
		events[i], events[j] = events[j], events[i]
	case 3:
		events[i] = ": comment"
	default:
		at := strings.IndexAny(events[i], "{")
		if at >= 0 {
			events[i] = events[i][:at] + mutate(t, events[i][at:])
		}
	}
	return strings.Join(events, sep)
}

// survives decodes what it can, and holds the codec to its word on it.
func survives(c wire.Codec, s specimen) error {
	req, err := c.DecodeRequest([]byte(s.request))
	if err != nil {
		if !errors.Is(err, wire.ErrShape) {
			return fmt.Errorf("request refused otherwise than by its shape: %w", err)
		}
		req = question()
	} else {
		if out, err := c.EncodeRequest(req); err != nil || string(out) != s.request {
			return fmt.Errorf("request written differently: %w\n%s", err, out)
		}
	}
	resp, err := c.DecodeResponse(req, []byte(s.answer))
	if err != nil {
		var m *middleware.ModelError
		if !errors.Is(err, wire.ErrShape) && !errors.Is(err, wire.ErrIncomplete) && !errors.As(err, &m) {
			return fmt.Errorf("answer refused with an error of no kind: %w", err)
		}
		return nil
	}
	out, err := c.EncodeResponse(resp)
	if err != nil {
		return fmt.Errorf("an answer that did not change: %w", err)
	}
	if again, err := c.DecodeResponse(req, out); err != nil || !slices.EqualFunc(again.Message.ToolCalls, resp.Message.ToolCalls, sameCall) {
		return fmt.Errorf("an answer with other calls is written: %w\n%s", err, out)
	}
	if err := takesArguments(c, req, resp); err != nil {
		return err
	}
	return takesTurn(c, req, resp)
}

// sameCall compares what a client takes from a call.
func sameCall(a, b middleware.ToolCall) bool {
	return a.ID == b.ID && a.Name == b.Name && a.Kind == b.Kind && strings.ToValidUTF8(a.Arguments, "\ufffd") == strings.ToValidUTF8(b.Arguments, "\ufffd")
}

// takesArguments changes the arguments of all calls: that is in what is
// written, and all that is, or the change is refused.
func takesArguments(c wire.Codec, req *middleware.Request, resp *middleware.Response) error {
	wanted := resp.Clone()
	for i, call := range wanted.Message.ToolCalls {
		if call.Kind == middleware.KindFunction {
			wanted.Message.ToolCalls[i].Arguments = fmt.Sprintf(`{"mended":%d,"s":"a\nb"}`, i)
		}
	}
	out, err := c.EncodeResponse(wanted)
	if errors.Is(err, wire.ErrUnencodable) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("mended: %w", err)
	}
	got, err := c.DecodeResponse(req, out)
	if err != nil {
		return fmt.Errorf("mended answer does not decode: %w\n%s", err, out)
	}
	if want, got := view(wanted.Message), view(got.Message); !reflect.DeepEqual(want, got) || wanted.FinishReason != resp.FinishReason {
		return fmt.Errorf("mended answer lost something:\nwant %s\n got %s\n%s", want, got, out)
	}
	return nil
}

// takesTurn asks again: the turn is in the request, and history as it was.
func takesTurn(c wire.Codec, req *middleware.Request, resp *middleware.Response) error {
	m := history.FixIDs(req.Messages, resp.Message)
	verdicts := make([]middleware.Verdict, len(m.ToolCalls))
	for i, call := range m.ToolCalls {
		if call.Kind == middleware.KindBuiltin {
			return nil
		}
		verdicts[i] = middleware.Verdict{Call: call, Issues: []middleware.Issue{{Code: "type"}}}
	}
	if len(verdicts) == 0 {
		return nil
	}
	turn := batch.Turn(m, req.Tools, verdicts, batch.ReissueAll, func(middleware.Verdict) string { return "wrong" })
	body, err := c.EncodeRequest(req.With(turn...))
	if errors.Is(err, wire.ErrUnencodable) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("re-ask: %w", err)
	}
	got, err := c.DecodeRequest(body)
	if err != nil {
		return fmt.Errorf("re-ask does not decode: %w\n%s", err, body)
	}
	if holdsConversation(body) {
		return nil
	}
	if len(got.Messages) != len(req.Messages)+len(turn) {
		want, seen := flat(append(req.Messages, turn...)), flat(got.Messages)
		if c == wire.OpenAIResponses() && (slices.Equal(want, seen) || leavesItemsOut(c, req.Messages, turn, seen)) {
			return nil // a turn is a run of items: one that lost its end joins the next
		}
		return fmt.Errorf("re-ask: %d messages and a turn of %d became %d: %q for %q\n%s", len(req.Messages), len(turn), len(got.Messages), seen, want, body)
	}
	for i, want := range req.Messages {
		if w, g := view(want), view(got.Messages[i]); w != g {
			return fmt.Errorf("re-ask: message %d became\n%s\n for\n%s\n%s", i, g, w, body)
		}
	}
	if w, g := len(turn[0].ToolCalls), len(got.Messages[len(req.Messages)].ToolCalls); w != g {
		return fmt.Errorf("re-ask: %d calls became %d\n%s", w, g, body)
	}
	return nil
}

// leavesItemsOut reports whether seen is what flat returns for history and turn, except for
// parts of the answer that turn begins with, and whether the answer has an item that the
// format refuses in a request. The codec does not send such an item, because no provider
// would take the request.
func leavesItemsOut(c wire.Codec, history, turn []middleware.Message, seen []string) bool {
	var answer struct{ Output []json.RawMessage }
	if turn[0].Native == nil || json.Unmarshal([]byte(turn[0].Native.Raw), &answer) != nil {
		return false
	}
	if !slices.ContainsFunc(answer.Output, func(item json.RawMessage) bool {
		_, err := c.DecodeRequest(fmt.Appendf(nil, `{"model":"m","input":[%s]}`, item))
		return errors.Is(err, wire.ErrShape)
	}) {
		return false
	}
	bare := turn[0]
	bare.Parts = nil
	rest := slices.Clone(seen)
	without := func(all []string) (missing bool) {
		for _, s := range all {
			if i := slices.Index(rest, s); i >= 0 {
				rest = slices.Delete(rest, i, i+1)
			} else {
				missing = true
			}
		}
		return missing
	}
	missing := without(flat(slices.Concat(history, []middleware.Message{bare}, turn[1:])))
	without(flat([]middleware.Message{{Parts: turn[0].Parts}}))
	return !missing && len(rest) == 0
}

// flat returns the parts and calls of messages, sorted, wherever these begin
// and end. Reasoning is left out: without a key to it and without a store the
// provider refuses it, so it does not go back.
func flat(messages []middleware.Message) []string {
	var out []string
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Kind == middleware.PartReasoning {
				continue
			}
			out = append(out, fmt.Sprint(p.Kind, p.Text, p.URL))
		}
		for _, c := range m.ToolCalls {
			out = append(out, fmt.Sprint(c.ID, c.Name, c.Arguments))
		}
	}
	slices.Sort(out)
	return out
}

// holdsConversation is for OpenAI Responses: the server has the turn already.
func holdsConversation(body []byte) bool {
	var r struct{ Conversation any }
	return json.Unmarshal(body, &r) == nil && r.Conversation != nil
}

// view is what a middleware sees of m.
func view(m middleware.Message) string {
	m = m.Clone()
	m.Native = nil
	for i := range m.Parts {
		m.Parts[i].Native = nil
	}
	for i := range m.ToolCalls {
		m.ToolCalls[i].Native = nil
	}
	b, _ := json.Marshal(m)
	return string(b)
}
