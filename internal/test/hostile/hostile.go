// Package hostile is the table of inputs that are cheap to send and costly to
// handle: what a model, the author of a schema, a server or a damaged store can
// send. Each attack is made in any size, so that a benchmark can show how its
// cost grows.
//
//	make hostile
//
// runs every attack of this package and prints the table of
// docs/measured/hostile-input.md. The benchmark is BenchmarkHostile, here and in the
// module mcp.
package hostile

import (
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// Attack is one way to make an input of any size.
type Attack struct {
	Group Group
	Name  string
	Make  func(size int) Sample // of about size bytes
}

// Group says what handles the samples of an attack.
type Group string

// The groups.
const (
	Arguments Group = "arguments" // calls whose arguments grow, of tools whose schemas do not
	Schemas   Group = "schemas"   // tools whose schemas grow
	Calls     Group = "calls"     // messages of ever more calls, and requests of ever more tools
	ReAct     Group = "ReAct"     // texts for package textcall
	Answers   Group = "answers"   // HTTP bodies of OpenAI's chat completions
	States    Group = "states"    // JSON of an agentloop.State
	Lists     Group = "lists"     // results of tools/list of an MCP server
)

// Sample is an input.
type Sample struct {
	Tools []middleware.Tool
	Calls []middleware.ToolCall // of one message, for Arguments, Schemas and Calls
	Text  string                // for the other groups
	Gzip  bool                  // the text is compressed
}

// Bytes is the size of what was sent.
func (s Sample) Bytes() int {
	n := len(s.Text)
	for _, t := range s.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	for _, c := range s.Calls {
		n += len(c.ID) + len(c.Name) + len(c.Arguments)
	}
	return n
}

// list repeats item, with commas, in about size bytes. "%d" in it counts.
func list(item string, size int) string { return series(item, ",", size) }

// times repeats item n times, with commas. "%d" in it counts.
func times(item string, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strings.ReplaceAll(item, "%d", fmt.Sprint(i)))
	}
	return b.String()
}

// series is list with another separator.
func series(item, between string, size int) string {
	counted := strings.Contains(item, "%d")
	var b strings.Builder
	for i := 0; i == 0 || b.Len()+len(item)+len(between) <= size; i++ {
		if i > 0 {
			b.WriteString(between)
		}
		if counted {
			b.WriteString(strings.ReplaceAll(item, "%d", fmt.Sprint(i)))
		} else {
			b.WriteString(item)
		}
	}
	return b.String()
}

// fill repeats s in at most size bytes, but at least once.
func fill(s string, size int) string { return strings.Repeat(s, max(1, size/len(s))) }

// nested repeats open and close around inner, n times.
func nested(open, inner, closing string, n int) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(closing, n)
}
