package recorded

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// programs are the forms that programs write, with what reads their records. They are tried
// before forms. A form is recognised by members that only it has.
var programs []form

func init() { // the readers use the table
	programs = []form{
		{name: "Codex rollout", has: []string{"timestamp", "type", "payload"}, session: true, local: true, read: (*session).codex},
		{name: "Codex rollout", has: []string{"record_type"}, session: true, local: true},
		{name: "output of codex exec --json", has: []string{"type", "item/type"}, is: func(v rawjson.Value) bool { return strings.HasPrefix(v.Get("type").Str(), "item.") }, read: func(s *session, v rawjson.Value) {
			if kind := v.Get("item").Get("type").Str(); kind == "mcp_tool_call" || kind == "command_execution" {
				s.fail(errors.New("the output of codex exec --json does not have the calls as the model sent them: read the rollout in ~/.codex/sessions"))
			}
		}},
		{name: "HAR", has: []string{"log/entries"}, read: func(s *session, v rawjson.Value) { s.each(v.Get("log").Get("entries")) }},
		{name: "recorded HTTP", has: []string{"request/method", "request/url", "response"}, read: (*session).http},
		{name: "recorded HTTP", has: []string{"request/method", "request/uri", "response"}, read: (*session).http},
		{name: "MCP recording", is: func(v rawjson.Value) bool { return len(mcpIn(v)) > 0 }, read: func(s *session, v rawjson.Value) {
			for _, m := range mcpIn(v) {
				s.mcp(m)
			}
		}},
		{name: "promptfoo results", has: []string{"results/results"}, read: func(s *session, v rawjson.Value) {
			for p := range v.Get("config").Get("providers").Each() {
				s.tools = append(s.tools, toolsIn.Get(thin(p))...)
			}
			s.each(v.Get("results").Get("results"))
		}},
		{name: "promptfoo results", has: []string{"promptIdx", "response"}, read: func(s *session, v rawjson.Value) {
			s.model = text(v.Get("provider").Get("id"))
			s.blocks(v.Get("response").Get("output"))
		}},
		{name: "LangSmith runs", has: []string{"run_type"}, read: (*session).run},
		{name: "LangSmith runs", is: func(v rawjson.Value) bool {
			return hasAny(v.Get("post"), "run_type") || hasAny(v.Get("patch"), "trace_id")
		}, read: func(s *session, v rawjson.Value) {
			for _, key := range []string{"post", "patch"} {
				for r := range v.Get(key).Each() {
					s.run(r)
				}
			}
		}},
		{name: "OpenInference spans", is: func(v rawjson.Value) bool {
			return v.Get("openinference.span.kind").Exists() || len(nested(v, "llm.output_messages")) > 0
		}, read: (*session).openInference},
		{name: "AI SDK telemetry", has: []string{"ai.response.toolCalls"}, read: func(s *session, v rawjson.Value) {
			s.model = firstText(v, "gen_ai.response.model", "ai.model.id")
			s.blocks(v.Get("ai.response.toolCalls"))
		}},
		{name: "OpenLLMetry spans", is: func(v rawjson.Value) bool { return len(nested(v, "gen_ai.completion")) > 0 }, read: func(s *session, v rawjson.Value) {
			s.model = firstText(v, "gen_ai.request.model", "gen_ai.response.model")
			s.messages(listOf(nested(v, "gen_ai.completion")))
		}},
		{name: "OpenTelemetry", has: []string{"gen_ai.output.messages"}, answer: []string{"gen_ai.output.messages"}},
		{name: "OpenTelemetry tool spans", has: []string{"gen_ai.tool.name", "gen_ai.tool.call.arguments"}, read: func(s *session, v rawjson.Value) {
			s.late = append(s.late, &Turn{Line: s.line, NoTools: true, Outcomes: []Outcome{""}, Calls: []middleware.ToolCall{{
				ID: text(v.Get("gen_ai.tool.call.id")), Name: text(v.Get("gen_ai.tool.name")), Arguments: text(v.Get("gen_ai.tool.call.arguments")),
			}}})
		}},
		{name: "Langfuse", has: []string{"type=GENERATION", "output"}, request: []string{"input"}, answer: []string{"output"}},
		{name: "tau2 results", has: []string{"simulations"}, read: func(s *session, v rawjson.Value) {
			s.model = text(find(v, "info/agent_info/llm"))
			s.each(v.Get("simulations"))
		}},
		{name: "Inspect log", has: []string{"eval", "samples"}, read: func(s *session, v rawjson.Value) {
			s.model = text(v.Get("eval").Get("model"))
			s.each(v.Get("samples"))
		}},
		{name: "Inspect sample", has: []string{"epoch", "messages"}, is: func(v rawjson.Value) bool { return v.Get("events").Exists() || v.Get("target").Exists() }, read: (*session).sample},
		{name: "ShareGPT", has: []string{"conversations"}, read: (*session).shareGPT},
		{name: "xLAM", has: []string{"answers", "tools", "query"}, read: (*session).xlam},
		{name: "Gemini CLI session", has: []string{"sessionId", "messages"}, is: func(v rawjson.Value) bool {
			first := firstOf(v.Get("messages"))
			return v.Get("projectHash").Exists() || !first.Get("role").Exists() && slices.Contains([]string{"gemini", "user"}, first.Get("type").Str())
		}, session: true, local: true, pieces: true, read: func(s *session, v rawjson.Value) { s.messages(v.Get("messages")) }},
		{name: "Gemini CLI session", has: []string{"type=gemini", "content"}, session: true, local: true, pieces: true, read: (*session).message},
		{name: "Gemini CLI session", has: []string{"$set"}, session: true, local: true, pieces: true, read: func(s *session, v rawjson.Value) { s.messages(v.Get("$set").Get("messages")) }},
		{name: "opencode export", has: []string{"info", "messages"}, is: func(v rawjson.Value) bool { return hasAny(v.Get("messages"), "parts") }, session: true, local: true, read: func(s *session, v rawjson.Value) { s.messages(v.Get("messages")) }},
		{name: "output of opencode run --format json", has: []string{"sessionID", "part"}, session: true, local: true, read: func(s *session, v rawjson.Value) {
			if part := v.Get("part"); part.Get("type").Str() == "tool" {
				s.open = nil
				s.item(part)
			}
		}},
		{name: "opencode part", has: []string{"type=tool", "callID", "tool"}, session: true, local: true, read: (*session).item},
		{name: "OpenHands events", has: []string{"kind=ActionEvent", "tool_call"}, session: true, local: true, pieces: true, read: func(s *session, v rawjson.Value) {
			s.add(s.turn(text(v.Get("llm_response_id")), ""), v)
		}},
		{name: "OpenHands events", is: func(v rawjson.Value) bool {
			return v.Get("source").Kind() == rawjson.String && (v.Get("action").Kind() == rawjson.String || v.Get("observation").Kind() == rawjson.String || strings.HasSuffix(v.Get("kind").Str(), "Event"))
		}, session: true, local: true, pieces: true, read: (*session).openHands},
		{name: "trajectory", has: []string{"history"}, is: func(v rawjson.Value) bool { return hasAny(v.Get("history"), "role", "source") }, session: true, read: func(s *session, v rawjson.Value) { s.each(v.Get("history")) }},
		{name: "trajectory", has: []string{"trajectory_format", "messages"}, session: true, read: func(s *session, v rawjson.Value) { s.messages(v.Get("messages")) }},
		{name: "OpenHands trajectory", has: []string{"trajectory"}, is: func(v rawjson.Value) bool { return hasAny(v.Get("trajectory"), "source") }, session: true, read: func(s *session, v rawjson.Value) { s.each(v.Get("trajectory")) }},
		{name: "Copilot CLI session", has: []string{"type=assistant.message", "data"}, session: true, local: true, pieces: true, read: (*session).message},
		{name: "Copilot CLI session", has: []string{"type=tool.execution_complete", "data"}, session: true, local: true, read: func(s *session, v rawjson.Value) {
			s.result(v.Get("data"), text(v.Get("data").Get("toolCallId")))
		}},
		{name: "Kimi session", has: []string{"type=context.append_loop_event", "event"}, session: true, local: true, pieces: true, read: func(s *session, v rawjson.Value) {
			switch e := v.Get("event"); e.Get("type").Str() {
			case "tool.call":
				s.add(s.turn(text(e.Get("stepUuid")), ""), e)
			case "tool.result":
				s.result(e.Get("result"), text(e.Get("toolCallId")))
			}
		}},
		{name: "Kimi session", has: []string{"message/type=ToolCall", "message/payload"}, session: true, local: true, read: func(s *session, v rawjson.Value) {
			s.open = nil
			s.item(v.Get("message").Get("payload"))
		}},
		{name: "Kimi session", has: []string{"message/type=ToolCallPart", "message/payload"}, session: true, local: true, read: func(s *session, v rawjson.Value) {
			if n := len(s.turns); n > 0 {
				s.turns[n-1].rest = append(s.turns[n-1].rest, text(v.Get("message").Get("payload").Get("arguments_part"))...)
			}
		}},
		{name: "pydantic-ai messages", has: []string{"kind", "parts"}, read: (*session).message},
		{name: "AutoGen messages", has: []string{"type=ToolCallRequestEvent", "content"}, read: func(s *session, v rawjson.Value) { s.blocks(v.Get("content")) }},
		{name: "OpenAI Evals output", has: []string{"sample/output"}, read: func(s *session, v rawjson.Value) {
			s.messages(v.Get("sample").Get("output"))
		}},
		{name: "session of Claude Code, Qwen Code or pi", is: func(v rawjson.Value) bool {
			m := v.Get("message")
			return m.Kind() == rawjson.Object && (m.Get("role").Exists() || m.Get("content").Exists()) && slices.Contains([]string{"assistant", "user", "message", "context.append_message"}, v.Get("type").Str())
		}, has: []string{"type", "message"}, session: true, local: true, pieces: true, read: func(s *session, v rawjson.Value) {
			if v.Get("type").Str() != "context.append_message" { // Kimi repeats the calls there
				s.message(v)
			}
		}},
		{name: "Cursor transcript", has: []string{"role", "message/content"}, session: true, local: true, read: (*session).message},
		{name: "LangChain messages", has: []string{"lc", "kwargs"}, read: (*session).message},
		{name: "LangChain messages", is: func(v rawjson.Value) bool {
			return slices.Contains([]string{"ai", "human", "AIMessageChunk", "tool", "system"}, v.Get("type").Str()) && (v.Get("data").Kind() == rawjson.Object || v.Get("content").Exists() && !v.Get("role").Exists())
		}, read: (*session).message},
		{name: "message", has: []string{"role"}, is: func(v rawjson.Value) bool {
			return !v.Get("stop_reason").Exists() && (v.Get("content").Exists() || v.Get("parts").Exists() || v.Get("tool_calls").Exists())
		}, read: (*session).message},
		{name: "item of OpenAI Responses", is: func(v rawjson.Value) bool { return isItem(v.Get("type").Str()) }, read: (*session).item},
		{name: "list of calls", is: func(v rawjson.Value) bool { return !v.Get("tools").Exists() && isCall(v) }, read: func(s *session, v rawjson.Value) {
			s.open = nil
			s.item(v)
		}},
	}
	for i := range programs {
		programs[i].across = true
	}
}

