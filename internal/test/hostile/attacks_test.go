package hostile

import "github.com/toolmend/toolmend/middleware"

// Attacks returns the attacks of a group; without a group all of them but those of
// ListAttacks.
func Attacks(groups ...Group) []Attack {
	var some []Attack
	for _, list := range [][]Attack{arguments, syntax, schemas, calls, texts, answers, states} {
		for _, a := range list {
			for _, g := range groups {
				if a.Group == g {
					some = append(some, a)
				}
			}
			if len(groups) == 0 {
				some = append(some, a)
			}
		}
	}
	return some
}

// tool returns a tool of that name and schema.
func tool(name, schema string) middleware.Tool {
	return middleware.Tool{Name: name, Parameters: []byte(schema)}
}

// one is a message of one call.
func one(schema, arguments string) Sample {
	return Sample{Tools: []middleware.Tool{tool("t", schema)}, Calls: []middleware.ToolCall{{ID: "1", Name: "t", Arguments: arguments}}}
}
