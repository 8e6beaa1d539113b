package recorded

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	display "github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// Outcome is what became of a call, as a log of a program says.
type Outcome string

// Outcomes. "" is a result without an error, or a call without a result in the log.
const (
	OutcomeError    Outcome = "error"    // the result is an error, or the program refused the call
	OutcomeRejected Outcome = "rejected" // a person rejected or cancelled the call
)

// The places of the parts of a call, the most specific first. Every form of a log has its
// calls in some of them:
//
//	OpenAI chat         {id, function: {name, arguments}}
//	OpenAI Responses    {type: function_call, call_id, name, namespace, arguments}
//	Anthropic           {type: tool_use, id, name, input}
//	Gemini              {functionCall: {id, name, args}}, also function_call
//	Bedrock             {toolUse: {toolUseId, name, input}}
//	LangChain           {id, name, args}
//	Inspect             {id, function, arguments}, where function is a text
//	AI SDK              {toolCallId, toolName, input}, before version 5 args; rawInput of a refused call
//	pydantic-ai         {tool_call_id, tool_name, args}
//	opencode            {callID, tool, state: {input}}
//	others              {id, name, arguments}
var (
	callHolders   = []string{"tool_call", "toolCall/value", "toolInvocation", "function", "functionCall", "function_call", "toolUse", "custom"}
	callNames     = []string{"name", "toolName", "tool_name", "function_name", "function_call_name", "function", "tool"}
	callArguments = []string{"arguments", "args", "input", "rawInput", "state/input", "raw_input", "tool_kwargs", "function_call_arguments_json"}
	callIDs       = []string{"call_id", "callID", "toolCallId", "tool_call_id", "toolUseId", "id"}
)

// ownCalls are items of OpenAI Responses with calls of built-in tools that the client
// executes.
var ownCalls = map[string]struct{ name, arguments string }{
	"computer_call": {"computer", "action"}, "local_shell_call": {"local_shell", "action"}, "shell_call": {"shell", "action"},
	"apply_patch_call": {"apply_patch", "operation"},
}

// readCall reads a call in any of the forms above. A call without a name, and one with
// arguments under a member that is not known, are errors that name the members.
func readCall(v rawjson.Value) (c middleware.ToolCall, err error) {
	kind, outer := v.Get("type").Str(), v
	c.ID = firstText(v, callIDs...)
	if own, ok := ownCalls[kind]; ok {
		return middleware.ToolCall{ID: c.ID, Name: own.name, Kind: middleware.KindBuiltin, Arguments: text(v.Get(own.arguments))}, nil
	}
	for _, key := range callHolders {
		if in := placeAt(v, key); in.Kind() == rawjson.Object {
			v, c.ID = in, cmp.Or(firstText(in, callIDs...), c.ID)
			if key == "custom" {
				kind = "custom_tool_call"
			}
		}
	}
	for _, key := range callNames {
		if name := v.Get(key); c.Name == "" && name.Kind() == rawjson.String {
			c.Name = text(name)
		}
	}
	if name, isPart := strings.CutPrefix(kind, "tool-"); isPart && c.Name == "" {
		c.Name = strings.Clone(name)
	}
	c.Namespace = text(v.Get("namespace"))
	var at rawjson.Value
	for _, place := range callArguments {
		if at = placeAt(v, place); at.Exists() && at.Kind() != rawjson.Null {
			break
		}
	}
	c.Arguments = text(at)
	if kind == "custom_tool_call" || kind == "custom" {
		c.Kind = middleware.KindCustom
	}
	if raw, _, ok := strings.Cut(afterText(outer.Get("parse_error").Str(), "tool call arguments:\n\n"), "\n\nError details"); ok {
		c.Arguments = strings.Clone(raw) // Inspect keeps what the model wrote in the message about it
	}
	if c.Name == "" && v.Get("name").Kind() != rawjson.String { // models do write an empty name
		return c, fmt.Errorf("a tool call without a name: its members are %s", membersOf(outer))
	}
	if !at.Exists() {
		for m := range v.Each() {
			if !slices.Contains(notArguments, m.Key()) && (m.Kind() == rawjson.Object || strings.HasPrefix(m.Str(), "{")) {
				return c, fmt.Errorf("a call of %q with arguments under no known member: its members are %s", c.Name, membersOf(outer))
			}
		}
	}
	return c, nil
}

// notArguments are members of calls that hold objects and are not arguments.
var notArguments = []string{"function", "custom", "extra_content", "provider_specific_fields", "caller", "providerMetadata", "callProviderMetadata", "state", "metadata", "result", "output"}

// afterText returns what follows mark in s; "" if s does not have it.
func afterText(s, mark string) string {
	_, after, _ := strings.Cut(s, mark)
	return after
}

// placeAt returns the value at the names in place. Unlike find, it reads no JSON in strings.
func placeAt(v rawjson.Value, place string) rawjson.Value { return v.At("/" + place) }

