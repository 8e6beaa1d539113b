package ollama

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// stream reads an answer. One that is not streamed is a stream of one line. Clients join
// the texts and the lists of the lines, and so does stream:
//
//	{"model": …, "created_at": …, "message": {"role": "assistant", "content": "We"}, "done": false}
//	{"model": …, "created_at": …, "message": {"role": "assistant", "content": "ll."}, "done": false}
//	{"model": …, "created_at": …, "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop", "eval_count": 3}
type stream struct {
	codec.Splitter

	model         string
	text, thought strings.Builder
	images, calls []string      // elements
	further       codec.Members // of messages, that this package does not know
	end           string        // the last line, as it is written
	reason        string
	usage         middleware.Usage
	done          bool
	known         bool // a line of this format has come
	unknown       bool // an object of another format has come
	failure       *codec.Failure
	snapshot      content // what the client may be shown
}

// These trees have the members of a line that are written even if they contain a word for
// calls: text may speak of calls. The calls of an answer that is one line are written too.
var (
	lineTree    = codec.Tree{"message": textTree}.Scalars("model", "created_at", "done", "done_reason")
	textTree    = codec.Tree{"content": nil, "thinking": nil, "images": nil}.Scalars("role")
	messageTree = textTree.With(codec.Tree{"function": functionTree}.Scalars("id", "type"), "tool_calls")

	functionTree = codec.Tree{"arguments": codec.AsSent}.Scalars("index", "name")
)

// NewStream returns a reader of one answer.
func (Format) NewStream(req *middleware.Request, sink middleware.Sink) codec.Stream {
	s := &stream{}
	s.Splitter = codec.NewSplitter(Format{}, s, lineTree, true, req, sink)
	return s
}

// Release returns what becomes of a unit. Calls, errors and the end are held.
func (s *stream) Release(u *codec.Unit) (codec.Release, error) {
	v := u.Value
	_, failed := Format{}.ReadFailure(v)
	switch message := v.Get("message"); {
	case s.Buf.IsWhole(), u.Err != nil && codec.CutShort(u.Err):
		return codec.ReleaseHold, nil
	case u.Err != nil && strings.ContainsAny(u.Data, "{}"):
		return codec.ReleaseHold, u.Err
	case failed, isDone(v), !message.Get("tool_calls").Empty() && message.Get("tool_calls").Exists():
		return codec.ReleaseHold, nil
	case message.Get("content").Str() != "":
		return codec.ReleaseNow, nil
	case message.Get("thinking").Str() != "":
		return codec.ReleaseAfterText, nil
	}
	return codec.ReleaseWithPrevious, nil
}

// Snapshot notes what the client may be shown.
func (s *stream) Snapshot() {
	s.snapshot = content{text: s.text.String(), thinking: s.thought.String()}
}

// Read reads a unit. Units after an error are ignored. A call after an error or after the end
// makes the answer unreadable: some clients would run it, others would not. A unit without an
// object, such as an empty line or a line that was cut off, has no content.
func (s *stream) Read(u *codec.Unit) error {
	v := u.Value
	if !v.Exists() {
		if s.Buf.IsWhole() && !codec.CutShort(u.Err) {
			return u.Err
		}
		return nil
	}
	if f, ok := (Format{}).ReadFailure(v); ok && s.failure == nil {
		s.failure = &f
	}
	message, err := on.Kind(v, "message", rawjson.Object)
	called := message.Get("tool_calls").Len() > 0
	switch {
	case called && s.failure != nil:
		return codec.Shapef("calls beside or behind an error")
	case s.failure != nil:
		return nil
	case err != nil:
		return err
	case !message.Exists() && !v.Get("done").Exists():
		s.unknown = true
		return nil
	case called && s.done:
		return codec.Shapef("a call behind the end of the stream")
	}
	s.known = true
	s.model = cmp.Or(v.Get("model").Str(), s.model)
	if err := s.add(message); err != nil {
		return err
	}
	if isDone(v) {
		s.done, s.end, s.reason = true, lineTree.Write(v), codec.Text(v.Get("done_reason"))
		if u := figures.Read(v); u != (middleware.Usage{}) {
			s.usage = u
		}
	} else if message.Len() == 2 {
		s.Repeats(u, s.addText, message.Get("content"), v.Get("created_at"))
	}
	return nil
}