// hasAny reports whether a list begins with an object with one of some members.
func hasAny(list rawjson.Value, keys ...string) bool {
	first := firstOf(list)
	return slices.ContainsFunc(keys, func(key string) bool { return first.Get(key).Exists() })
}

// firstOf returns the first element of a list.
func firstOf(list rawjson.Value) rawjson.Value {
	for e := range list.Each() {
		return e
	}
	return rawjson.Value{}
}

// each reads the records in a list.
func (s *session) each(list rawjson.Value) {
	for v := range list.Each() {
		for _, r := range records(v) {
			if !s.record(r) && mayHoldCall(r.Raw()) {
				s.fail(errors.New("a record in a list that may have calls, in no form that is read: its members are " + membersOf(r)))
			}
		}
	}
}

// record reads a record of one of the programs' forms, and returns false if it has none.
func (s *session) record(v rawjson.Value) bool {
	f := formOf(v)
	if f == nil {
		return false
	}
	s.form, s.local, s.session = f, f.local, s.session || f.session
	if f.read != nil {
		if firstAt(v, toolPlaces).Exists() {
			before := s.tools
			if found := toolsIn.Get(thin(v)); found != nil {
				s.tools = found
			}
			defer func() { s.tools = before }()
		}
		f.read(s, v)
	} else if len(f.answer) > 0 {
		turns, err := f.turns(v, nil)
		if _, skipped := err.(Skipped); skipped {
			err = nil
		}
		s.adopt(turns, err)
	}
	return true
}

