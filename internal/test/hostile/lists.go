package hostile

import (
	"fmt"
	"strings"
)

// page is an attack with the result of tools/list.
func page(name, tool string) Attack {
	return Attack{Lists, name, func(size int) Sample { return Sample{Text: `{"tools":[` + list(tool, size) + `]}`} }}
}

// ListAttacks returns the attacks of the group Lists: what an MCP server can answer
// to tools/list. They are apart from the others because the module mcp, which has
// the client, runs them.
func ListAttacks() []Attack {
	return []Attack{
		page("tools", `{"name":"t%d","inputSchema":{"type":"object"}}`),
		page("tools of one name", `{"name":"t","inputSchema":{"type":"object"}}`),
		page("tools without schemas", `{"name":"t%d"}`),
		page("tools of doubled allOf", `{"name":"t%d","inputSchema":{"type":"object","title":"%d",`+doubled(60)[1:]+`}`),
		page("tools of 200 properties", `{"name":"t%d","inputSchema":{"type":"object","title":"%d","properties":{`+properties(200)+`}}}`),
		{Lists, "a long name", func(n int) Sample {
			return Sample{Text: `{"tools":[{"name":"` + fill("x", n) + `","inputSchema":{"type":"object"}}]}`}
		}},
		{Lists, "a long description", func(n int) Sample {
			return Sample{Text: `{"tools":[{"name":"t","description":"` + fill(`\u202e`, n) + `","inputSchema":{"type":"object"}}]}`}
		}},
		{Lists, "a long schema", func(n int) Sample {
			return Sample{Text: `{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{` + list(`"p%d":{"type":"string"}`, n) + `}}}]}`}
		}},
		{Lists, "a deep schema", func(n int) Sample {
			return Sample{Text: `{"tools":[{"name":"t","inputSchema":` + nested(`{"type":"object","properties":{"a":`, `{}`, `}}`, min(n/40, 400)) + `}]}`}
		}},
	}
}

// properties is n properties, whose names do not count with a page's tools.
func properties(n int) string { return times(`"p%d":{"type":"string"}`, n) }

// doubled is a schema of n definitions, each of which applies the next one
// twice.
func doubled(n int) string {
	var b strings.Builder
	b.WriteString(`{"allOf":[{"$ref":"#/$defs/d0"}],"$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	return b.String() + fmt.Sprintf(`"d%d":{"properties":{"z":{}}}}}`, n)
}