// membersOf lists the names of the members of an object, for messages.
func membersOf(v rawjson.Value) string {
	var names []string
	for m := range v.Each() {
		if names = append(names, display.Clip(m.Key(), 40)); len(names) == 12 {
			names = append(names, "…")
			break
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// callTypes are the types of records and blocks that are calls.
var callTypes = []string{
	"tool_use", "tool-call", "toolCall", "tool_call", "function_call", "custom_tool_call", "invalid_tool_call", "dynamic-tool", "tool-invocation",
	"tool-input-available", "toolRequest",
}

// isCall reports whether a record or a block is surely a call: it says so, or it has a name
// and arguments.
func isCall(v rawjson.Value) bool {
	if v.Kind() != rawjson.Object || v.Get("providerExecuted").Raw() == "true" {
		return false
	}
	switch kind := firstText(v, "type", "part_kind", "block_type", "content_type"); {
	case slices.Contains(callTypes, kind), ownCalls[kind].name != "":
		return true
	case strings.HasPrefix(kind, "tool-"): // a part of a message has a state; a result or a piece of a stream has none
		return v.Get("toolCallId").Exists() && v.Get("state").Exists()
	case kind == "tool":
		return v.Get("callID").Exists() && v.Get("tool").Kind() == rawjson.String
	}
	for _, key := range []string{"functionCall", "function_call", "toolUse", "tool_call"} {
		if v.Get(key).Kind() == rawjson.Object {
			return true
		}
	}
	return v.Get("function").Kind() == rawjson.Object && v.Get("function").Get("arguments").Exists() || isFlat(v)
}

// isFlat reports whether a record is a call without anything around it. Definitions of
// prompts have a list as arguments; "input" is the name of many other things.
func isFlat(v rawjson.Value) bool {
	if v.Get("toolName").Kind() == rawjson.String && v.Get("toolCallId").Exists() {
		return v.Get("input").Exists() || v.Get("args").Exists()
	}
	if kind := v.Get("type").Str(); v.Get("name").Kind() != rawjson.String || v.Get("ph").Exists() || kind != "" && kind != "function" && kind != "tool" { // mcp_call, server_tool_use; a Chrome trace has ph
		return false
	}
	for _, key := range []string{"arguments", "args", "input"} {
		a := v.Get(key)
		object := a.Kind() == rawjson.Object || a.Kind() == rawjson.String && (key != "input" || strings.HasPrefix(strings.TrimSpace(a.Str()), "{"))
		if object && (key != "input" || v.Len() <= 2 || v.Len() == 3 && v.Get("id").Exists()) {
			return true
		}
	}
	return false
}

// isPartial reports whether a call is not written to its end yet: programs keep such calls
// while they arrive.
func isPartial(v rawjson.Value) bool {
	return slices.ContainsFunc([]string{"state", "toolInvocation/state", "state/status"}, func(place string) bool {
		return slices.Contains([]string{"input-streaming", "partial-call", "pending"}, placeAt(v, place).Str())
	})
}

// outcomeOf returns what a call says itself about its result, or a result says.
func outcomeOf(v rawjson.Value) Outcome {
	status := firstText(v, "status", "state")
	if s := v.Get("state").Get("status"); s.Exists() {
		status = s.Str()
	}
	failed := v.Get("is_error").Raw() == "true" || v.Get("isError").Raw() == "true" || v.Get("success").Raw() == "false"
	if e := v.Get("error"); e.Exists() && e.Kind() != rawjson.Null && e.Raw() != "false" {
		failed = true
	}
	switch {
	case status == "cancelled", status == "output-denied", rejected(text(v.Get("content"))), rejected(text(v.Get("output"))), rejected(text(v.Get("state").Get("error"))):
		return OutcomeRejected
	case failed, status == "error", status == "output-error", status == "failed", exitCode(v) > 0:
		return OutcomeError
	}
	return ""
}

// rejected reports whether the text of a result is what Claude Code, Codex and opencode
// write if a person rejects a call.
func rejected(s string) bool {
	for _, words := range []string{"The user doesn't want to proceed with this tool use", "The user doesn't want to take this action", "rejected by user", "The user rejected permission"} {
		if strings.Contains(s[:min(len(s), 400)], words) {
			return true
		}
	}
	return false
}

// exitCode returns the exit code in a result of Codex, 0 if it has none.
func exitCode(v rawjson.Value) (code int) {
	if m := find(v, "output/metadata/exit_code"); m.Exists() {
		read(m, &code)
		return code
	}
	s := v.Get("output").Str()
	for _, mark := range []string{"Process exited with code ", "Exit code: "} {
		if after := afterText(s[:min(len(s), 400)], mark); after != "" {
			_, _ = fmt.Sscan(after, &code)
		}
	}
	return code
}