// codex reads a line of a rollout. Its events and compacted histories repeat the calls.
func (s *session) codex(v rawjson.Value) {
	p := v.Get("payload")
	switch v.Get("type").Str() {
	case "session_meta":
		s.tools = append(s.tools, tools(p.Get("dynamic_tools"))...)
		s.partly = true
	case "turn_context":
		s.model = cmp.Or(text(p.Get("model")), s.model)
	case "response_item":
		if kind := p.Get("type").Str(); kind == "message" {
			s.open = nil
		} else if isItem(kind) {
			s.item(p)
		}
	}
}

// openHands reads an event. What the model sent is in the response that the event repeats.
func (s *session) openHands(v rawjson.Value) {
	meta := v.Get("tool_call_metadata")
	answer := meta.Get("model_response")
	if !answer.Exists() {
		if action := v.Get("action").Str(); v.Get("source").Str() == "agent" && slices.Contains([]string{"run", "run_ipython", "edit", "read", "write", "browse", "browse_interactive", "call_tool_mcp"}, action) {
			s.fail(errors.New("an action of OpenHands without tool_call_metadata: what the model sent is not in the log"))
		}
		return
	}
	for c := range answer.Get("choices").Each() {
		s.calls(s.turn(text(answer.Get("id")), text(answer.Get("model"))), c.Get("message"), "")
	}
}

