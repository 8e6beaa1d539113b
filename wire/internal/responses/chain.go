package responses

import (
	"bytes"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

const previous = "previous_response_id"

// Renamed is part of wire.Stream.
func (s *stream) Renamed(sent int, resp *middleware.Response) (given, kept string) {
	if s.req != nil && s.req.Native != nil && s.req.Native.Dialect == dialect {
		if asked, err := codec.ParseObject(s.req.Native.Raw); err == nil && asked.Get("store").Raw() == "false" {
			return "", ""
		}
	}
	a, err := answerOf(resp)
	if err != nil || a == s.answer || a.msg.unstored || sent == 0 {
		return "", ""
	}
	_, head := opening(s.buf.Text()[:sent])
	given, kept = head.Get("id").Str(), a.env.Get("id").Str()
	if given == "" || kept == "" || given == kept {
		return "", ""
	}
	return given, kept
}

// RenamePrevious is part of wire.Codec.
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
	edits, err := codec.SetAll(root, codec.Member{Key: previous, Raw: rawjson.Quote(to)})
	if err != nil {
		return body
	}
	out, err := codec.Apply(string(body), edits)
	if err != nil {
		return body
	}
	return []byte(out)
}
