package gemini

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// answer is the handle behind a response: its chunks, and what was handed out.
// An answer that was not streamed is one chunk.
type answer struct {
	native   middleware.Native
	chunks   []chunk
	speakers []*speaker // those of the candidates, in order of their index
	blocked  bool       // the prompt was refused
	usage    rawjson.Value
	usageAt  int // chunk of usage
	was      middleware.Response
}

type chunk struct {
	event codec.Event
	doc   *rawjson.Doc
}

// speaker is one candidate through all chunks.
type speaker struct {
	index    int64
	content  *content
	sections []section
	places   []int // section of each part
	finish   string
	joined   *partial // a call that goes on
	behind   bool     // a call, or the end, stood in a candidate that was not the first of its chunk
}

// section is what one chunk has of a candidate.
type section struct {
	chunk   int
	v       rawjson.Value // the candidate
	content rawjson.Value
	list    rawjson.Value // of parts
	parts   []string
	finish  rawjson.Value
}

// main is the first candidate, nil if there is none.
func (a *answer) main() *speaker {
	if len(a.speakers) == 0 {
		return nil
	}
	return a.speakers[0]
}

func (a *answer) speaker(index int64) *speaker {
	at, ok := slices.BinarySearchFunc(a.speakers, index, func(s *speaker, i int64) int { return cmp.Compare(s.index, i) })
	if !ok {
		a.speakers = slices.Insert(a.speakers, at, &speaker{index: index, content: &content{}})
	}
	return a.speakers[at]
}

// Bounds, far above what a provider sends: candidates that are told apart, of
// which the API has 8, and chunks of a stream.
const (
	maxCandidates = 1000
	maxChunks     = 1 << 18
)

// read takes one chunk. hold says that it must not be shown yet.
func (a *answer) read(event codec.Event, doc *rawjson.Doc, show func(middleware.Part) error) (hold bool, err error) {
	root := doc.Root()
	at := len(a.chunks)
	if at == maxChunks {
		return true, codec.Shapef("more than %d chunks", maxChunks)
	}
	a.chunks = append(a.chunks, chunk{event, doc})
	if a.was.Model == "" {
		a.was.Model = get(root, "modelVersion").Str()
	}
	usage := get(root, "usageMetadata")
	if hasFigures(usage) {
		a.usage, a.usageAt, a.was.Usage = usage, at, usageOf(usage)
	}
	if reason := codec.Text(get(get(root, "promptFeedback"), "blockReason")); reason != "" && reason != "0" && reason != "BLOCK_REASON_UNSPECIFIED" {
		a.blocked, hold = true, true
	}
	candidates, _, err := getList(root, "candidates")
	if err != nil {
		return true, err
	}
	for i, v := range candidates {
		index := int64(i)
		if n, err := strconv.ParseInt(codec.Text(get(v, "index")), 10, 64); err == nil && n >= 0 {
			index = n
		}
		s := a.speaker(index)
		if n := len(s.sections); n > 0 && s.sections[n-1].chunk == at {
			return true, codec.Shapef("two candidates with one index") // many clients read the first one only
		}
		if len(a.speakers) > maxCandidates {
			return true, codec.Shapef("more than %d candidates", maxCandidates)
		}
		held, err := s.read(v, at, index == 0, show)
		if err != nil {
			return true, err
		}
		s.behind = s.behind || held && i > 0
		hold = hold || held
	}
	return hold, nil
}

func (s *speaker) read(v rawjson.Value, chunk int, first bool, show func(middleware.Part) error) (hold bool, err error) {
	sec := section{chunk: chunk, v: v, finish: get(v, "finishReason")}
	if sec.content, err = getKind(v, "content", rawjson.Object); err != nil {
		return true, err
	}
	list, holder, err := getList(sec.content, "parts")
	if err != nil {
		return true, err
	}
	sec.list = holder
	for _, part := range list {
		p, err := newPiece(part, s.content, len(s.places), true)
		if err != nil {
			return true, err
		}
		sec.parts = append(sec.parts, part.Raw())
		s.places = append(s.places, len(s.sections))
		if hold = hold || p.call != nil; p.call != nil || s.joined != nil {
			if err := s.call(p); err != nil {
				return true, err
			}
			continue
		}
		s.content.pieces = append(s.content.pieces, p)
		if first {
			if err := show(p.part); err != nil {
				return true, err
			}
		}
	}
	s.sections = append(s.sections, sec)
	if word := finishWord(sec.finish, get(v, "finishMessage").Str()); word != "" {
		s.finish, hold = word, true
	}
	return hold, nil
}

// message finishes the content that the candidate wrote, as it would stand in
// a request, and returns it as a message.
func (s *speaker) message(calls int, builtin func(string) bool) middleware.Message {
	c := s.content
	c.text = modelContent(c.pieces)
	if len(s.sections) == 1 && s.sections[0].content.Exists() && len(s.places) == len(c.pieces) {
		only := s.sections[0].content
		if get(only, "role").Str() == "model" {
			c.v, c.text = only, only.Raw()
		} else if text, err := edited(only, codec.Member{Key: "role", Raw: `"model"`}); err == nil {
			c.text = text
		}
	}
	return c.add(message(c, calls, builtin), c.text, nil)
}

func modelContent(pieces []*piece) string {
	parts := make([]string, len(pieces))
	for i, p := range pieces {
		parts[i] = p.v.Raw()
	}
	return codec.Object(codec.Member{Key: "role", Raw: `"model"`}, codec.Member{Key: "parts", Raw: codec.Array(parts)})
}

// finishMessage returns what the server says about the end.
func (s *speaker) finishMessage() string {
	for _, sec := range slices.Backward(s.sections) {
		if m := get(sec.v, "finishMessage").Str(); m != "" {
			return m
		}
	}
	return ""
}
