// Package responses is the wire format of OpenAI Responses: /responses, on
// Azure and on the servers that copy it.
//
// A conversation is a list of items, not of messages:
//
//	{"instructions": text, "input": text or [{"role": "user", …}, {"type": "reasoning", …}, {"type": "function_call", …}, …]}
//
// The items of the model between two inputs (reasoning, messages, calls and
// the provider's own tools) become one neutral message. Its Native is the
// array of those items or, of an answer, {"output": items}, with
// "store": false if the provider did not keep it. A text in the place of
// a list of blocks is its own Native. Tools that the provider runs
// are opaque parts; calls that the client answers in a form of their own, such as
// computer_call, are of KindBuiltin. Reasoning without a Native of this format is
// left out: the provider takes only its own.
//
// An answer without a word for calls passes as it came. In any other answer, text and
// the provider's tools are shown as they come, reasoning with the item that it leads to, and
// a call of the client is held with everything after it. Held items are written anew: each
// item as it was announced, in one piece, and as it is done, and then the end, which
// names exactly the items of the stream.
//
// Copies: a stream holds each call several times, in output_item.added and
// output_item.done, as deltas, in the done event of the arguments, and in the
// response object of the last event. The last output_item.done counts, else
// the end, else the announced item with the arguments that came. All copies that
// leave are written from that one. A call in the first events is refused. Some servers
// add output_text, a copy of all texts.
//
// A later answer continues the numbers of an earlier one, under its id. Comments, pads and
// logprobs of deltas after a call are dropped.
//
// Cannot be encoded: stop sequences, a change of a tool inside a namespace or of
// an item that the provider ran, reasoning in several texts, the mark of a failed result
// that was read from this format (for any other result the mark is dropped), a turn
// that the provider holds, and further choices.
//
// The files: responses.go has the Format, its paths and keep-alives; request.go the root of
// a request and its settings; item.go one item, and the calls among them; message.go joins
// items to messages and takes them apart again; tools.go has tools; stream.go reads answers;
// answer.go writes them; errors.go has the errors. All of them work on texts: an
// item that did not change is found by its text, in memory as after storage.
//
// Source: the API reference of OpenAI, "Responses" and "Streaming events".
package responses

import (
	"bytes"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// dialect marks what was decoded by this package, in storage too: it cannot change.
const dialect = "openai-responses"

// on is how members of this format are read and written.
var on = lens.Lens{Dialect: dialect}

// Format is the codec. Its methods are described in package wire.
type Format struct{ codec.Defaults[Format] }

var _ codec.Format = Format{}

// Dialect returns the name of the format.
func (Format) Dialect() string { return dialect }

// Match reports whether a request is in the format. The body has to begin an object that names
// at least one of the members that hold the model's task.
func (f Format) Match(path string, body []byte) bool {
	keys := []string{`"input"`, `"prompt"`, `"previous_response_id"`, `"conversation"`}
	return f.MatchPath(path) && bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) &&
		slices.ContainsFunc(keys, func(key string) bool { return bytes.Contains(body, []byte(key)) })
}

// MatchPath reports whether requests with that path may be in the format. The answer to the
// second path has a compacted history in place of the model's output.
func (Format) MatchPath(at string) bool {
	return codec.PathEnds(at, "/responses", "/responses/compact")
}

// URL returns where requests go.
func (Format) URL(base, _ string, _ bool) string {
	if base == "" {
		base = "https://api.openai.com/v1"
	}
	return codec.Below(base, "/responses")
}

// Opening returns the end of the event that opens a streamed answer: the SDKs demand
// response.created as the first event, and take the response that later events change from it.
func (Format) Opening(text string) int {
	e, _ := opening(text)
	return e.End
}

// opening returns the event that opens a stream, and the response in it.
func opening(text string) (codec.Event, rawjson.Value) {
	e, root := codec.First(text, func(root rawjson.Value) bool {
		return isHead(root.Get("type").Str()) && root.Get("response").Kind() == rawjson.Object
	})
	return e, root.Get("response")
}

// KeepAlive returns bytes that tell the client that a streamed answer continues. Codex takes a
// stream for dead without events, and a comment does not count. Before the first item the
// event is response.in_progress, which every client knows. After an item it would do harm:
// openai-node (6.49, accumulateResponse) replaces the items that it has read by the response
// of the event, which has none. There the event is OpenAI's own keepalive.
func (Format) KeepAlive(text string, sent, n int) (string, bool) {
	if !codec.MayBeEvents(text) {
		return "", false
	}
	e, response := opening(text[:sent])
	if !response.Exists() {
		return codec.Comment, false
	}
	t, items := transcript{beginning: beginning{named: e.Name != ""}}, false
	_ = codec.Each(text[:sent], func(e codec.Event) error {
		root, err := codec.ParseObject(e.Data)
		if number := root.Get("sequence_number"); err == nil && number.Kind() == rawjson.Number {
			t.numbered, t.next = true, codec.Int(number)+1+int64(n)
		}
		items = items || strings.HasPrefix(root.Get("type").Str(), "response.output_item.")
		return nil
	})
	if items {
		t.write("keepalive")
	} else {
		t.write("response.in_progress", lens.Raw("response", response.Raw()))
	}
	return t.out.String(), t.numbered
}

// Renumber numbers events that follow keep-alives. Events are counted by sequence_number.
// After n keep-alives with a number, the numbers of the following events are n higher. Events
// without a number stay as they are.
func (Format) Renumber(events string, n int) (string, error) {
	return codec.Renumber(events, "sequence_number", n)
}

// previous names the member of a request that goes on from an earlier answer,
// which the provider keeps under its own id.
const previous = "previous_response_id"

// Renamed returns the ids under which the client and the provider know the answer. It is
// needed where the client was shown the beginning of one answer and the end of a later one,
// under the id of the first, while the provider keeps the later one: the next request will
// name the first. An answer that the provider does not keep cannot be gone on from.
func (s *stream) Renamed(sent int, resp *middleware.Response) (clientID, providerID string) {
	a, err := codec.Reread[*answer](Format{}, resp.Native)
	if err != nil || on.Raw(resp.Native) == s.Text() || a.turn.lost || sent == 0 {
		return "", ""
	}
	out, _, _ := s.Output()
	_, head := opening(out[:sent])
	clientID, providerID = head.Get("id").Str(), a.env.Get("id").Str()
	if clientID == "" || providerID == "" || clientID == providerID {
		return "", ""
	}
	if s.Req != nil { // last, because the request is parsed for it
		if asked, err := on.Value(s.Req.Native); err == nil && asked.Get("store").Raw() == "false" {
			return "", ""
		}
	}
	return clientID, providerID
}

// RenamePrevious replaces the id of the answer that a request continues from. A body that
// cannot be edited stays as it is, and the provider reports its fault.
func (Format) RenamePrevious(body []byte, rename func(id string) string) []byte {
	if !bytes.Contains(body, []byte(previous)) {
		return body
	}
	root, err := codec.ParseObject(string(body))
	id := root.Get(previous)
	if err != nil || id.Kind() != rawjson.String {
		return body
	}
	to := rename(id.Str())
	if to == id.Str() {
		return body
	}
	start, end := id.Span()
	return slices.Concat(body[:start], []byte(rawjson.Quote(to)), body[end:])
}

// EndsWith reports whether an event ends the stream for clients: the events that end an
// answer, which no [DONE] follows.
func (Format) EndsWith(name, _ string) bool { return isEnd(name) }