// run reads a run of LangSmith. Only the runs of models count, or the root where it is alone.
func (s *session) run(v rawjson.Value) {
	id := text(v.Get("id"))
	if found := toolsIn.Get(thin(v)); found != nil {
		s.runTools[id] = found
	}
	kept, model := s.tools, s.model
	if found := s.runTools[id]; found != nil {
		s.tools = found
	}
	s.model = cmp.Or(text(find(v, "extra/invocation_params/model")), text(find(v, "extra/metadata/ls_model_name")), text(find(v, "inputs/model")))
	if kind := text(v.Get("run_type")); kind != "" {
		s.runTypes[id] = kind
	}
	if s.runTypes[id] == "llm" {
		s.answer(find(v, "outputs"))
	} else if !v.Get("parent_run_id").Exists() || v.Get("parent_run_id").Kind() == rawjson.Null {
		root, before := newSession(s.file, map[callKey]bool{}), newSession(s.file, nil)
		before.messages(find(v, "inputs/messages"))
		for _, t := range before.turns {
			for _, c := range t.Calls {
				root.repeated("", c)
			}
		}
		root.line, root.tools = s.line, s.tools
		root.messages(find(v, "outputs/messages"))
		s.late = append(s.late, root.turns...)
	}
	s.tools, s.model = kept, model
	s.each(v.Get("child_runs"))
}

