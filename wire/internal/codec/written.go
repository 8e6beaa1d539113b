package codec

import "github.com/toolmend/toolmend/middleware"

// Answered is an answer as it was read. The answer of a format embeds it.
type Answered struct {
	Text      string              // as it came; set by the Splitter, as are the next two
	Form      Form                // of Text
	Unchanged bool                // no reader finds a call in Text: unchanged, it passes as it is
	Is        middleware.Response // without Native
}

// AsRead returns a.
func (a *Answered) AsRead() *Answered { return a }

// Written is an Answered with which a format writes a response that came from it.
type Written interface {
	// AsRead returns what every format has read.
	AsRead() *Answered
	// Whole returns resp as one object.
	Whole(resp *middleware.Response) (string, error)
	// Stream returns what follows the part of a stream that client has.
	Stream(resp *middleware.Response, client *Client) (string, error)
}

// Client is a client that has a part of a stream. Both streams are of the format's type.
type Client struct {
	Of  Stream // the stream that it has a part of
	Has Stream // its Snapshot is that part
	Own bool   // the answer is Of's, not a later one
}

// NewClient returns a client that has nothing.
func NewClient(f Format) *Client {
	s := f.NewStream(nil, nil)
	return &Client{s, s, true}
}

// remembered is what a Native keeps: is, which was read from raw. A copy of a
// Native may have another text.
type remembered struct {
	raw string
	is  any
}

// Remember returns a Native with that text, for which Recall returns is. It is used for the
// root of a request and of an answer. is must not be changed afterwards; the caller of the codec
// gets a clone. It only saves time: without it every result is the same.
func Remember(dialect, raw string, is any) *middleware.Native {
	return middleware.DecodedNative(dialect, raw, remembered{raw, is})
}

// Request returns a clone of what f reads of a body, which its Native remembers. If the messages
// are deferred, it is a shallow copy. The error wraps ErrShape.
func Request(f Format, in *Input) (*middleware.Request, error) {
	is, err := f.ReadRequest(in)
	if err != nil {
		return nil, err
	}
	var req *middleware.Request
	if raw := in.Raw; in.Deferred {
		calls := -1
		if in.Calls != nil {
			calls = in.calls
		}
		is.Defer(calls, func() []middleware.Message {
			all, _ := f.ReadRequest(&Input{Raw: raw})
			return all.Messages
		})
		req = new(*is)
	} else {
		req = is.Clone()
	}
	req.Native = Remember(f.Dialect(), in.Raw, is)
	return req, nil
}

// Recall returns what was remembered of n, if that is a T.
func Recall[T any](n *middleware.Native) (is T, ok bool) {
	if n == nil {
		return is, false
	}
	r, _ := n.Decoded().(remembered)
	if is, ok = r.is.(T); !ok || r.raw != n.Raw {
		var none T
		return none, false
	}
	return is, true
}

// Reread returns the answer that n holds, as it was remembered or as f reads it again. The error
// wraps ErrUnencodable; a response that was not decoded from this format is one.
func Reread[A Written](f Format, n *middleware.Native) (a A, err error) {
	if n == nil || n.Dialect != f.Dialect() || n.Raw == "" {
		return a, Unencodablef("a response that was not decoded from this format")
	}
	if is, ok := Recall[A](n); ok {
		return is, nil
	}
	resp, err := Decode(f.NewStream(nil, nil), []byte(n.Raw))
	if err != nil {
		return a, Unencodablef("what was stored: %v", err)
	}
	a, _ = Recall[A](resp.Native)
	return a, nil
}

// encode writes resp, which came from a, in the framing in which it came.
func encode(f Format, a Written, resp *middleware.Response) ([]byte, error) {
	was := a.AsRead()
	if was.Unchanged && SameResponse(&was.Is, resp) {
		return []byte(was.Text), nil
	}
	if was.Form == FormWhole {
		return cleaned(a.Whole(resp))
	}
	return cleaned(a.Stream(resp, NewClient(f)))
}

// cleaned returns what was written, or the error as one that wraps ErrUnencodable.
func cleaned(text string, err error) ([]byte, error) {
	if err != nil {
		return nil, Unencodable(err)
	}
	return []byte(Clean(text)), nil
}

// Rest returns the bytes that complete a stream of which the client has the first sent bytes.
// resp is the answer of r, perhaps with changes after the shown part, or a later answer.
func (r *Splitter) Rest(sent int, resp *middleware.Response) ([]byte, error) {
	a, err := Reread[Written](r.of, resp.Native)
	if err != nil {
		return nil, err
	}
	own, was := resp.Native.Raw == r.Text(), a.AsRead()
	switch out, _, _ := r.Output(); {
	case sent < 0 || sent > len(out):
		return nil, Unencodablef("the rest of a stream that has no such part")
	case sent == 0:
		return encode(r.of, a, resp)
	case own && was.Unchanged && SameResponse(&was.Is, resp):
		return []byte(was.Text[sent:]), nil
	}
	has, err := r.Replay(sent)
	if err != nil {
		return nil, Unencodable(err)
	}
	return cleaned(a.Stream(resp, &Client{r.format.(Stream), has, own}))
}

// Replay returns a stream whose Snapshot is what the client has after the first sent bytes: the
// stream itself, or one that reads them again.
func (r *Splitter) Replay(sent int) (Stream, error) {
	out, safe, _ := r.Output()
	if sent == safe && r.hasSnapshot {
		return r.format.(Stream), nil
	}
	fresh := r.of.NewStream(nil, nil)
	_, err := fresh.Write([]byte(out[:sent]))
	fresh.(UnitHandler).Snapshot()
	return fresh, err
}
