package gemini

import (
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// partial is a call whose arguments come in several parts, each with values
// and the paths that they belong to. Whatever leaves a doubt about the whole
// is ErrShape.
// Source: FunctionCall.partial_args and will_continue of Vertex AI v1.
type partial struct {
	head *piece
	wire []item
	args node
	sign string // the first thoughtSignature, which any of the parts may bring
}

// node is an argument in the making.
type node struct {
	kind  rawjson.Kind // Object, Array, String, or any other for raw
	raw   string
	text  *strings.Builder
	more  bool // the string goes on
	keys  []string
	named map[string]*node
	list  []*node
}

const signKey = "thoughtSignature"

// maxPath bounds how deep arguments are nested that come in pieces.
const maxPath = 64

// call takes a part with a call: whole, or a piece of one.
func (s *speaker) call(p *piece) error {
	if p.call == nil {
		return codec.Shapef("a part inside a call that goes on")
	}
	fc := get(p.v, "functionCall")
	more, err := getKind(fc, "willContinue", rawjson.Bool)
	if err != nil {
		return err
	}
	args, _, err := getList(fc, "partialArgs")
	if err != nil {
		return err
	}
	goesOn := more.Raw() == "true"
	if s.joined == nil {
		if !goesOn && len(args) == 0 {
			s.content.pieces = append(s.content.pieces, p)
			return nil
		}
		s.joined = &partial{head: p, args: node{kind: rawjson.Object}}
	} else if p.call.Name != "" || p.id != "" && p.id != s.joined.head.id {
		return codec.Shapef("a call inside a call that goes on")
	}
	if !get(fc, "args").Empty() && get(fc, "args").Exists() {
		return codec.Shapef("arguments beside pieces of them")
	}
	j := s.joined
	j.wire = append(j.wire, item{p.v.Raw(), p.at})
	if j.sign == "" {
		j.sign = get(p.v, signKey).Raw()
	}
	for _, arg := range args {
		if err := j.args.take(arg); err != nil {
			return err
		}
	}
	if goesOn {
		return nil
	}
	s.joined = nil
	whole, err := j.join()
	s.content.pieces = append(s.content.pieces, whole)
	return err
}

// join returns the call as one part.
func (j *partial) join() (*piece, error) {
	var b strings.Builder
	j.args.write(&b)
	fc, err := only(j.head.v, "functionCall")
	if err != nil {
		return nil, codec.Shapef("a call that stands there twice")
	}
	edits, err := setAll(fc, codec.Member{Key: "args", Raw: b.String()}, codec.Member{Key: "partialArgs"}, codec.Member{Key: "willContinue"})
	if err != nil {
		return nil, codec.Shapef("a member of a call that stands there twice")
	}
	if j.sign != "" && !get(j.head.v, signKey).Exists() {
		signed, err := setAll(j.head.v, codec.Member{Key: signKey, Raw: j.sign})
		if err != nil {
			return nil, codec.Shapef("a signature that stands there twice")
		}
		edits = append(edits, signed...)
	}
	text, err := codec.Within(j.head.v, edits)
	if err != nil {
		return nil, err
	}
	v, err := codec.ParseObject(text)
	if err != nil {
		return nil, err
	}
	p := &piece{v: v, home: j.head.home, at: j.head.at, wire: j.wire}
	p.native = middleware.Native{Dialect: dialect, Raw: text, Ref: p}
	return p, p.readCall(get(v, "functionCall"))
}

// take puts one value in its place.
func (n *node) take(arg rawjson.Value) error {
	path, err := getText(arg, "jsonPath")
	if err != nil {
		return err
	}
	steps, ok := strings.CutPrefix(path, "$")
	if !ok || steps == "" {
		return codec.Shapef("a path that does not begin at the arguments")
	}
	for depth := 0; steps != ""; depth++ {
		if depth == maxPath {
			return codec.Shapef("a path of more than %d steps", maxPath)
		}
		key, index, rest, ok := step(steps)
		if ok {
			n, ok = n.child(key, index)
		}
		if !ok {
			return codec.Shapef("a path that leads nowhere")
		}
		steps = rest
	}
	return n.set(arg)
}

// step reads one step of a path: .name, ['name'] or [0], index -1 for a name.
// Source: RFC 9535, of which this is the part that names one place.
func step(path string) (key string, index int, rest string, ok bool) {
	if path[0] == '.' {
		end := strings.IndexAny(path[1:], ".[")
		if end < 0 {
			end = len(path) - 1
		}
		return path[1 : end+1], -1, path[end+1:], end > 0
	}
	if path[0] != '[' || len(path) < 3 {
		return "", 0, "", false
	}
	if q := path[1]; q == '\'' || q == '"' {
		end := strings.IndexByte(path[2:], q)
		if end < 0 || strings.Contains(path[2:2+end], `\`) || !strings.HasPrefix(path[3+end:], "]") {
			return "", 0, "", false
		}
		return path[2 : 2+end], -1, path[4+end:], true
	}
	digits, rest, ok := strings.Cut(path[1:], "]")
	index, err := strconv.Atoi(digits)
	return "", index, rest, ok && err == nil && index >= 0
}

// child returns what a step leads to; the next element of a list is made.
func (n *node) child(key string, index int) (*node, bool) {
	if index < 0 {
		if n.kind == rawjson.Invalid {
			n.kind = rawjson.Object
		}
		if n.named[key] == nil && n.kind == rawjson.Object {
			if n.named == nil {
				n.named = map[string]*node{}
			}
			n.named[key] = &node{}
			n.keys = append(n.keys, key)
		}
		return n.named[key], n.kind == rawjson.Object
	}
	if n.kind == rawjson.Invalid {
		n.kind = rawjson.Array
	}
	if n.kind != rawjson.Array || index > len(n.list) {
		return nil, false
	}
	if index == len(n.list) {
		n.list = append(n.list, &node{})
	}
	return n.list[index], true
}

// set gives a place its value; a string may go on where it said so.
func (n *node) set(arg rawjson.Value) error {
	more := get(arg, "willContinue").Raw() == "true"
	if v := get(arg, "stringValue"); v.Kind() == rawjson.String {
		if n.kind != rawjson.Invalid && !n.more {
			return codec.Shapef("a second value for an argument")
		}
		if n.text == nil {
			n.kind, n.text = rawjson.String, &strings.Builder{}
		}
		n.text.WriteString(v.Str())
		n.more = more
		return nil
	}
	if n.kind != rawjson.Invalid {
		return codec.Shapef("a second value for an argument")
	}
	switch number, flag := get(arg, "numberValue"), get(arg, "boolValue"); {
	case number.Kind() == rawjson.Number:
		n.kind, n.raw = rawjson.Number, number.Raw()
	case flag.Kind() == rawjson.Bool:
		n.kind, n.raw = rawjson.Bool, flag.Raw()
	case hasKey(arg, "nullValue"):
		n.kind, n.raw = rawjson.Null, "null"
	default:
		return codec.Shapef("an argument without a value")
	}
	return nil
}

func hasKey(object rawjson.Value, camel string) bool {
	for m := range object.Each() {
		if isName(m.Key(), camel) {
			return true
		}
	}
	return false
}

// write appends n as JSON. It goes no deeper than maxPath.
func (n *node) write(b *strings.Builder) {
	switch n.kind {
	case rawjson.Object:
		b.WriteByte('{')
		for i, key := range n.keys {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(rawjson.Quote(key) + ":")
			n.named[key].write(b)
		}
		b.WriteByte('}')
	case rawjson.Array:
		b.WriteByte('[')
		for i, e := range n.list {
			if i > 0 {
				b.WriteByte(',')
			}
			e.write(b)
		}
		b.WriteByte(']')
	case rawjson.String:
		b.WriteString(rawjson.Quote(n.text.String()))
	default:
		b.WriteString(n.raw)
	}
}