// answer reads an answer: of a provider, or of LangChain.
func (s *session) answer(v rawjson.Value) {
	for _, key := range []string{"choices", "candidates", "generations", "messages", "output"} {
		if list := v.Get(key); list.Kind() == rawjson.Array {
			s.open = nil
			s.messages(list)
			return
		}
	}
	if in := v.Get("output"); in.Kind() == rawjson.Object {
		v = in
	}
	s.message(v)
}

// spanKinds are where spans of OpenInference have their kind.
var spanKinds = []string{"openinference.span.kind", "openinference/span/kind", "attributes.openinference.span.kind"}

// openInference reads the attributes of a span.
func (s *session) openInference(v rawjson.Value) {
	if kind := firstAt(v, spanKinds); kind.Exists() && kind.Str() != "LLM" {
		return
	}
	s.model = text(firstAt(v, []string{"llm.model_name", "llm/model_name", "attributes.llm.model_name"}))
	before := s.tools
	if list, ok := jsonIn(nested(v, "llm.tools")); ok {
		var found []middleware.Tool
		for t := range list.Each() {
			found = append(found, toolsIn.Get(fmt.Appendf(nil, `{"messages":[],"input":[],"contents":[],"tools":[%s]}`, cmp.Or(find(t, "tool/json_schema").Raw(), "{}")))...)
		}
		if len(found) > 0 {
			s.tools = found
		}
	}
	if list := nested(v, "llm.output_messages"); list != "" {
		s.messages(listOf(list))
	} else if answer := find(v, "output.value"); answer.Kind() == rawjson.Object {
		s.answer(answer)
	}
	s.tools = before
}

func listOf(list string) rawjson.Value {
	v, _ := jsonIn(list)
	return v
}

// nested returns the value that attributes hold under names that begin with a prefix, as
// JSON; "" if there is none. A dot in a name is a step into an object, at any depth, and an
// object whose members are numbers is a list.
func nested(v rawjson.Value, prefix string) string {
	root := map[string]any{}
	for m := range v.Each() {
		if key := strings.TrimPrefix(m.Key(), "attributes."); key == prefix || strings.HasPrefix(key, prefix+".") || strings.HasPrefix(prefix, key+".") {
			put(root, key, m, 0)
		}
	}
	var at any = root
	for key := range strings.SplitSeq(prefix, ".") {
		in, _ := at.(map[string]any)
		if at = in[key]; at == nil {
			return ""
		}
	}
	var b strings.Builder
	join(&b, at)
	if in, ok := jsonIn(b.String()); ok && in.Kind() == rawjson.String { // Langfuse and others keep lists as texts
		return in.Str()
	}
	return b.String()
}

// maxDots is how deep names with dots, and objects with such names, are read.
const maxDots = 64

// put puts a value into an object at a name with dots.
func put(into map[string]any, key string, v rawjson.Value, depth int) {
	if strings.Count(key, ".") > maxDots {
		return
	}
	for {
		name, rest, more := strings.Cut(key, ".")
		switch {
		case more:
		case name == "arguments", name == "input", name == "args", name == "json_schema":
			into[name] = v.Raw()
			return
		default:
			into[name] = undotted(v, depth)
			return
		}
		in, ok := into[name].(map[string]any)
		if !ok {
			in = map[string]any{}
			into[name] = in
		}
		into, key = in, rest
	}
}

// undotted returns a value as join takes it.
func undotted(v rawjson.Value, depth int) any {
	out, n := map[string]any{}, 0
	switch kind := v.Kind(); {
	case depth > maxDots:
	case kind == rawjson.Object:
		for m := range v.Each() {
			put(out, m.Key(), m, depth+1)
		}
		return out
	case kind == rawjson.Array && !v.Empty():
		for e := range v.Each() {
			out[strconv.Itoa(n)], n = undotted(e, depth+1), n+1
		}
		return out
	}
	return v.Raw()
}

