package hostile

import (
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// schema is an attack whose schema grows, with one call of {}.
func schema(name string, text func(size int) string) Attack {
	return Attack{Schemas, name, func(size int) Sample { return one(text(size), `{}`) }}
}

// schemas are tools whose schemas grow.
var schemas = []Attack{
	schema("properties", func(n int) string { return `{"properties":{` + list(`"p%d":{"type":"string"}`, n-20) + `}}` }),
	schema("properties, a definition each", func(n int) string {
		return `{"properties":{` + list(`"p%d":{"$ref":"#/$defs/d%d"}`, n/2) + `},"$defs":{` + list(`"d%d":{"type":"string"}`, n/2) + `}}`
	}),
	schema("anchors", func(n int) string {
		return `{"$defs":{` + list(`"x%d":{"$anchor":"a%d"},"y%d":{"$ref":"#a%d"}`, n) + `}}`
	}),
	schema("ids", func(n int) string { return `{"$defs":{` + list(`"x%d":{"$id":"a%d"},"y%d":{"$ref":"a%d"}`, n) + `}}` }),
	schema("references to other places", func(n int) string {
		return `{"properties":{` + list(`"x%d":{"$ref":"#/z/%d"}`, n*9/10) + `},"z":[` + list(`{}`, n/10) + `]}`
	}),
	schema("allOf, doubled", func(n int) string { return doubled(max(2, n/65)) }),
	schema("anyOf", func(n int) string { return `{"anyOf":[` + list(`{"const":%d}`, n) + `]}` }),
	schema("nested not", func(n int) string { return nested(`{"not":`, `{"type":"strin"}`, `}`, n/8) }),
	schema("100 levels above invalid leaves", func(n int) string {
		return nested(`{"not":`, `{"anyOf":[`+list(`{"type":"strin"}`, n-900)+`]}`, `}`, 100)
	}),
	schema("enum", func(n int) string { return `{"enum":[` + list(`%d`, n) + `]}` }),
	schema("draft 7, enum of equal hashes", func(n int) string {
		return `{"$schema":"http://json-schema.org/draft-07/schema#","enum":[` + colliding(n/100) + `]}`
	}),
	schema("required names", func(n int) string { return `{"required":[` + list(`"k%d"`, n) + `]}` }),
	schema("a long default", func(n int) string { return `{"default":[` + list(`1`, n) + `]}` }),
	schema("patterns of 1,000 states", func(n int) string { return `{"anyOf":[` + list(`{"pattern":"[a-z]{1,999}%d"}`, n) + `]}` }),
	schema("unknown keywords", func(n int) string { return `{` + list(`"%d":{}`, n) + `}` }),
	schema("a long number", func(n int) string { return `{"multipleOf":` + strings.Repeat("7", n) + `}` }),
	schema("a long description", func(n int) string { return `{"description":"` + fill("é", n) + `"}` }),
}

// message is an attack of n calls of about 40 bytes; the tools are counted too.
func message(name string, tools func(size int) []middleware.Tool, call func(i int) middleware.ToolCall) Attack {
	return Attack{Calls, name, func(size int) Sample {
		s := Sample{Tools: tools(size)}
		for n := s.Bytes(); n < size || len(s.Calls) == 0; {
			c := call(len(s.Calls))
			s.Calls = append(s.Calls, c)
			n += len(c.ID) + len(c.Name) + len(c.Arguments)
		}
		return s
	}}
}

// some returns the same tools for every size.
func some(tools ...middleware.Tool) func(int) []middleware.Tool {
	return func(int) []middleware.Tool { return tools }
}

// many returns n tools.
func many(n int) []middleware.Tool {
	tools := make([]middleware.Tool, n)
	for i := range tools {
		tools[i] = tool(fmt.Sprintf("get_the_thing_number_%d", i), anyObject)
	}
	return tools
}

// call returns the i-th call of a message.
func call(id, name, arguments string) func(i int) middleware.ToolCall {
	return func(i int) middleware.ToolCall {
		return middleware.ToolCall{ID: strings.ReplaceAll(id, "%d", fmt.Sprint(i)), Name: name, Arguments: arguments}
	}
}

// calls are messages of ever more calls, and requests of ever more tools.
var calls = []Attack{
	message("valid calls", some(tool("t", anyObject)), call("call_%d", "t", `{"a":1}`)),
	message("valid calls of one id", some(tool("t", anyObject)), call("call_1", "t", `{"a":1}`)),
	message("valid calls without ids", some(tool("t", anyObject)), call("", "t", `{"a":1}`)),
	message("invalid calls", some(tool("t", ofStrings)), call("call_%d", "t", `{"a":[1]}`)),
	message("calls of no tool, 100 tools", some(many(100)...), call("call_%d", "get_the_thing_numbr_x", `{}`)),
	message("calls of no tool, ever more tools", func(size int) []middleware.Tool { return many(size / 80) }, call("call_%d", "get_the_thing_numbr_x", `{}`)),
	message("empty calls of ever more required names", func(size int) []middleware.Tool {
		return []middleware.Tool{tool("t", `{"required":[`+list(`"k%d"`, size/2)+`]}`)}
	}, call("call_%d", "t", `{}`)),
	message("invalid calls of ever more properties", func(size int) []middleware.Tool {
		return []middleware.Tool{tool("t", `{"properties":{`+list(`"p%d":{"type":"string"}`, min(size/2, 60_000))+`}}`)}
	}, call("call_%d", "t", `{"p1":1}`)),
	message("calls that textual repairs are tried on", some(tool("t", ofStrings)), call("call_%d", "t", `{a:['b',],}`)),
	{Calls, "tools that are never called", func(size int) Sample {
		return Sample{Tools: many(size / 40), Calls: []middleware.ToolCall{{ID: "1", Name: "get_the_thing_number_0", Arguments: "{}"}}}
	}},
}
