package gateway

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/toolmend/toolmend/internal/proxy"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/transport"
)

// maxModelBody is the largest body in which the model is searched. max_body applies later.
const maxModelBody = 64 << 20

// errModel is the error of a request whose upstream or settings depend on a model that cannot
// be read.
var errModel = errors.New("toolmend: the configuration selects the upstream or the settings by the model, and the model that this request names cannot be read: " +
	"send one JSON object with one member \"model\", not larger than 64 MiB, without compression or in one that the gateway knows")

// modelOf returns the model that a model call names: in its body, or for Gemini in its path. It
// is "" for every other request, and for a body without a model. Otherwise the request could
// reach an upstream that its model does not belong to, with the key of that upstream. The
// returned request has its body again.
func (s *state) modelOf(w http.ResponseWriter, r *http.Request) (string, *http.Request, error) {
	if r.Method != http.MethodPost || formatOf(r) == nil {
		return "", r, nil
	}
	if model, _, ok := strings.Cut(path.Base(r.URL.Path), ":"); ok {
		return model, r, nil
	}
	body, err := io.ReadAll(io.LimitReader(s.memory.Reader(r.Context(), proxy.Steady(w, r.Body)), maxModelBody+1))
	if errors.Is(err, transport.ErrMemory) {
		return "", r, err
	}
	if err != nil {
		return "", r, errUnreadBody
	}
	out := r.WithContext(r.Context())
	out.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	model, err := s.modelIn(body, strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))), maxModelBody)
	return model, out, err
}

// modelIn returns the model that a body names. The error is errModel.
func (s *state) modelIn(body []byte, encoding string, most int64) (string, error) {
	plain := io.Reader(bytes.NewReader(body))
	if encoding != "" && encoding != "identity" {
		decode := s.decoders[encoding]
		if decode == nil {
			return "", errModel
		}
		var err error
		if plain, err = decode(plain); err != nil {
			return "", errModel
		}
	}
	text, err := topLevel(plain, most)
	if err != nil {
		return "", errModel
	}
	doc, err := rawjson.Parse(string(text), rawjson.Limits{Bytes: maxTopLevel, Values: maxMembers, Depth: -1, Number: -1, Exponent: -1, AnyBytes: true})
	if err != nil || doc.Root().Kind() != rawjson.Object {
		return "", errModel
	}
	model, named := "", false
	for m := range doc.Root().Each() {
		if strings.EqualFold(m.Key(), "model") { // some servers ignore the case of keys
			if named {
				return "", errModel
			}
			model, named = m.Str(), true
		}
	}
	return model, nil
}

// Limits on what is read to find the model.
const (
	maxTopLevel = 1 << 20 // bytes of the members of the body, without nested values and long strings
	maxMembers  = 1 << 12
	maxString   = 1 << 12 // bytes of one string
)

// topLevel returns the JSON text of r with 0 in place of nested objects and arrays, and "" in place
// of long strings. The memory is bounded, however large the text is. It fails for a text of more than
// most bytes.
func topLevel(r io.Reader, most int64) ([]byte, error) {
	var out []byte
	depth, start, length := 0, 0, 0 // start and length of the string
	quoted, escaped := false, false
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if most -= int64(n); most < 0 {
			return nil, errModel
		}
		for _, c := range buf[:n] {
			keep := depth <= 1
			switch {
			case quoted && (escaped || c != '"'):
				escaped = c == '\\' && !escaped
				if length++; length == maxString && keep {
					out = out[:start]
				}
				keep = keep && length < maxString
			case quoted:
				quoted = false
			case c == '"':
				quoted, start, length = true, len(out)+1, 0
			case c == '{', c == '[':
				if depth++; depth == 2 {
					c = '0'
				}
			case c == '}', c == ']':
				depth--
			}
			if keep {
				out = append(out, c)
			}
		}
		switch {
		case len(out) > maxTopLevel:
			return nil, errModel
		case err == io.EOF:
			return out, nil
		case err != nil:
			return nil, err
		}
	}
}