// join writes the JSON of an object, a list, or JSON.
func join(b *strings.Builder, v any) {
	at, ok := v.(map[string]any)
	if !ok {
		b.WriteString(v.(string))
		return
	}
	keys := slices.SortedFunc(maps.Keys(at), func(a, b string) int {
		x, _ := strconv.Atoi(a)
		y, _ := strconv.Atoi(b)
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
	})
	ends := "{}"
	if len(keys) > 0 && !slices.ContainsFunc(keys, func(key string) bool { _, err := strconv.Atoi(key); return err != nil }) {
		ends = "[]"
	}
	b.WriteByte(ends[0])
	for i, key := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		if ends == "{}" {
			b.WriteString(rawjson.Quote(key) + ":")
		}
		join(b, at[key])
	}
	b.WriteByte(ends[1])
}

// sample reads a sample of Inspect. Its messages and its events have the same calls.
func (s *session) sample(v rawjson.Value) {
	seen, before := s.seen, s.tools
	s.seen, s.texts = map[callKey]bool{}, v.Get("attachments")
	var found []middleware.Tool
	for e := range v.Get("events").Each() {
		for _, t := range tools(e.Get("tools")) {
			if !slices.ContainsFunc(found, func(o middleware.Tool) bool { return o.Name == t.Name }) {
				found = append(found, t)
			}
		}
	}
	if len(found) > 0 {
		s.tools = found
	}
	s.local = true
	s.messages(v.Get("messages"))
	repeats := s.repeats
	for e := range v.Get("events").Each() {
		if e.Get("event").Str() == "model" {
			s.answer(e.Get("output"))
		}
	}
	s.repeats = repeats
	s.seen, s.tools, s.texts = seen, before, rawjson.Value{}
}

// shareGPT reads a conversation of a data set.
func (s *session) shareGPT(v rawjson.Value) {
	before := s.tools
	for m := range v.Get("conversations").Each() {
		switch role := firstText(m, "from", "role"); role {
		case "system":
			if list, _, ok := strings.Cut(afterText(m.Get("value").Str(), "<tools>"), "</tools>"); ok && s.tools == nil {
				list = strings.TrimSpace(list)
				if !strings.HasPrefix(list, "[") {
					list = "[" + strings.ReplaceAll(list, "}\n{", "},{") + "]"
				}
				s.tools = toolsIn.Get(fmt.Appendf(nil, `{"messages":[],"input":[],"contents":[],"tools":%s}`, list))
			}
		default:
			if slices.Contains(roles, role) {
				s.marked(s.turn("", ""), cmp.Or(m.Get("value").Str(), m.Get("content").Str()))
			}
			s.message(m)
		}
	}
	s.tools = before
}

