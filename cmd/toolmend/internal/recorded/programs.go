package recorded

import (
	"bytes"
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

// init puts the forms that programs write in front of the others, with what reads their
// records: the readers use the table. A form is recognised by members that only it has.
func init() {
	programs := []form{
		{name: "Codex rollout", has: signs("payload type=session_meta|type=response_item|type=turn_context|type=event_msg|type=compacted"), lines: true, read: (*session).codex},
		{name: "Codex rollout", has: signs("record_type"), lines: true},
		{name: "Codex rollout", has: signs("session items"), lines: true, read: messagesAt("items")},
		{name: "output of codex exec --json", has: signs("type=item.* item/type"), read: func(s *session, v rawjson.Value) {
			if kind := v.Get("item").Get("type").Str(); kind == "mcp_tool_call" || kind == "command_execution" {
				s.fail(errors.New("the output of codex exec --json does not have the calls as the model sent them: read the rollout in ~/.codex/sessions"))
			}
		}},
		{name: "HAR", has: signs("log/entries"), read: recordsAt("log/entries")},
		{name: "recorded HTTP", has: signs("request/method request/url|request/uri response"), read: (*session).http},
		{name: "MCP recording", is: func(v rawjson.Value) bool { return len(mcpIn(v)) > 0 }, read: (*session).mcp},
		{name: "promptfoo results", has: signs("results/results"), read: func(s *session, v rawjson.Value) {
			for p := range v.Get("config").Get("providers").Each() {
				s.tools = append(s.tools, toolsIn.Get(thin(p))...)
			}
			s.each(v.Get("results").Get("results"))
		}},
		{name: "promptfoo results", has: signs("promptIdx|provider/id response"), read: blocksAt("response/output")},
		{name: "LangSmith runs", has: signs("run_type|trace_id run_type|outputs"), read: (*session).run},
		{name: "LangSmith runs", has: signs("post/0/run_type|patch/0/trace_id"), read: recordsAt("post", "patch")},
		{name: "OpenInference spans", has: signs("openinference.span.kind|openinference/span/kind|llm/output_messages"), read: (*session).openInference},
		{name: "AI SDK telemetry", has: signs("ai.response.toolCalls"), read: blocksAt("ai.response.toolCalls")},
		{name: "OpenLLMetry spans", has: signs("gen_ai/completion|llm/completions"), read: messagesAt("gen_ai/completion", "llm/completions")},
		{name: "OpenTelemetry", has: signs("gen_ai.output.messages"), answer: []string{"gen_ai.output.messages"}},
		{name: "OpenTelemetry tool spans", has: signs("gen_ai.tool.name gen_ai.tool.call.arguments"), read: func(s *session, v rawjson.Value) {
			s.late = append(s.late, &Turn{Line: s.line, NoTools: true, Outcomes: []Outcome{""}, Calls: []middleware.ToolCall{{
				ID: text(v.Get("gen_ai.tool.call.id")), Name: text(v.Get("gen_ai.tool.name")), Arguments: text(v.Get("gen_ai.tool.call.arguments")),
			}}})
		}},
		{name: "Langfuse", has: signs("type=GENERATION output"), request: []string{"input"}, answer: []string{"output"}},
		{name: "Bedrock invocation log", has: signs("modelId output/outputBodyJson !output/outputBodyJson/0"), request: []string{"input/inputBodyJson"}, answer: []string{"output/outputBodyJson"}},
		{name: "log of Helicone", has: signs("request_body response_body"), request: []string{"request_body"}, answer: []string{"response_body"}},
		{name: "span of Braintrust", has: signs("span_attributes/type=llm output"), request: []string{"metadata"}, answer: []string{"output"}},
		{name: "span of Opik", has: signs("type=llm input output"), request: []string{"input"}, answer: []string{"output"}},
		{name: "event of PostHog", has: signs("properties/$ai_output_choices"), answer: []string{"properties/$ai_output_choices"}},
		{name: "span of MLflow", has: signs(`mlflow.spanOutputs mlflow.spanType="CHAT_MODEL"|mlflow.spanType="LLM"`), request: []string{"mlflow.spanInputs"}, answer: []string{"mlflow.spanOutputs"}},
		{name: "span of MLflow", has: signs("mlflow.spanType")}, // repeats the calls
		{name: "trace of OpenAI Agents", has: signs("object=trace.span span_data/type=generation"), read: messagesAt("span_data/output")},
		{name: "trace of OpenAI Agents", has: signs("object=trace.span|object=trace id")}, // likewise
		{name: "preference data", has: signs("prompt|input preferred_output/0|chosen/0|completion/0"),
			read: messagesAt("preferred_output", "non_preferred_output", "chosen", "rejected", "completion")},
		{name: "tau2 results", has: signs("simulations"), read: recordsAt("simulations")},
		{name: "tau-bench results", has: signs("task_id traj"), read: messagesAt("traj")},
		{name: "Inspect log", has: signs("eval samples"), read: recordsAt("samples")},
		{name: "Inspect sample", has: signs("epoch messages events|target"), read: (*session).sample},
		{name: "ShareGPT", has: signs("conversations"), read: (*session).shareGPT},
		{name: "xLAM", has: signs("answers tools"), read: (*session).xlam},
		{name: "Gemini CLI session", has: signs("messages sessionId projectHash|messages/0/type=gemini|messages/0/type=user projectHash|!messages/0/role"), lines: true, read: messagesAt("messages")},
		{name: "Gemini CLI session", has: signs("type=gemini content"), lines: true, read: (*session).message},
		{name: "Gemini CLI session", has: signs("$set"), lines: true, read: messagesAt("$set/messages")},
		{name: "opencode export", has: signs("info messages/0/parts"), lines: true, read: messagesAt("messages")},
		{name: "output of opencode run --format json", has: signs("sessionID part"), lines: true, read: func(s *session, v rawjson.Value) {
			if part := v.Get("part"); part.Get("type").Str() == "tool" {
				s.single(part)
			}
		}},
		{name: "opencode part", has: signs("type=tool callID tool"), lines: true, read: (*session).item},
		{name: "OpenHands events", has: signs("kind=ActionEvent tool_call"), lines: true, read: func(s *session, v rawjson.Value) {
			s.add(s.turn(text(v.Get("llm_response_id")), ""), v)
		}},
		{name: "OpenHands events", has: signs("source=* action=*|observation=*|kind=*Event"), lines: true, read: (*session).openHands},
		{name: "trajectory", has: signs("history/0/role|history/0/source"), session: true, read: recordsAt("history")},
		{name: "trajectory", has: signs("trajectory_format messages"), session: true, read: messagesAt("messages")},
		{name: "OpenHands trajectory", has: signs("trajectory/0/source"), session: true, read: recordsAt("trajectory")},
		{name: "ATIF trajectory", has: signs("schema_version agent steps"), session: true, read: messagesAt("steps")},
		{name: "Copilot CLI session", has: signs("type=assistant.message data"), lines: true, read: (*session).message},
		{name: "Copilot CLI session", has: signs("type=tool.execution_complete data"), lines: true, read: func(s *session, v rawjson.Value) {
			s.result(v.Get("data"), text(v.Get("data").Get("toolCallId")))
		}},
		{name: "Copilot chat", has: signs("requests/0/result|requests/0/response"), session: true, read: recordsAt("requests")},
		{name: "Copilot chat", has: signs("message result/metadata"), session: true, read: messagesAt("result/metadata/toolCallRounds")},
		{name: "Kimi session", has: signs("type=context.append_loop_event event"), lines: true, read: func(s *session, v rawjson.Value) {
			switch e := v.Get("event"); e.Get("type").Str() {
			case "tool.call":
				s.add(s.turn(text(e.Get("stepUuid")), ""), e)
			case "tool.result":
				s.result(e.Get("result"), text(e.Get("toolCallId")))
			}
		}},
		{name: "Kimi session", has: signs("message/type=ToolCall message/payload"), lines: true, read: func(s *session, v rawjson.Value) {
			s.single(v.Get("message").Get("payload"))
		}},
		{name: "Kimi session", has: signs("message/type=ToolCallPart message/payload"), lines: true, read: func(s *session, v rawjson.Value) {
			if n := len(s.turns); n > 0 {
				s.turns[n-1].rest = append(s.turns[n-1].rest, text(v.Get("message").Get("payload").Get("arguments_part"))...)
			}
		}},
		{name: "Kimi session", has: signs("type=context.append_message"), lines: true}, // repeats the calls
		{name: "pydantic-ai messages", has: signs("kind parts"), read: (*session).message},
		{name: "AutoGen messages", has: signs("type=ToolCallRequestEvent content"), read: (*session).message},
		{name: "OpenAI Evals output", has: signs("sample/output"), read: messagesAt("sample/output")},
		{name: "Google ADK session", has: signs("events/0/author"), read: messagesAt("events")},
		{name: "session of Claude Code, Qwen Code or pi", has: signs("message/role|message/content type=assistant|type=user|type=message|type=message_end"), lines: true, read: (*session).message},
		{name: "Cursor transcript", has: signs("role message/content"), lines: true, read: (*session).message},
		{name: "LangChain messages", has: signs("lc kwargs"), read: (*session).message},
		{name: "LangChain messages", has: signs("data|content data|!role type=ai|type=human|type=AIMessageChunk|type=tool|type=system"), read: (*session).message},
		{name: "LangChain results", has: signs("generations"), read: (*session).answer},
		{name: "LangGraph state", has: signs("values/messages"), read: messagesAt("values/messages")},
		{name: "AI SDK result", has: signs("steps/0/toolCalls|steps/0/content"), read: messagesAt("steps")},
		{name: "message", has: signs("role content|parts|tool_calls !stop_reason"), read: (*session).message},
		{name: "item of OpenAI Responses", is: func(v rawjson.Value) bool { return isItem(v.Get("type").Str()) }, read: (*session).item},
		{name: "list of calls", is: func(v rawjson.Value) bool { return !v.Get("tools").Exists() && isCall(v) }, read: (*session).single},
	}
	for i := range programs {
		f := &programs[i]
		f.across = true
		for _, s := range slices.Concat(f.has...) {
			f.messages = f.messages || strings.HasPrefix(s.in+s.member, "messages")
			f.exchange = f.exchange || s.in == "request"
		}
	}
	forms = append(programs, forms...)
}

// messagesAt returns what reads the messages at some places.
func messagesAt(places ...string) func(*session, rawjson.Value) {
	return func(s *session, v rawjson.Value) {
		for _, place := range places {
			s.messages(find(v, place))
		}
	}
}

// recordsAt returns what reads the records in lists.
func recordsAt(places ...string) func(*session, rawjson.Value) {
	return func(s *session, v rawjson.Value) {
		for _, place := range places {
			s.each(find(v, place))
		}
	}
}

// blocksAt returns what reads calls, messages or a text with calls.
func blocksAt(place string) func(*session, rawjson.Value) {
	return func(s *session, v rawjson.Value) { s.blocks(find(v, place)) }
}

// single reads a call that is a turn of its own.
func (s *session) single(v rawjson.Value) {
	s.open = nil
	s.item(v)
}

// each reads the records in a list.
func (s *session) each(list rawjson.Value) {
	s.lists++
	for v := range list.Each() {
		for _, r := range records(v, maxLists-s.lists) {
			switch {
			case s.lists <= maxLists && s.record(r) || !mayHoldCall(r.Raw()):
			case s.lists > maxLists:
				s.fail(fmt.Errorf("a record that may have calls, in more than %d lists in each other", maxLists))
			default:
				s.fail(errors.New("a record in a list that may have calls, in no form that is read: its members are " + membersOf(r)))
			}
		}
	}
	s.lists--
}

// modelPlaces are where records have the name of the model.
var modelPlaces = []string{
	"model", "gen_ai.request.model", "gen_ai.response.model", "ai.model.id", "llm/model_name", "providedModelName", "provided_model_name", "modelId",
	"extra/invocation_params/model", "extra/metadata/ls_model_name", "inputs/model", "provider/id", "info/agent_info/llm", "eval/model",
	"sample/model", "agent/model_name", "span_data/model", "llm_output/model_name", "properties/$ai_model",
}

// record reads a record of one of the programs' forms, and returns false if it has none. The
// tools and the model of a record are of the records in it, too.
func (s *session) record(v rawjson.Value) bool {
	f := formOf(v)
	if f == nil {
		return false
	}
	s.form, s.local, s.session = f, f.lines, s.session || f.session || f.lines
	if model := textAt(v, modelPlaces); model != "" {
		defer func(before string) { s.model = before }(s.model)
		s.model = model
	}
	if firstAt(v, toolPlaces).Exists() {
		if found := toolsIn.Get(thin(v)); found != nil {
			defer func(before []middleware.Tool) { s.tools = before }(s.tools)
			s.tools = found
		}
	}
	if f.read != nil {
		f.read(s, v)
	} else if len(f.answer) > 0 {
		s.adopt(f.turns(v, nil))
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
		s.calls(s.turn(text(answer.Get("id")), text(answer.Get("model"))), c.Get("message"))
	}
}

// run reads a run of LangSmith. Only the runs of models count, or the root where it is alone.
// The end of a run may be a record of its own.
func (s *session) run(v rawjson.Value) {
	id := text(v.Get("id"))
	if firstAt(v, toolPlaces).Exists() {
		s.runTools[id] = s.tools
	} else if found := s.runTools[id]; found != nil {
		defer func(before []middleware.Tool) { s.tools = before }(s.tools)
		s.tools = found
	}
	if kind := text(v.Get("run_type")); kind != "" {
		s.runTypes[id] = kind
	}
	if s.runTypes[id] == "llm" {
		s.answer(find(v, "outputs"))
	} else if !find(v, "parent_run_id").Exists() {
		root := newSession(s.file, map[callKey]bool{})
		root.messages(find(v, "inputs/messages"))
		root.turns, root.line, root.tools = nil, s.line, s.tools // the outputs repeat the inputs
		root.messages(find(v, "outputs/messages"))
		s.late = append(s.late, root.turns...)
	}
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
	s.message(v)
}

// openInference reads a span. Its own kind says whether it is of a model.
func (s *session) openInference(v rawjson.Value) {
	if kind := firstAt(v, []string{"openinference.span.kind", "openinference/span/kind"}); kind.Exists() && kind.Str() != "LLM" {
		return
	}
	if list := find(v, "llm/output_messages"); list.Exists() {
		s.messages(list)
	} else if answer := find(v, "output.value"); answer.Kind() == rawjson.Object {
		s.answer(answer)
	}
}

// dotted are the begins of the names of attributes that are a part of a message or a tool.
var dotted = []string{"llm.output_messages", "llm.tools", "llm.model_name", "llm.request.functions", "llm.completions", "gen_ai.completion."}

// undotted returns a record in which the attributes of messages and tools are objects and
// lists. A dot in a name is a step, and an object whose names are numbers is a list.
func undotted(v rawjson.Value) rawjson.Value {
	if raw := v.Raw(); !strings.Contains(raw, "llm") && !strings.Contains(raw, "gen_ai.completion.") {
		return v
	}
	isDotted := func(key string) bool {
		return key == "llm" || slices.ContainsFunc(dotted, func(begin string) bool { return strings.HasPrefix(key, begin) })
	}
	any := false
	for m := range v.Each() {
		any = any || isDotted(strings.TrimPrefix(m.Key(), "attributes."))
	}
	if !any { // the names are in a list below, which is not copied here
		return v
	}
	var tree node
	rest := []byte("{")
	for m := range v.Each() {
		key := strings.TrimPrefix(m.Key(), "attributes.")
		switch {
		case isDotted(key) && strings.Count(key, ".") <= maxDots:
			tree.put(key, m, 0)
		case !strings.HasPrefix(key, "llm.input_messages.") && !strings.HasPrefix(key, "gen_ai.prompt."): // history
			rest = fmt.Appendf(rest, "%s:%s,", rawjson.Quote(key), m.Raw())
		}
	}
	if in, ok := jsonIn(string(rest) + string(bytes.TrimPrefix(tree.append(nil), []byte("{")))); ok && tree.in != nil {
		return in
	}
	return v
}

// maxDots is how deep names with dots, and objects with such names, are read.
const maxDots = 64

// node is a value with its members. It has none if raw is its JSON.
type node struct {
	raw string
	in  map[string]*node
}

// put puts a value at a name with dots. Arguments and schemas stay as they are.
func (n *node) put(key string, v rawjson.Value, depth int) {
	name, rest, more := strings.Cut(key, ".")
	if n.in == nil {
		n.raw, n.in = "", map[string]*node{}
	}
	at := n.in[name]
	if at == nil {
		at = &node{}
		n.in[name] = at
	}
	verbatim := v.Empty() || depth > maxDots || slices.Contains([]string{"arguments", "input", "args", "json_schema", "parameters", "input_schema"}, name)
	switch kind := v.Kind(); {
	case more:
		at.put(rest, v, depth+1)
	case verbatim || kind != rawjson.Object && kind != rawjson.Array:
		at.raw = v.Raw()
	default:
		i := 0
		for m := range v.Each() {
			name := m.Key()
			if kind == rawjson.Array {
				name = strconv.Itoa(i)
			}
			at.put(name, m, depth+1)
			i++
		}
	}
}

// append appends the JSON of a node.
func (n *node) append(b []byte) []byte {
	if n.in == nil {
		return append(b, n.raw...)
	}
	keys := slices.SortedFunc(maps.Keys(n.in), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) // 2 before 10
	})
	ends := "{}"
	if !slices.ContainsFunc(keys, func(key string) bool { _, err := strconv.Atoi(key); return err != nil }) {
		ends = "[]"
	}
	b = append(b, ends[0])
	for i, key := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		if ends == "{}" {
			b = append(append(b, rawjson.Quote(key)...), ':')
		}
		b = n.in[key].append(b)
	}
	return append(b, ends[1])
}