// Response returns the answer after the last unit. A line with "done" ends an answer. The
// message is read like one of the history, after the messages of the request, so that calls
// without ids get their place in the conversation.
func (s *stream) Response() (codec.Written, error) {
	switch {
	case s.failure != nil:
		return nil, codec.ModelError(codec.StatusOf(s.failure.Code), nil, *s.failure)
	case !s.done && !s.known && s.unknown:
		return nil, codec.Shapef("neither message nor done")
	case !s.done:
		return nil, codec.ErrIncomplete
	}
	message := s.message()
	turn, err := codec.ParseObject(message)
	if err != nil {
		return nil, err
	}
	m, _, err := new(conversation).read(turn)
	if slices.ContainsFunc(m.ToolCalls, func(c middleware.ToolCall) bool { return codec.IsPlaceID(c.ID) }) {
		m, _, err = (&conversation{calls: codec.Calls(s.Req)}).read(turn)
	}
	if err != nil {
		return nil, err
	}
	object, err := on.SetIn(s.end, lens.Word("model", s.model), lens.Raw("message", message))
	if err != nil {
		return nil, err
	}
	is := middleware.Response{Message: m, FinishReason: codec.Finish(s.reason, len(m.ToolCalls) > 0), Model: s.model, Usage: s.usage}
	return &answer{codec.Answered{Is: is}, object}, nil
}

// isDone reports whether a line is the last one.
func isDone(root rawjson.Value) bool {
	done := root.Get("done")
	return done.Raw() == "true" || done.Str() == "true"
}

// add adds a piece of the message. A value that is not a list of calls, and not empty,
// may hold a call that this package cannot read.
func (s *stream) add(message rawjson.Value) error {
	calls := message.Get("tool_calls")
	if k := calls.Kind(); k == rawjson.Object && !calls.Empty() || calls.Str() != "" {
		return codec.Shapef("tool_calls is of kind %s, where a list should be", k)
	}
	s.images = appendElements(s.images, message.Get("images"), nil)
	s.calls = appendElements(s.calls, calls, messageTree["tool_calls"])
	for m := range message.Each() {
		if !messageTree.Knows(m.Key()) && codec.FreeMember(m) {
			s.further.Put(m.Key(), codec.Canonical(m))
		}
	}
	thought := asWritten(message.Get("thinking"))
	s.thought.WriteString(thought)
	if err := codec.Emit(s.Sink, middleware.PartReasoning, thought); err != nil {
		return err
	}
	return s.addText(asWritten(message.Get("content")))
}

// asWritten returns the text of v as it is written: with U+FFFD for each byte that is not UTF-8.
func asWritten(v rawjson.Value) string {
	if text := v.Str(); utf8.ValidString(text) {
		return text
	}
	return string([]rune(v.Str()))
}

// addText adds a piece of text.
func (s *stream) addText(text string) error {
	s.text.WriteString(text)
	return codec.Emit(s.Sink, middleware.PartText, text)
}

// appendElements appends the elements of list, as they are written.
func appendElements(to []string, list rawjson.Value, known codec.Tree) []string {
	if list.Kind() == rawjson.Array {
		for e := range list.Each() {
			to = append(to, known.Write(e))
		}
	}
	return to
}

// message returns the message of all lines.
func (s *stream) message() string {
	members := content{text: s.text.String(), thinking: s.thought.String()}.members(middleware.RoleAssistant)
	members = append(members, lens.List("images", s.images), lens.List("tool_calls", s.calls))
	return codec.Object(append(members, s.further.List...)...)
}
