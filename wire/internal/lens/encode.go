package lens

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// EncodeRequest writes req: its own text if nothing in it has changed, an edit of that
// text if it was decoded from this format, else a new body. read reads a body again.
// edit returns the text of doc with what differs between was and req, and fresh a new
// body. The error wraps ErrUnencodable.
func (l Lens) EncodeRequest(req *middleware.Request, read func(body string) (*middleware.Request, error),
	edit func(doc *rawjson.Doc, was, req *middleware.Request) (string, error), fresh func(req *middleware.Request) (string, error)) ([]byte, error) {
	was, decoded, err := Again(l, req.Native, read)
	var body string
	switch {
	case err != nil:
	case !decoded:
		body, err = fresh(req)
	case codec.SameRequest(was, req):
		return []byte(req.Native.Raw), nil
	default:
		var doc *rawjson.Doc
		if doc, err = codec.ParseBody(req.Native.Raw); err == nil {
			body, err = edit(doc, was, req)
		}
	}
	if err != nil {
		return nil, codec.Unencodable(err)
	}
	return []byte(body), nil
}

// Answered is an answer as it was read.
type Answered struct {
	Text      string              // as it came
	Unchanged bool                // no reader finds a call in Text: unchanged, it passes as it is
	Streamed  bool                // Text is a stream
	Is        middleware.Response // without Native
}

// Written is an Answered with which a format writes a response that came from it.
type Written[G any] interface {
	// AsRead returns what every format has read.
	AsRead() *Answered
	// Whole returns resp as one object.
	Whole(resp *middleware.Response) (string, error)
	// Stream returns what follows given in a stream: of this answer if own, else of an
	// earlier one. The zero G is a client that has nothing.
	Stream(resp *middleware.Response, replay G, own bool) (string, error)
}

// AsRead returns a, for the answer of a format that embeds it.
func (a *Answered) AsRead() *Answered { return a }

// EncodeResponse writes resp, which was decoded from this format. read reads an answer
// again.
func EncodeResponse[A Written[G], G any](l Lens, resp *middleware.Response, read func(body string) (A, error)) ([]byte, error) {
	a, err := Answer(l, resp, read)
	if err != nil {
		return nil, err
	}
	return encode(a, resp)
}

func encode[A Written[G], G any](a A, resp *middleware.Response) ([]byte, error) {
	if was := a.AsRead(); was.Unchanged && codec.SameResponse(&was.Is, resp) {
		return []byte(was.Text), nil
	}
	var nothing G
	write := a.Whole
	if a.AsRead().Streamed {
		write = func(resp *middleware.Response) (string, error) { return a.Stream(resp, nothing, true) }
	}
	out, err := write(resp)
	if err != nil {
		return nil, codec.Unencodable(err)
	}
	return []byte(codec.Clean(out)), nil
}

// Rest writes what completes a stream of which the client has the first sent bytes. resp
// is the answer of s, perhaps with changes behind what was shown, or a later answer. given
// returns what the client has.
func Rest[A Written[G], G any](l Lens, s *codec.Splitter, sent int, resp *middleware.Response, read func(body string) (A, error), replay func(sent int) (G, error)) ([]byte, error) {
	a, err := Answer(l, resp, read)
	if err != nil {
		return nil, err
	}
	own := l.Raw(resp.Native) == s.Text()
	switch out, _, _ := s.Output(); {
	case sent < 0 || sent > len(out):
		return nil, codec.Unencodablef("the rest of a stream that has no such part")
	case sent == 0:
		return encode(a, resp)
	}
	if was := a.AsRead(); own && was.Unchanged && codec.SameResponse(&was.Is, resp) {
		return []byte(was.Text[sent:]), nil
	}
	g, err := replay(sent)
	if err != nil {
		return nil, codec.Unencodable(err)
	}
	out, err := a.Stream(resp, g, own)
	if err != nil {
		return nil, codec.Unencodable(err)
	}
	return []byte(codec.Clean(out)), nil
}