// xlamTypes are the types of JSON Schema for the types of Python in xLAM's tools.
var xlamTypes = map[string]string{"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "List": "array", "dict": "object", "Dict": "object"}

// xlam reads a row. The parameters of its tools are properties, with types of Python.
func (s *session) xlam(v rawjson.Value) {
	list, before := find(v, "tools"), s.tools
	s.tools = nil
	for t := range list.Each() {
		tool := middleware.Tool{Name: text(t.Get("name")), Description: text(t.Get("description"))}
		var b strings.Builder
		sure := true
		for p := range t.Get("parameters").Each() {
			if b.Len() > 0 {
				b.WriteByte(',')
			}
			base, _, _ := strings.Cut(text(p.Get("type")), ",")
			base, _, _ = strings.Cut(base, "[")
			if kind := xlamTypes[strings.TrimSpace(base)]; kind != "" {
				fmt.Fprintf(&b, "%s:{%q:%q}", rawjson.Quote(p.Key()), "type", kind)
			} else {
				b.WriteString(rawjson.Quote(p.Key()) + ":{}")
			}
			sure = sure && p.Kind() == rawjson.Object
		}
		if sure {
			tool.Parameters = []byte(`{"type":"object","properties":{` + b.String() + `},"additionalProperties":false}`)
		} else {
			tool.Parameters = []byte(text(t.Get("parameters")))
		}
		s.tools = append(s.tools, tool)
	}
	s.blocks(v.Get("answers"))
	s.tools = before
}

// mcpIn returns the messages of MCP in a record: the record, or what it has as request and
// response, or as a message.
func mcpIn(v rawjson.Value) (out []rawjson.Value) {
	is := func(v rawjson.Value) bool {
		method := v.Get("method").Str()
		return v.Get("jsonrpc").Exists() && (method != "" || v.Get("result").Exists() || v.Get("error").Exists()) || method == "tools/call" && v.Get("params").Kind() == rawjson.Object
	}
	if is(v) {
		return []rawjson.Value{v}
	}
	for _, key := range []string{"request", "response", "message", "msg", "payload", "data"} {
		if in := find(v, key); in.Kind() == rawjson.Object && (is(in) || len(out) > 0) {
			out = append(out, in)
		}
	}
	return out
}

// mcp reads a message of MCP.
func (s *session) mcp(v rawjson.Value) {
	id := text(v.Get("id"))
	if v.Get("method").Str() == "tools/call" {
		t := s.turn("", "")
		s.add(t, v.Get("params"))
		if n := len(t.Calls); n > 0 {
			t.Calls[n-1].ID = id
		}
		return
	}
	if list := v.Get("result").Get("tools"); list.Kind() == rawjson.Array {
		s.tools = append(s.tools, tools(list)...)
	}
	if r := v.Get("result"); r.Get("isError").Raw() == "true" || v.Get("error").Exists() {
		s.became(id, OutcomeError)
	}
}

// http reads an exchange of HTTP as HAR and cassettes have it. Requests that no model
// provider answers are passed over, and so are those of a HAR without an answer.
func (s *session) http(v rawjson.Value) {
	path := cmp.Or(text(placeAt(v, "request/url")), text(placeAt(v, "request/uri")))
	if after := afterText(path, "://"); after != "" {
		_, path, _ = strings.Cut(after, "/")
		path = "/" + path
	}
	body := func(places ...string) string {
		for _, place := range places {
			if at := placeAt(v, place); at.Kind() == rawjson.String || (at.Kind() == rawjson.Object || at.Kind() == rawjson.Array) && strings.HasSuffix(place, "body") {
				return text(at)
			}
		}
		return ""
	}
	request := body("request/postData/text", "request/body/string", "request/body/text", "request/body", "request/content")
	response := body("response/content/text", "response/body/string", "response/body/text", "response/body", "response/content", "response/text")
	if answer := v.Get("response"); response == "" && (answer.Kind() == rawjson.String || bareAnswer(answer)) {
		response = text(answer)
	}
	encoding := cmp.Or(text(placeAt(v, "response/content/encoding")), text(placeAt(v, "response/body/encoding")))
	if plain, err := base64.StdEncoding.DecodeString(response); err == nil && encoding == "base64" {
		response = string(plain)
	}
	har := placeAt(v, "response/content").Kind() == rawjson.Object
	in, _ := jsonIn(request)
	ours := request != "" && slices.ContainsFunc(codecs, func(c wire.Codec) bool { return c.Match(path, []byte(request)) })
	asks := ours || firstAt(in, []string{"messages", "contents", "input", "tools"}).Exists() || !har && mayHoldCall(response)
	if !asks || har && response == "" { // aborted, or the answer was not kept
		return
	}
	status := cmp.Or(text(placeAt(v, "response/status/code")), text(placeAt(v, "response/status")), text(placeAt(v, "response/status_code")))
	in, ok := jsonIn(fmt.Sprintf(`{"path":%s,"status":%s,"request":%s,"response":%s}`, rawjson.Quote(path), rawjson.Quote(status), rawjson.Quote(request), rawjson.Quote(response)))
	if !ok {
		return
	}
	turns, err := exchange.turns(in, nil)
	if _, skipped := err.(Skipped); skipped || !ours && !mayHoldCall(request) && !mayHoldCall(response) {
		err = nil
	}
	s.adopt(turns, err)
}
