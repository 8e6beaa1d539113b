package anthropic

import (
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// hosted are the beginnings of the types of tools that the provider runs.
// Others that it defines (bash, computer, text_editor, memory) are run by the
// client, and called as if it had declared them: so are the unknown ones,
// because a tool that is never called does no harm.
var hosted = []string{"web_search_", "web_fetch_", "code_execution_", "tool_search_tool_", "mcp_toolset", "advisor_"}

// readTool reads an element of tools: one that the client declares, or one that the
// provider defines, which has a type with a version in it:
//
//	{"name": …, "description": …, "input_schema": schema, "strict": true}
//	{"type": "bash_20250124", "name": "bash"}
//	{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
func readTool(v rawjson.Value) (t middleware.Tool, err error) {
	if v.Kind() != rawjson.Object {
		return t, codec.Shapef("%s where a tool should be", v.Kind())
	}
	in := on.Reader()
	t.Name, t.Description = in.Text(v, "name"), in.Text(v, "description")
	if schema := in.Kind(v, "input_schema", rawjson.Object); schema.Exists() {
		t.Parameters = []byte(schema.Raw())
	}
	t.Strict, t.Kind, t.Native = v.Get("strict").Raw() == "true", toolKind(v), on.Native(v.Raw())
	switch typ := v.Get("type").Str(); {
	case strings.HasPrefix(typ, "tool_search_tool_"):
		t.Loads = middleware.LoadsFound
	case typ == "mcp_toolset":
		t.Loads = middleware.LoadsToolset
	}
	return t, in.Err
}

// changedTools returns the tools that the model has at the end of the conversation: the
// request's tools, with the changes in the messages. The changes are in blocks of system
// messages, and in the block of the assistant that a compaction leaves:
//
//	{"type": "tool_addition", "tool": {"type": "tool_definition", "definition": tool}}
//	{"type": "tool_addition", "tool": {"type": "tool_reference", "name": …}}
//	{"type": "tool_removal", "tool": {"type": "tool_reference", "name": …}}
//	{"type": "compaction", …, "tool_changes": [change, …]}
//
// The last definition of a name counts. A definition in a compaction, which the provider
// wrote, counts only if there is no other. A reference adds a tool again as it was. Source:
// the tool runner of @anthropic-ai/sdk, as it is in Claude Code 2.1.330.
func changedTools(tools []middleware.Tool, messages rawjson.Value) []middleware.Tool {
	changes := toolChanges{tools: tools}
	for m := range messages.Each() {
		role := m.Get("role").Str()
		for v := range m.Get("content").Each() {
			switch {
			case role == "system":
				changes.add(v, true)
			case role == "assistant" && v.Get("type").Str() == "compaction":
				for c := range v.Get("tool_changes").Each() {
					changes.add(c, false)
				}
			}
		}
	}
	return changes.result()
}

// mayChangeTools reports whether an element of messages has a block that changedTools reads.
func mayChangeTools(m rawjson.Value) bool {
	for v := range m.Get("content").Each() {
		if typ := v.Get("type").Str(); typ == "tool_addition" || typ == "tool_removal" || typ == "compaction" {
			return true
		}
	}
	return false
}

// toolChanges collects the changes of the tools of a request.
type toolChanges struct {
	tools  []middleware.Tool // of the request
	order  []string          // the names of tools, then the changed names
	byName map[string]*toolState
}

// toolState is what the conversation makes of one name.
type toolState struct {
	tools   []middleware.Tool // more than one if the request has the name twice
	offered bool
}

// state returns the state of a name.
func (c *toolChanges) state(name string) *toolState {
	if c.byName == nil {
		c.byName = map[string]*toolState{}
		for _, t := range c.tools {
			s := c.state(t.Name)
			c.order, s.tools, s.offered = append(c.order, t.Name), append(s.tools, t), true
		}
	}
	s := c.byName[name]
	if s == nil {
		s = &toolState{}
		c.byName[name] = s
	}
	return s
}

// add adds the change v, if it is one. own is false for a change of a compaction.
func (c *toolChanges) add(v rawjson.Value, own bool) {
	kind, tool := v.Get("type").Str(), v.Get("tool")
	if kind != "tool_addition" && kind != "tool_removal" {
		return
	}
	name, defined := tool.Get("name").Str(), middleware.Tool{}
	if tool.Get("type").Str() == "tool_definition" {
		var err error
		if defined, err = readTool(tool.Get("definition")); err != nil {
			return
		}
		name = defined.Name
	}
	s := c.state(name)
	c.order, s.offered = append(c.order, name), kind == "tool_addition"
	if s.offered && defined.Native != nil && (own || len(s.tools) == 0) {
		s.tools = []middleware.Tool{defined}
	}
}

// result returns the tools after the changes: the request's in their order, then new ones.
func (c *toolChanges) result() []middleware.Tool {
	if c.byName == nil {
		return c.tools
	}
	var now []middleware.Tool
	for _, name := range c.order {
		if s := c.byName[name]; s.offered {
			now, s.offered = append(now, s.tools...), false
		}
	}
	return now
}

// toolTexts returns the elements of tools for now. Tools that the conversation changes can be
// kept, and others can be added after them.
func (h *request) toolTexts(now []middleware.Tool) ([]string, error) {
	if n := len(h.is.Tools); !codec.SameTools(h.tools, h.is.Tools) {
		if len(now) < n || !codec.SameTools(h.is.Tools, now[:n]) {
			return nil, codec.Unencodablef("a change of tools that the conversation changes")
		}
		now = slices.Concat(h.tools, now[n:])
	}
	texts, _, err := on.Tools(h.tools, now, toolText)
	return texts, err
}

// toolKind returns who runs a tool. The zero value belongs to a fresh tool.
func toolKind(v rawjson.Value) middleware.Kind {
	if slices.ContainsFunc(hosted, func(begin string) bool { return strings.HasPrefix(v.Get("type").Str(), begin) }) {
		return middleware.KindHosted
	}
	return middleware.KindFunction
}

// toolText returns t as an element of tools.
func toolText(t middleware.Tool) (string, error) {
	return lens.Rewrite(on, t.Native, t, codec.SameTool, readTool, toolMembers)
}

// toolMembers projects a tool. The wire demands a schema of all but those that the
// provider defines.
func toolMembers(v rawjson.Value, t middleware.Tool) ([]lens.Member, error) {
	schema := string(t.Parameters)
	switch {
	case t.Kind != toolKind(v):
		return nil, codec.Unencodablef("a tool of another kind")
	case schema == "" && (!v.Exists() || on.Get(v, "input_schema").Exists()):
		schema = `{"type":"object"}`
	case schema != "" && !codec.IsObject(schema):
		return nil, codec.Unencodablef("a schema that is not a JSON object")
	}
	members := []lens.Member{lens.Text("name", t.Name), lens.Word("description", t.Description), lens.Raw("input_schema", schema), lens.Flag("strict", t.Strict)}
	if v.Get("strict").Exists() {
		members[3].Raw = strconv.FormatBool(t.Strict)
	}
	return members, nil
}