// sample reads a sample of Inspect. Its messages and its events have the same calls.
func (s *session) sample(v rawjson.Value) {
	seen, before, events := s.seen, s.tools, v.Get("events")
	s.seen, s.texts, s.local = map[callKey]bool{}, v.Get("attachments"), true
	var found []middleware.Tool
	for e := range events.Each() {
		found = withTools(found, tools(e.Get("tools"))...)
	}
	if len(found) > 0 {
		s.tools = found
	}
	s.messages(v.Get("messages"))
	repeats := s.repeats
	for e := range events.Each() {
		if e.Get("event").Str() == "model" {
			s.answer(e.Get("output"))
		}
	}
	s.seen, s.tools, s.texts, s.repeats = seen, before, rawjson.Value{}, repeats
}

// shareGPT reads a conversation of a data set.
func (s *session) shareGPT(v rawjson.Value) {
	defer func(before []middleware.Tool) { s.tools = before }(s.tools)
	for m := range v.Get("conversations").Each() {
		switch role, said := firstText(m, "from", "role"), firstText(m, "value", "content"); {
		case role == "system" && s.tools == nil:
			if list, _, ok := strings.Cut(afterText(said, "<tools>"), "</tools>"); ok {
				list = strings.ReplaceAll(strings.TrimSpace(list), "}\n{", "},{")
				if !strings.HasPrefix(list, "[") {
					list = "[" + list + "]"
				}
				s.tools = toolsOf(list)
			}
		case role != "system":
			if slices.Contains(roles, role) {
				s.marked(s.turn("", ""), said)
			}
			s.message(m)
		}
	}
}

