package gemini

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// partial is a call whose arguments come in several parts, each with values and
// the paths that they belong to:
//
//	{"functionCall": {"name": "wind", "willContinue": true}}
//	{"functionCall": {"partialArgs": [{"jsonPath": "$.city", "stringValue": "Ber", "willContinue": true}], "willContinue": true}}
//	{"functionCall": {"partialArgs": [{"jsonPath": "$.city", "stringValue": "gen"}]}}
//
// A middleware sees one call with whole arguments, and so does the client. If the parts
// leave a doubt about the whole, the error wraps ErrShape.
// Source: FunctionCall.partial_args and will_continue of Vertex AI v1.
type partial struct {
	id   string // of the call
	head string // the first part, as it is written
	sign string // the first thoughtSignature, which any of the parts may bring
	args node
}

// node is an argument in the making.
type node struct {
	kind rawjson.Kind // Object, Array, String, or any other for raw; Invalid for none yet
	raw  string
	text *strings.Builder // of a string
	more bool             // the string goes on
	keys []string         // of an object or, as numbers, of an array, in the order in which they came
	kids map[string]*node // by their keys
}

const signKey = "thoughtSignature"

// maxPath bounds how deep arguments are nested that come in pieces.
const maxPath = 64

// call adds a part with a call: whole, or a piece of one.
func (c *candidate) call(p *piece) error {
	fc := on.Get(p.v, "functionCall")
	more, err := on.Kind(fc, "willContinue", rawjson.Bool)
	if err != nil {
		return err
	}
	pieces, err := on.List(fc, "partialArgs", rawjson.Object)
	goesOn, whole := more.Raw() == "true", on.Get(fc, "args")
	switch {
	case err != nil:
		return err
	case c.joined == nil && !goesOn && len(pieces) == 0:
		c.parts = append(c.parts, callPart(p.v))
		return nil
	case c.joined == nil:
		c.joined = &partial{id: p.call.ID, head: callPart(p.v), args: node{kind: rawjson.Object}}
	case p.call.Name != "" || p.call.ID != "" && p.call.ID != c.joined.id:
		return codec.Shapef("a call inside a call that goes on")
	}
	if whole.Exists() && !whole.Empty() {
		return codec.Shapef("arguments beside pieces of them")
	}
	j := c.joined
	j.sign = cmp.Or(j.sign, on.Get(p.v, signKey).Raw())
	for _, piece := range pieces {
		if err := j.args.take(piece); err != nil {
			return err
		}
	}
	if goesOn {
		return nil
	}
	c.joined = nil
	text, err := j.join()
	c.parts = append(c.parts, text)
	return err
}

// join returns the call as one part: with args in the place of the pieces, and the
// signature that came with any of them.
func (j *partial) join() (string, error) {
	head, err := codec.ParseObject(j.head)
	if err != nil {
		return "", err
	}
	return on.Set(head, lens.Raw("functionCall/args", j.args.json()), lens.None("functionCall/partialArgs"), lens.None("functionCall/willContinue"), lens.Raw(signKey, j.sign))
}

// take puts one value in its place.
func (n *node) take(arg rawjson.Value) error {
	path, err := on.Text(arg, "jsonPath")
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
		key, kind, rest, ok := nextKey(steps)
		if ok {
			n, ok = n.child(key, kind)
		}
		if !ok {
			return codec.Shapef("a path that leads nowhere")
		}
		steps = rest
	}
	return n.set(arg)
}

// nextKey reads one step of a path: .name or ['name'] into an object, or [0] into an array.
// It is false for anything else that JSONPath has, such as * and filters: those name
// several places.
// Source: RFC 9535, of which this is the part that names one place.
func nextKey(path string) (key string, kind rawjson.Kind, rest string, ok bool) {
	if path[0] == '.' {
		end := strings.IndexAny(path[1:], ".[")
		if end < 0 {
			end = len(path) - 1
		}
		return path[1 : end+1], rawjson.Object, path[end+1:], end > 0
	}
	if path[0] != '[' || len(path) < 3 {
		return "", 0, "", false
	}
	if q := path[1]; q == '\'' || q == '"' {
		key, rest, ok = strings.Cut(path[2:], string(q)+"]")
		return key, rawjson.Object, rest, ok && !strings.ContainsAny(key, `\`+string(q))
	}
	key, rest, ok = strings.Cut(path[1:], "]")
	_, err := strconv.ParseUint(key, 10, 31)
	return key, rawjson.Array, rest, ok && err == nil
}

// child returns what a step leads to; the next element of a list is made. It is
// false for a step into a value of another kind, and for one past the next element: a
// list with gaps is read in different ways.
func (n *node) child(key string, kind rawjson.Kind) (*node, bool) {
	if n.kind == rawjson.Invalid {
		n.kind = kind
	}
	kid := n.kids[key]
	switch {
	case n.kind != kind, kid == nil && kind == rawjson.Array && key != strconv.Itoa(len(n.keys)):
		return nil, false
	case kid != nil:
		return kid, true
	case n.kids == nil:
		n.kids = map[string]*node{}
	}
	n.kids[key], n.keys = &node{}, append(n.keys, key)
	return n.kids[key], true
}

// set gives a place its value; a string may go on where it said so. A second value
// for a place is an error: one client takes the first, another one the last.
func (n *node) set(arg rawjson.Value) error {
	more := on.Get(arg, "willContinue").Raw() == "true"
	if v := on.Get(arg, "stringValue"); v.Kind() == rawjson.String {
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
	switch number, flag := on.Get(arg, "numberValue"), on.Get(arg, "boolValue"); {
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

// hasKey reports whether a member is there, even as null, which on.Get takes for
// absent.
func hasKey(object rawjson.Value, camel string) bool {
	for m := range object.Each() {
		if isName(m.Key(), camel) {
			return true
		}
	}
	return false
}

// json returns n as JSON. It goes no deeper than maxPath. Numbers are written as they
// came, so that none is rounded.
func (n *node) json() string {
	members, items := make([]lens.Member, len(n.keys)), make([]string, len(n.keys))
	for i, key := range n.keys {
		items[i] = n.kids[key].json()
		members[i] = lens.Raw(key, items[i])
	}
	switch n.kind {
	case rawjson.Object:
		return codec.Object(members...)
	case rawjson.Array:
		return codec.Array(items)
	case rawjson.String:
		return rawjson.Quote(n.text.String())
	}
	return n.raw
}
