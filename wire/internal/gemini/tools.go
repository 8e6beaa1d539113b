package gemini

import (
	"bytes"
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// toolEdits writes the tools. A new function goes to the list of the function
// before it: a server may take no more than one.
func (h *request) toolEdits(now *middleware.Request, root rawjson.Value) ([]rawjson.Edit, []codec.Member, error) {
	if slices.EqualFunc(now.Tools, h.was.Tools, func(t, was middleware.Tool) bool {
		return codec.SameNative(t.Native, was.Native) && codec.SameTool(t, was)
	}) {
		return nil, nil, nil
	}
	list, holder, err := getList(root, "tools")
	if err != nil {
		return nil, nil, err
	}
	s := newSorter(h, list)
	for _, t := range now.Tools {
		if err := s.take(t); err != nil {
			return nil, nil, err
		}
	}
	items, err := s.texts()
	switch {
	case err != nil:
		return nil, nil, err
	case len(items) == 0:
		return nil, []codec.Member{{Key: "tools"}}, nil
	case !holder.Exists():
		return nil, []codec.Member{{Key: "tools", Raw: codec.Array(items)}}, nil
	}
	if holder, err = only(root, "tools"); err != nil {
		return nil, nil, err
	}
	return spliced(holder, items), nil, nil
}

// freshTools returns the tools of a fresh request, "" for none.
func freshTools(tools []middleware.Tool) (string, error) {
	s := newSorter(nil, nil)
	for _, t := range tools {
		if err := s.take(t); err != nil {
			return "", err
		}
	}
	items, err := s.texts()
	if err != nil || len(items) == 0 {
		return "", err
	}
	return codec.Array(items), nil
}

// sorter puts tools into the elements that they came in.
type sorter struct {
	of       *request // whose tools are edited; nil: a fresh one
	elements []element
	last     int      // element of the function before; anew: none yet
	extra    []string // elements for tools from elsewhere
	lead     []string // functions without an element
}

type element struct {
	v         rawjson.Value
	functions []string
	hosted    map[string]bool // keys that stay
}

func newSorter(of *request, list []rawjson.Value) *sorter {
	s := &sorter{of: of, last: anew}
	for i, v := range list {
		s.elements = append(s.elements, element{v: v, hosted: map[string]bool{}})
		if s.last == anew && get(v, listKey).Exists() {
			s.last = i
		}
	}
	return s
}

// take adds one tool.
func (s *sorter) take(t middleware.Tool) error {
	h, err := codec.Handle(t.Native, dialect, readTool)
	if err != nil {
		return err
	}
	own := h != nil && h.of != nil && h.of == s.of
	if t.Kind == middleware.KindFunction {
		return s.function(t, h, own)
	}
	switch {
	case h == nil || !codec.SameTool(t, h.was):
		return codec.Unencodablef("a tool of kind %q", t.Kind)
	case own:
		s.elements[h.at].hosted[h.v.Key()] = true
	default:
		s.extra = append(s.extra, h.native.Raw)
	}
	return nil
}

func (s *sorter) function(t middleware.Tool, h *tool, own bool) error {
	text, err := functionText(t, h)
	if err != nil {
		return err
	}
	if own {
		s.last = max(s.last, h.at)
	}
	if s.last == anew {
		s.lead = append(s.lead, text)
		return nil
	}
	s.elements[s.last].functions = append(s.elements[s.last].functions, text)
	return nil
}

// texts returns the elements.
func (s *sorter) texts() ([]string, error) {
	var out []string
	for _, e := range s.elements {
		text, err := e.text()
		if err != nil {
			return nil, err
		}
		if text != "" {
			out = append(out, text)
		}
	}
	out = append(out, s.extra...)
	if len(s.lead) > 0 {
		out = append(out, codec.Object(codec.Member{Key: listKey, Raw: codec.Array(s.lead)}))
	}
	return out, nil
}

// text returns the element, "" if nothing is left in it.
func (e element) text() (string, error) {
	edits := e.v.Cut(func(m rawjson.Value) bool {
		if isName(m.Key(), listKey) {
			return len(e.functions) == 0
		}
		return m.Kind() != rawjson.Null && !e.hosted[m.Key()]
	})
	if len(e.functions) == 0 && len(e.hosted) == 0 {
		return "", nil
	}
	if len(e.functions) > 0 {
		list, err := only(e.v, listKey)
		if err != nil {
			return "", err
		}
		edits = append(edits, spliced(list, e.functions)...)
	}
	return codec.Within(e.v, edits)
}

// functionText writes a declaration. JSON Schema goes where the server takes
// it as it is.
func functionText(t middleware.Tool, h *tool) (string, error) {
	if h == nil || h.was.Kind != middleware.KindFunction {
		return codec.Object(
			codec.Member{Key: "name", Raw: rawjson.Quote(t.Name)},
			codec.Member{Key: "description", Raw: quoteOrNone(t.Description)},
			codec.Member{Key: schemaKey, Raw: string(t.Parameters)}), schemaError(t)
	}
	if t.Strict {
		return "", codec.Unencodablef("a tool cannot be strict")
	}
	var set []codec.Member
	if t.Name != h.was.Name {
		set = append(set, codec.Member{Key: "name", Raw: rawjson.Quote(t.Name)})
	}
	if t.Description != h.was.Description {
		set = append(set, codec.Member{Key: "description", Raw: quoteOrNone(t.Description)})
	}
	if !bytes.Equal(t.Parameters, h.was.Parameters) {
		if err := schemaError(t); err != nil {
			return "", err
		}
		set = append(set, codec.Member{Key: schemaKey, Raw: string(t.Parameters)}, codec.Member{Key: ownKey})
	}
	if len(set) == 0 {
		return h.v.Raw(), nil
	}
	return edited(h.v, set...)
}

func schemaError(t middleware.Tool) error {
	if len(t.Parameters) == 0 {
		return nil
	}
	if _, err := codec.Parse(string(t.Parameters)); err != nil {
		return codec.Unencodablef("a schema that is no JSON")
	}
	return nil
}
