package transport_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire"
)

// callPlaces has, for each format, the members whose key or type has a word for calls. A
// list adds nothing to a path.
var callPlaces = map[string][]string{
	"chat":      {"/choices/delta/tool_calls", "/choices/delta/function_call", "/choices/message/tool_calls", "/choices/message/function_call"},
	"anthropic": {"/type", "/message/type", "/content_block/type", "/message/content/type", "/content/type"},
	"responses": {"/type", "/item/type", "/response/output/type", "/output/type", "/response/parallel_tool_calls", "/response/max_tool_calls", "/parallel_tool_calls", "/max_tool_calls"},
	"gemini":    {"/candidates/content/parts/functionCall"},
	"ollama":    {"/message/tool_calls"},
}

// withoutCalls are members that hold arguments, which are validated as they are, or in
// which no client looks for calls.
var withoutCalls = []string{"arguments", "args", "input", "output", "usage", "usageMetadata", "text", "content", "delta", "tools", "instructions", "metadata", "error"}

// unitFault returns why a unit of left, bytes that a client of that format gets, is neither
// free of the words for calls, in any spelling, nor of the one spelling in which Toolmend
// writes; "" if there is none.
func unitFault(format, left string) string {
	units := []string{left}
	switch {
	case format == "ollama":
		units = strings.SplitAfter(left, "\n")
	case !strings.HasPrefix(strings.TrimSpace(left), "{"):
		units = strings.SplitAfter(strings.ReplaceAll(left, "\r\n", "\n"), "\n\n")
	}
	for _, unit := range units {
		if !wire.OpenAIChat().MayHoldCall([]byte(unit)) {
			continue
		}
		if why := writtenFault(format, unit); why != "" {
			return why + ": " + unit
		}
	}
	return ""
}

func writtenFault(format, unit string) string {
	data := strings.TrimLeft(unit, "\n")
	if format == "ollama" {
		data = strings.TrimLeft(data, " ") // a keep-alive
	}
	if !strings.HasPrefix(data, "{") {
		if named, ok := strings.CutPrefix(data, "event: "); ok {
			_, data, _ = strings.Cut(named, "\n")
		}
		var begins, ends bool
		data, begins = strings.CutPrefix(data, "data: ")
		if data, ends = strings.CutSuffix(data, "\n\n"); !begins || !ends {
			return "framing"
		}
	}
	data = strings.TrimSuffix(data, "\n")
	if strings.ContainsAny(data, "\r\n") || !json.Valid([]byte(data)) {
		return "no JSON on one line"
	}
	doc, err := rawjson.Parse(data, rawjson.Limits{Bytes: -1, Depth: -1, Values: -1, Number: -1, Exponent: -1})
	if err != nil {
		return err.Error()
	}
	return memberFault(format, doc.Root(), "")
}

// memberFault returns what is wrong with the members of v, which is at that path.
func memberFault(format string, v rawjson.Value, at string) string {
	have := map[string]bool{}
	for m := range v.Each() {
		path := at
		if m.IsMember() {
			path += "/" + m.Key()
			fold := rawjson.Fold(m.Key())
			if have[fold] || m.Key() == "__proto__" {
				return "a member that readers take differently, " + path
			}
			have[fold] = true
			word := m.Key()
			if m.Key() == "type" {
				word = m.Str()
			}
			if namesCall(word) && !slices.ContainsFunc(callPlaces[format], func(p string) bool { return path == p || m.Key() == "type" && strings.HasPrefix(path, p+"/") }) {
				return "a word for calls in " + path
			}
			if slices.Contains(withoutCalls, m.Key()) && !slices.ContainsFunc(callPlaces[format], func(p string) bool { return strings.HasPrefix(p, path+"/") }) {
				continue
			}
		}
		if why := memberFault(format, m, path); why != "" {
			return why
		}
	}
	return ""
}

// namesCall reports whether a reader may take s for a key or a type of a call.
func namesCall(s string) bool {
	s = rawjson.Fold(s)
	return strings.HasPrefix(s, "tool_calls") || strings.Contains(s, "function_call") || strings.Contains(s, "functioncall") ||
		strings.HasPrefix(s, "tool_use") || strings.HasSuffix(s, "_call") || strings.Contains(s, "_call_") || s == "mcp_approval_request"
}

func TestUnitFault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ format, left string }{
		"a twin":           {"chat", `data: {"choices":[{"delta":{"tool_calls":[],"Tool_calls":[]}}]}` + "\n\n"},
		"a double":         {"chat", `data: {"choices":[{"delta":{"content":"tool_calls","content":""}}]}` + "\n\n"},
		"the prototype":    {"chat", `data: {"choices":[{"delta":{"__proto__":{"tool_calls":[]}}}]}` + "\n\n"},
		"another place":    {"chat", `{"choices":[{"x":{"tool_calls":[]}}]}`},
		"an escape":        {"gemini", `data: {"x":{"function\u0043all":{}}}` + "\n\n"},
		"a type":           {"anthropic", `{"x":{"type":"tool_use"}}`},
		"no space":         {"responses", `data:{"type":"function_call"}` + "\n\n"},
		"two data":         {"responses", "data: {\"x\":\ndata: \"function_call\"}\n\n"},
		"a control":        {"ollama", "\v" + `{"message":{"tool_calls":[]}}` + "\n"},
		"bare in a stream": {"gemini", "data: {}\n\n" + `{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}` + "\n\ndata: {}\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NotEmpty(t, unitFault(c.format, c.left))
		})
	}
	for name, s := range speeches() {
		require.Empty(t, unitFault(name, s.whole("tool_calls", `{"n":1}`)))
		require.Empty(t, unitFault(name, s.stream("tool_calls", `{"n":1}`)))
	}
}
