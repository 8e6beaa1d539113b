package recorded

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// ParseCall reads a call in one of the forms of a call in a log. It returns false if s is
// something else, such as the arguments of a call.
func ParseCall(s string) (middleware.ToolCall, bool) {
	v, err := parse([]byte(s))
	if err != nil {
		return middleware.ToolCall{}, false
	}
	c, err := readCall(v)
	named := v.Get("name").Kind() == rawjson.String && firstAt(v, []string{"arguments", "input", "args"}).Exists()
	return c, err == nil && (named || firstAt(v, []string{"function/name", "functionCall/name"}).Exists())
}

// schemaKeys are the members that hold the schema of a tool, in the forms of OpenAI,
// Anthropic, Bedrock and MCP.
var schemaKeys = []string{"parameters", "input_schema", "inputSchema/json", "inputSchema"}

// tools reads a list of tools in the shape {name, description, parameters}, or in a
// provider's {type, function: {…}}. A schema stays byte for byte as it is in the log; null
// and absent ones are nil. The result is nil only if v is not a list.
func tools(v rawjson.Value) []middleware.Tool {
	if v.Kind() != rawjson.Array {
		return nil
	}
	out := []middleware.Tool{}
	for v := range v.Each() {
		v = decoded(v) // the AI SDK's telemetry has each tool as a text
		var t middleware.Tool
		kind := v.Get("type").Str()
		for _, holder := range []string{"tool/json_schema", "function", "toolSpec", "custom"} { // OpenInference, OpenAI, Bedrock
			if in := find(v, holder); in.Kind() == rawjson.Object {
				if v = in; holder == "custom" {
					t.Kind = middleware.KindCustom
				}
			}
		}
		t.Name, t.Description = text(v.Get("name")), text(v.Get("description"))
		if p := firstAt(v, schemaKeys); p.Exists() && t.Kind != middleware.KindCustom {
			t.Parameters = json.RawMessage(text(p))
		} else if kind != "" && kind != "function" && t.Kind == middleware.KindFunction {
			t.Kind, t.Name = middleware.KindHosted, kind // the provider's own: it has no name that a call could use
		}
		out = append(out, t)
	}
	return out
}

// recordedTurn returns the turn of a record with calls at its top. Its tools are in the
// record itself, or in the toolset that tools_ref names.
func recordedTurn(v rawjson.Value, sets *Toolsets) ([]Turn, error) {
	t := Turn{
		Source: text(v.Get("source")), Model: text(v.Get("model")), ID: text(v.Get("id")), Tools: tools(v.Get("tools")),
		Finish: middleware.FinishReason(text(v.Get("finish_reason"))), Served: served(v),
	}
	var limits middleware.Request
	if t.Served != nil && read(v.Get("limits"), &limits) {
		t.Limits = onlyLimits(limits)
	}
	if ref := text(v.Get("tools_ref")); ref != "" {
		found, err := sets.find(t.Source, ref)
		if err != nil {
			return nil, err
		}
		t.Tools = found
	} else if t.Tools == nil {
		t.Tools = sets.known(v, v, "")
		t.NoTools = t.Tools == nil
	}
	for call := range v.Get("tool_calls").Each() {
		if call.Kind() != rawjson.Object {
			return nil, errors.New("tool_calls has " + article(call.Kind()) + ", which is not expected there")
		}
		c, err := readCall(call)
		if err != nil {
			return nil, err
		}
		if call.Get("announced").Raw() == "true" { // the request announced the tool: the gateway writes that
			t.Messages = append(t.Messages, middleware.System("`"+c.Name+"`"))
		}
		if t.Calls = append(t.Calls, c); call.Get("no_schema").Raw() == "true" {
			t.Tools = withTools(t.Tools, middleware.Tool{Name: c.Name}) // only the name is known
		}
	}
	return []Turn{t}, nil
}

// onlyLimits returns what r allows the model to call.
func onlyLimits(r middleware.Request) middleware.Request {
	return middleware.Request{ToolChoice: r.ToolChoice, AllowedTools: r.AllowedTools, NoParallelCalls: r.NoParallelCalls}
}

// withTools returns tools with more of other names.
func withTools(tools []middleware.Tool, more ...middleware.Tool) []middleware.Tool {
	tools = slices.Clip(tools)
	for _, one := range more {
		if !slices.ContainsFunc(tools, func(t middleware.Tool) bool { return t.Name == one.Name }) {
			tools = append(tools, one)
		}
	}
	return tools
}

// lineLimits are the limits of a record: only its length is bounded, by Reader.
var lineLimits = rawjson.Limits{Bytes: -1, Depth: 10_000, Number: -1, Exponent: -1, AnyBytes: true}

// parse returns the object in a text.
func parse(b []byte) (rawjson.Value, error) {
	doc, err := rawjson.Parse(string(b), lineLimits)
	if err != nil {
		return rawjson.Value{}, fmt.Errorf("not JSON: %w", err)
	}
	if k := doc.Root().Kind(); k != rawjson.Object {
		return rawjson.Value{}, errors.New("not a JSON object, but " + article(k))
	}
	return doc.Root(), nil
}

// article names a kind of JSON value in a sentence.
func article(k rawjson.Kind) string {
	switch k {
	case rawjson.Array, rawjson.Object:
		return "an " + k.String()
	case rawjson.Null:
		return "null"
	}
	return "a " + k.String()
}

// text returns a string, or the JSON text of any other value but null: recorders are not
// careful with ids and arguments. The text does not keep the record in memory.
func text(v rawjson.Value) string {
	switch v.Kind() {
	case rawjson.Null, rawjson.Invalid:
		return ""
	case rawjson.String:
		return strings.Clone(strings.ToValidUTF8(v.Str(), "\uFFFD"))
	}
	return strings.Clone(v.Raw())
}
