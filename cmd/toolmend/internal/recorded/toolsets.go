package recorded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Toolsets are the tools that the records of a log do not have in themselves. They are
// immutable and safe for concurrent use.
type Toolsets struct {
	file string
	// tools are the tools of every record, and inputs the tools of a batch's requests, by id; in
	// requests as thin returns them.
	tools  []middleware.Tool
	inputs map[string][]byte
	schema []byte // of every call, from a file that is a JSON Schema; nil: none
	some   bool   // tools are some of those that the model had
	// by finds a set by source and ref, and by ref alone under an empty source.
	by map[setKey][]middleware.Tool
}

// setKey is what names a set.
type setKey struct{ source, ref string }

// ReadToolsets reads lines of {"ref", "source", "tools": [{"name", "description",
// "parameters"}]}, the input of a batch (OpenAI: {"custom_id", "body"}, Anthropic:
// {"custom_id", "params"} alone or in a list "requests", Gemini: {"key", "request"}), and
// tools for every record: a tool, a list of tools, or the body of a request. The error names
// the first wrong line. ReadToolsets does not skip it: turns that are validated with half of
// the tools would look worse than they are.
func ReadToolsets(file string, r io.Reader) (*Toolsets, error) {
	sets := &Toolsets{file: file, by: make(map[setKey][]middleware.Tool), inputs: map[string][]byte{}}
	for l, err := range NewReader(file, r).lines() {
		if err != nil {
			return nil, err
		}
		v, err := parse(l.Text)
		if err == nil {
			err = sets.add(v)
		}
		if err != nil {
			return nil, &Error{File: file, Line: l.N, Err: err}
		}
	}
	return sets, nil
}

// add adds what a line of a file of tools has.
func (s *Toolsets) add(v rawjson.Value) error {
	holder := firstAt(v, []string{"body", "params", "request", "result", ""})
	if ref := text(v.Get("ref")); ref != "" {
		set := tools(v.Get("tools"))
		// The same ref may mean different tools in different sources.
		s.by[setKey{text(v.Get("source")), ref}] = set
		s.by[setKey{"", ref}] = set
		return nil
	}
	if id := firstText(v, "custom_id", "key"); id != "" {
		s.inputs[id] = thin(holder)
		return nil
	}
	if list := v.Get("requests"); list.Kind() == rawjson.Array {
		for e := range list.Each() {
			if err := s.add(e); err != nil {
				return err
			}
		}
		return nil
	}
	found := toolsIn.Get(thin(holder))
	if found == nil {
		found = toolsOf("[" + v.Raw() + "]")
	}
	if found == nil && v.Get("type").Str() == "object" && (v.Get("properties").Exists() || v.Get("required").Exists()) && !v.Get("name").Exists() {
		s.schema = []byte(v.Raw())
		return nil
	}
	if found == nil && !(v.Get("tool_calls").Exists() && v.Get("tools").Empty()) { // a recording of a request without tools
		return errors.New("neither tools nor a toolset with a ref, nor a request with tools, nor a schema")
	}
	s.tools = withTools(s.tools, found...)
	return nil
}

// Tools returns the tools for every record, in the order of the file. Do not change them.
func (s *Toolsets) Tools() []middleware.Tool { return s.tools }

// known returns the tools that the model had: from its request, from its record, or the tools
// that s has for the id, or for every record. It is nil if they are not known.
func (s *Toolsets) known(req, record rawjson.Value, id string) []middleware.Tool {
	for _, v := range []rawjson.Value{req, record} {
		if found := toolsIn.Get(thin(v)); found != nil {
			return found
		}
	}
	if s == nil || s.some {
		return nil
	}
	if input, ok := s.inputs[id]; ok && id != "" {
		return toolsIn.Get(input)
	}
	return s.tools
}

// SomeTools returns tools for every record that are some of those that the model had, as the
// tools of one MCP server are. Calls of others are not validated. Agents put the name of the
// server and "__" in front of a tool's name.
func SomeTools(tools []middleware.Tool) *Toolsets { return &Toolsets{tools: tools, some: true} }

// complete gives a turn without tools the tools of every record. Without any, its
// tools are the names that it calls.
func (s *Toolsets) complete(t *Turn) {
	switch {
	case s == nil:
		s = &Toolsets{}
	case s.tools != nil && !s.some:
		t.Tools, t.NoTools = s.tools, false
		return
	}
	var called []middleware.Tool
	for _, c := range t.Calls {
		tool := middleware.Tool{Name: c.Name, Parameters: s.schema}
		for _, known := range s.tools {
			if known.Name == c.Name || strings.HasSuffix(c.Name, "__"+known.Name) {
				tool.Parameters = known.Parameters
			}
		}
		called = withTools(called, tool)
		t.NoTools = t.NoTools && tool.Parameters == nil
	}
	t.Tools, t.Some = withTools(called, t.Tools...), s.some
}

// OpenToolsets reads the toolsets in a file.
func OpenToolsets(file string) (*Toolsets, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadToolsets(file, f)
}

// ToolsetsFor reads the toolsets in the file beside a log. It returns nil if there is none: a
// turn that refers to it is an error then. Standard input, "-", has no file beside it.
func ToolsetsFor(log string) (*Toolsets, error) {
	if file := ToolsetsBeside(log); file != "" && log != "-" {
		return OpenToolsets(file)
	}
	return nil, nil
}

// ToolsetsBeside returns the toolsets file in the directory of a file of
// recorded turns, "" if there is none.
func ToolsetsBeside(file string) string {
	for _, name := range []string{"toolsets.jsonl.gz", "toolsets.jsonl"} {
		path := filepath.Join(filepath.Dir(file), name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// find returns the set that a turn of source calls ref.
func (s *Toolsets) find(source, ref string) ([]middleware.Tool, error) {
	if s == nil {
		return nil, fmt.Errorf("tools_ref %q: no file of toolsets was given or found", ref)
	}
	for _, key := range []setKey{{source, ref}, {"", ref}} {
		if set, ok := s.by[key]; ok {
			return set, nil
		}
	}
	return nil, fmt.Errorf("tools_ref %q is not in %s", ref, s.file)
}
