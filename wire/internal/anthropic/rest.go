package anthropic

import (
	"strings"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Rest is part of codec.Stream. A later answer follows as further blocks of the
// message that was begun.
func (s *stream) Rest(sent int, resp *middleware.Response) ([]byte, error) {
	raw := s.a.native.Raw
	if !s.closed || sent < 0 || sent > s.Safe() {
		return nil, codec.Unencodablef("a stream that is open, or was shown too far")
	}
	if n := resp.Native; n != nil && n.Ref == nil && n.Dialect == dialect && n.Raw == raw { // from storage
		again := *resp
		again.Native = &s.a.native
		resp = &again
	}
	a, err := codec.Handle(resp.Native, dialect, readAnswer)
	switch {
	case err != nil:
		return nil, codec.Unencodablef("a Native that holds no answer")
	case a == nil:
		return nil, codec.Unencodablef("an answer of another format")
	case a != s.a && sent > 0:
		rest, err := s.splice(a, resp)
		if began, _, _ := s.shown(); began {
			rest = strings.TrimLeft(s.a.manner(rest), "\r\n") // white space in front of a later answer would hide its first field
			if s.a.named && a.streamed() && !a.named {
				return nil, codec.Unencodablef("events without names behind those that have some")
			}
		}
		return []byte(raw[sent:s.Safe()] + rest), err
	}
	body, err := a.write(resp)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(body, raw[:sent]) {
		return nil, codec.Unencodablef("what was shown cannot be taken back")
	}
	return []byte(body[sent:]), nil
}

// splice returns what follows the safe part of s so that resp, which a holds,
// goes on where it ends.
func (s *stream) splice(a *answer, resp *middleware.Response) (string, error) {
	items, err := a.items(resp)
	if err != nil {
		return "", err
	}
	began, first, open := s.shown()
	switch {
	case !began && a.streamed():
		return a.write(resp)
	case !began:
		return a.asStream(resp, items)
	}
	var out strings.Builder
	for _, k := range open {
		b := s.open[k]
		if b.kind != "text" { // it would be there without its end: reasoning unsigned, a call cut off
			return "", codec.Unencodablef("a block that was shown in part, and is no text")
		}
		out.WriteString(blockEvent("content_block_stop", b.index))
	}
	so := figures{}.over(s.a.data(s.a.start).Get("message").Get("usage"))
	if !a.streamed() {
		rest, err := a.asEvents(resp, items, first, so)
		return out.String() + rest, err
	}
	for i, e := range a.events {
		if e.kind == "message_delta" {
			so = so.over(a.data(i).Get("usage"))
		}
	}
	edits, err := a.frame(resp, so)
	if err != nil {
		return "", err
	}
	rest, err := a.compose(items, edits, first, false)
	return out.String() + rest, err
}

// shown returns what the safe part of s has: whether the message has begun,
// the next index, and the blocks that have not ended.
func (s *stream) shown() (began bool, first int, open []int) {
	unended := make([]bool, len(s.open))
	for _, e := range s.a.events {
		if e.End > s.Safe() {
			break
		}
		switch {
		case e.kind == "message_start":
			began = true
		case e.block < 0:
		case e.kind == "content_block_start":
			unended[e.block] = true
			first = max(first, e.index+1)
		case e.kind == "content_block_stop":
			unended[e.block] = false
		}
	}
	for k, is := range unended {
		if is {
			open = append(open, k)
		}
	}
	return began, first, open
}