// xlamTypes are the types of JSON Schema for the types of Python in xLAM's tools.
var xlamTypes = map[string]string{"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "List": "array", "dict": "object", "Dict": "object"}

// xlam reads a row. The parameters of its tools are properties, with types of Python.
func (s *session) xlam(v rawjson.Value) {
	defer func(before []middleware.Tool) { s.tools = before }(s.tools)
	s.tools = nil
	for t := range find(v, "tools").Each() {
		parameters := t.Get("parameters")
		tool := middleware.Tool{Name: text(t.Get("name")), Description: text(t.Get("description")), Parameters: []byte(text(parameters))}
		var properties []string
		sure := true
		for p := range parameters.Each() {
			base, _, _ := strings.Cut(text(p.Get("type")), ",")
			base, _, _ = strings.Cut(base, "[")
			kind := xlamTypes[strings.TrimSpace(base)]
			if kind != "" {
				kind = `"type":"` + kind + `"`
			}
			properties, sure = append(properties, rawjson.Quote(p.Key())+":{"+kind+"}"), sure && p.Kind() == rawjson.Object
		}
		if sure {
			tool.Parameters = []byte(`{"type":"object","properties":{` + strings.Join(properties, ",") + `},"additionalProperties":false}`)
		}
		s.tools = append(s.tools, tool)
	}
	s.blocks(v.Get("answers"))
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

// mcp reads the messages of MCP in a record.
func (s *session) mcp(v rawjson.Value) {
	for _, m := range mcpIn(v) {
		id := text(m.Get("id"))
		if m.Get("method").Str() == "tools/call" {
			t := s.turn("", "")
			s.add(t, m.Get("params"))
			if n := len(t.Calls); n > 0 {
				t.Calls[n-1].ID = id
			}
			continue
		}
		r := m.Get("result")
		s.tools = append(s.tools, tools(r.Get("tools"))...)
		if r.Get("isError").Raw() == "true" || m.Get("error").Exists() {
			s.became(id, OutcomeError)
		}
	}
}

// http reads an exchange of HTTP as HAR and cassettes have it. Requests that no model
// provider answers are passed over, and so are those of a HAR without an answer.
func (s *session) http(v rawjson.Value) {
	path := text(firstAt(v, []string{"request/url", "request/uri"}))
	if after := afterText(path, "://"); after != "" {
		_, path, _ = strings.Cut(after, "/")
		path = "/" + path
	}
	body := func(places ...string) string {
		for _, place := range places {
			at := placeAt(v, place)
			if isBody := strings.HasSuffix(place, "body"); at.Kind() == rawjson.String || isBody && (at.Kind() == rawjson.Object || at.Kind() == rawjson.Array) {
				return text(at)
			}
		}
		return ""
	}
	request := body("request/postData/text", "request/body/string", "request/body/text", "request/body", "request/content")
	response := body("response/content/text", "response/body/string", "response/body/text", "response/body", "response/content", "response/text", "response")
	if answer := v.Get("response"); response == "" && bareAnswer(answer) {
		response = text(answer)
	}
	encoding := firstAt(v, []string{"response/content/encoding", "response/body/encoding"}).Str()
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
	status := text(firstAt(v, []string{"response/status/code", "response/status", "response/status_code"}))
	in, _ = jsonIn(fmt.Sprintf(`{"path":%s,"status":%s,"request":%s,"response":%s}`, rawjson.Quote(path), rawjson.Quote(status), rawjson.Quote(request), rawjson.Quote(response)))
	turns, err := exchange.turns(in, nil)
	if !ours && !mayHoldCall(request) && !mayHoldCall(response) {
		err = nil
	}
	s.adopt(turns, err)
}
