package recorded

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/middleware"
)

// call is a tool call in either of two shapes: {id, name, arguments}, or a
// provider's {id, type, function: {name, arguments}}.
type call struct {
	ID        text   `json:"id"`
	Name      text   `json:"name"`
	Arguments text   `json:"arguments"`
	NoSchema  bool   `json:"no_schema"` // the recording lacks the tool's schema
	Announced bool   `json:"announced"` // the request announced the tool: the gateway writes that
	Type      string `json:"type"`
	Function  *struct {
		Name      text `json:"name"`
		Arguments text `json:"arguments"`
	} `json:"function"`
	Custom *struct {
		Name  text `json:"name"`
		Input text `json:"input"`
	} `json:"custom"`
}

// toolCall returns the call in neutral form. Arguments that are absent or null
// are "", which is how streaming servers write them.
func (c call) toolCall() middleware.ToolCall {
	tc := middleware.ToolCall{ID: string(c.ID), Name: string(c.Name), Arguments: string(c.Arguments)}
	switch {
	case c.Type == "custom" && c.Custom != nil:
		tc.Kind, tc.Name, tc.Arguments = middleware.KindCustom, string(c.Custom.Name), string(c.Custom.Input)
	case c.Function != nil:
		tc.Name, tc.Arguments = string(c.Function.Name), string(c.Function.Arguments)
	}
	return tc
}

// toolCalls returns calls in neutral form, in order.
func toolCalls(calls []call) []middleware.ToolCall {
	out := make([]middleware.ToolCall, len(calls))
	for i, c := range calls {
		out[i] = c.toolCall()
	}
	return out
}

// tool is a tool in either of two shapes: {name, description, parameters}, or
// a provider's {type, function: {…}}.
type tool struct {
	Type        string          `json:"type"`
	Name        text            `json:"name"`
	Description text            `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Function    *struct {
		Name        text            `json:"name"`
		Description text            `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
	Custom *struct {
		Name        text `json:"name"`
		Description text `json:"description"`
	} `json:"custom"`
}

// tool returns the tool in neutral form. Parameters stay byte for byte as they
// are in the log; null and absent ones are nil.
func (t tool) tool() middleware.Tool {
	out := middleware.Tool{Name: string(t.Name), Description: string(t.Description), Parameters: t.Parameters}
	switch {
	case t.Function != nil:
		out.Name, out.Description, out.Parameters = string(t.Function.Name), string(t.Function.Description), t.Function.Parameters
	case t.Custom != nil:
		out.Kind, out.Name, out.Description = middleware.KindCustom, string(t.Custom.Name), string(t.Custom.Description)
	case t.Type != "" && t.Type != "function":
		// The provider's own: it has no name that a call could use.
		out.Kind, out.Name = middleware.KindHosted, t.Type
	}
	if string(out.Parameters) == "null" {
		out.Parameters = nil
	}
	return out
}

// tools returns ts in neutral form, in order.
func tools(ts []tool) []middleware.Tool {
	out := make([]middleware.Tool, len(ts))
	for i, t := range ts {
		out[i] = t.tool()
	}
	return out
}

// recorded returns the turn of a recorded line. Its tools stand in the line
// itself, or in the toolset that tools_ref names.
func (v line) recorded(sets *Toolsets) ([]Turn, error) {
	t := v.turn(nil, v.served())
	if v.ToolsRef != "" {
		found, err := sets.find(t.Source, string(v.ToolsRef))
		if err != nil {
			return nil, err
		}
		t.Tools = found
	} else if v.Tools != nil {
		t.Tools = tools(v.Tools)
	} else {
		return nil, fmt.Errorf("neither tools nor tools_ref: the tools that the model had are not known")
	}
	for i, c := range v.ToolCalls {
		if c.Announced {
			t.Messages = append(t.Messages, middleware.System("`"+t.Calls[i].Name+"`"))
		}
		if c.NoSchema {
			t.Tools = withoutSchema(t.Tools, t.Calls[i].Name)
		}
	}
	return []Turn{t}, nil
}

// turn returns the turn of a recorded line with these tools.
func (v line) turn(tools []middleware.Tool, served *Served) Turn {
	return Turn{
		Source: string(v.Source), Model: string(v.Model), ID: string(v.ID), Tools: tools,
		Calls: toolCalls(v.ToolCalls), Finish: middleware.FinishReason(v.Finish), Served: served,
	}
}

// withoutSchema returns tools with one more, of which only the name is known.
func withoutSchema(tools []middleware.Tool, name string) []middleware.Tool {
	if slices.ContainsFunc(tools, func(t middleware.Tool) bool { return t.Name == name }) {
		return tools
	}
	return append(slices.Clip(tools), middleware.Tool{Name: name})
}
