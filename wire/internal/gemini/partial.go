package gemini

import (
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
	head *piece
	args node
	sign string // the first thoughtSignature, which any of the parts may bring
}

// node is an argument in the making.
type node struct {
	kind  rawjson.Kind // Object, Array, String, or any other for raw
	raw   string
	text  *strings.Builder
	more  bool             // the string goes on
	keys  []string         // of an object, in the order in which they came
	named map[string]*node // by their keys
	list  []*node          // of an array
}

const signKey = "thoughtSignature"

// maxPath bounds how deep arguments are nested that come in pieces.
const maxPath = 64

// call adds a part with a call, as text: whole, or a piece of one.
func (c *candidate) call(text string) error {
	v, err := codec.ParseObject(text)
	if err != nil {
		return err
	}
	p, err := readPart(v, true)
	if err != nil {
		return err
	}
	if p.call == nil {
		return codec.Shapef("a part inside a call that goes on")
	}
	fc := on.Get(v, "functionCall")
	more, err := on.Kind(fc, "willContinue", rawjson.Bool)
	if err != nil {
		return err
	}
	args, err := on.List(fc, "partialArgs", rawjson.Object)
	if err != nil {
		return err
	}
	goesOn := more.Raw() == "true"
	if c.joined == nil {
		if !goesOn && len(args) == 0 {
			c.parts = append(c.parts, text)
			return nil
		}
		c.joined = &partial{head: p, args: node{kind: rawjson.Object}}
	} else if id := c.joined.head.call.ID; p.call.Name != "" || p.call.ID != "" && p.call.ID != id {
		return codec.Shapef("a call inside a call that goes on")
	}
	if whole := on.Get(fc, "args"); whole.Exists() && !whole.Empty() {
		return codec.Shapef("arguments beside pieces of them")
	}
	j := c.joined
	if j.sign == "" {
		j.sign = on.Get(v, signKey).Raw()
	}
	for _, arg := range args {
		if err := j.args.take(arg); err != nil {
			return err
		}
	}
	if goesOn {
		return nil
	}
	c.joined = nil
	whole, err := j.join()
	c.parts = append(c.parts, whole)
	return err
}

// join returns the call as one part: with args in the place of the pieces, and the
// signature that came with any of them.
func (j *partial) join() (string, error) {
	members := []lens.Member{lens.Raw("functionCall/args", j.args.json()), lens.None("functionCall/partialArgs"), lens.None("functionCall/willContinue")}
	if !on.Get(j.head.v, signKey).Exists() && j.sign != "" {
		members = append(members, lens.Raw(signKey, j.sign))
	}
	return on.Set(j.head.v, members...)
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

// step reads one step of a path: .name, ['name'] or [0], index -1 for a name. It is
// false for anything else that JSONPath has, such as * and filters: those name several
// places.
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

// child returns what a step leads to; the next element of a list is made. It is
// false for a step into a value of another kind, and for one past the next element: a
// list with gaps is read in different ways.
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
	switch n.kind {
	case rawjson.Object:
		members := make([]lens.Member, len(n.keys))
		for i, key := range n.keys {
			members[i] = lens.Raw(key, n.named[key].json())
		}
		return codec.Object(members...)
	case rawjson.Array:
		items := make([]string, len(n.list))
		for i, e := range n.list {
			items[i] = e.json()
		}
		return codec.Array(items)
	case rawjson.String:
		return rawjson.Quote(n.text.String())
	}
	return n.raw
}
