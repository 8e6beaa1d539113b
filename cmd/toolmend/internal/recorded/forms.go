package recorded

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// form is a form of a record: where its request and its answer are. A place is the names
// of members with / between them, and "" is the record itself. A string on the way may
// hold JSON.
type form struct {
	has     []string // places that each record of the form has, and with = their text
	request []string // the first that is there has the tools; else the record, else Toolsets
	answer  []string // the first that is there is the answer: a response, a message, or messages
	id      string   // of the request, in the input of a batch
	whole   bool     // the request is all that the model received: without tools in it there were none
	history bool     // the answer is a conversation, and each message of the model in it is a turn
}

// forms are the forms, in the order in which they are tried. Recorded turns, which have
// their calls at the top, are not among them.
var forms = []form{
	// What recorders of HTTP write. Vertex AI's batch prediction has the same members.
	{has: []string{"request"}, request: []string{"request/body", "request"}, answer: []string{"response/body", "response"}, whole: true},
	// Anthropic, platform.claude.com/docs/en/api/retrieving-message-batch-results.
	{has: []string{"custom_id", "result"}, answer: []string{"result/message"}, id: "custom_id"},
	// OpenAI, platform.openai.com/docs/api-reference/batch/request-output.
	{has: []string{"custom_id", "response"}, answer: []string{"response/body"}, id: "custom_id"},
	// Gemini, ai.google.dev/gemini-api/docs/batch-api.
	{has: []string{"key", "response"}, answer: []string{"response"}, id: "key"},
	// LiteLLM: StandardLoggingPayload (docs.litellm.ai/docs/proxy/logging_spec), and rows of
	// LiteLLM_SpendLogs with store_prompts_in_spend_logs (docs.litellm.ai/docs/proxy/ui_logs).
	{has: []string{"proxy_server_request", "response"}, request: []string{"proxy_server_request/body", "proxy_server_request"}, answer: []string{"response"}},
	{has: []string{"model_parameters", "response"}, request: []string{"model_parameters"}, answer: []string{"response"}},
	// Langfuse: observations of its API and exports
	// (langfuse.com/docs/api-and-data-platform/features/blob-storage-export-fields), with the
	// input and output that langfuse/openai.py writes.
	{has: []string{"type=GENERATION", "output"}, request: []string{"input"}, answer: []string{"output"}},
	// OpenTelemetry: the attributes of a span or an event by the semantic conventions
	// (docs/gen-ai/gen-ai-output-messages.json of open-telemetry/semantic-conventions).
	{has: []string{"gen_ai.output.messages"}, answer: []string{"gen_ai.output.messages"}},
	{has: []string{"response"}, answer: []string{"response/body", "response"}},
	// Conversations: requests of OpenAI Chat, Anthropic and Ollama and the lines of OpenAI's
	// fine-tuning (platform.openai.com/docs/api-reference/fine-tuning/chat-input), of Gemini,
	// and of OpenAI Responses.
	{has: []string{"messages"}, answer: []string{"messages"}, history: true},
	{has: []string{"contents"}, answer: []string{"contents"}, history: true},
	{has: []string{"input", "tools"}, answer: []string{"input"}, history: true},
}

// bare is the form of a response alone.
var bare = form{answer: []string{""}}

// Forms describes what Line.Turns reads, for messages.
const Forms = "recorded turns, exchanges {request, response}, conversations {messages or contents or input, tools}, responses with -tools FILE, " +
	"batch output with its input as -tools FILE, logs of LiteLLM, and exports of Langfuse and OpenTelemetry"

var errNoTools = errors.New("the tools that the model had are not known: name a file that has them with -tools")

// formOf returns the form of a record; nil if it has none of forms.
func formOf(v rawjson.Value) *form {
	for i := range forms {
		if !slices.ContainsFunc(forms[i].has, func(place string) bool {
			place, text, _ := strings.Cut(place, "=")
			at := find(v, place)
			return !at.Exists() || text != "" && at.Str() != text
		}) {
			return &forms[i]
		}
	}
	return nil
}

// records returns the records in a line: the line, or what it has in lists, as pages of an
// API and exports of traces do.
func records(v rawjson.Value) (out []rawjson.Value) {
	if attributes := v.Get("attributes"); attributes.Exists() {
		if doc, err := rawjson.Parse(string(appendAny(nil, attributes)), lineLimits); err == nil {
			v = doc.Root()
		}
	}
	if formOf(v) == nil {
		for _, key := range []string{"resourceSpans", "scopeSpans", "spans", "resourceLogs", "scopeLogs", "logRecords", "observations", "data"} {
			for e := range v.Get(key).Each() {
				out = append(out, records(e)...)
			}
		}
	}
	if out == nil {
		out = append(out, v)
	}
	return out
}

// appendAny appends the JSON that a value of OTLP stands for: an AnyValue or a list of
// attributes (opentelemetry.io/docs/specs/otlp, JSON Protobuf Encoding). Any other JSON
// is appended as it is.
func appendAny(b []byte, v rawjson.Value) []byte {
	open, end, list := byte('{'), byte('}'), v
	if v.Kind() == rawjson.Object {
		switch {
		case v.Get("intValue").Exists():
			return append(b, text(v.Get("intValue"))...)
		case v.Get("arrayValue").Exists():
			open, end, list = '[', ']', v.Get("arrayValue").Get("values")
		case v.Get("kvlistValue").Exists():
			list = v.Get("kvlistValue").Get("values")
		default:
			for _, key := range []string{"stringValue", "boolValue", "doubleValue", "bytesValue"} {
				if scalar := v.Get(key); scalar.Exists() {
					return append(b, scalar.Raw()...)
				}
			}
			return append(b, v.Raw()...)
		}
	}
	b = append(b, open)
	n := 0
	for e := range list.Each() {
		if n++; n > 1 {
			b = append(b, ',')
		}
		if open == '{' {
			b = append(append(b, rawjson.Quote(e.Get("key").Str())...), ':')
			e = e.Get("value")
		}
		if !e.Exists() || e.Kind() == rawjson.Object && e.Empty() {
			b = append(b, "null"...) // an AnyValue without a value
			continue
		}
		b = appendAny(b, e)
	}
	return append(b, end)
}

// turns returns a turn for each answer with calls in a record.
func (f *form) turns(v rawjson.Value, sets *Toolsets) ([]Turn, error) {
	answer, req := firstAt(v, f.answer), firstAt(v, f.request)
	if err := f.unanswered(v, answer); err != nil {
		return nil, err
	}
	if f.whole {
		sets = nil
	}
	var turns []Turn
	err := errFormat
	if !f.history {
		turns, err = f.response(v, req, answer, sets)
	}
	if errors.Is(err, errFormat) || len(turns) == 0 && err == nil {
		found, failed := conversation(answer)
		switch {
		case len(found) > 0:
			turns, err = found, nil
		case f.history:
			err = failed
		case answer.Kind() == rawjson.String && !f.whole, answer.Kind() == rawjson.Array, answer.Get("role").Exists():
			err = nil // an answer of text
		}
	}
	if err != nil {
		return nil, err
	}
	for i := range turns {
		t := &turns[i]
		if t.Tools == nil {
			t.Tools = sets.known(req, v, text(v.Get(f.id)))
		}
		if t.Tools == nil && !f.whole {
			return nil, errNoTools
		}
		t.Source = text(v.Get("source"))
		t.Model = cmp.Or(firstText(v, "model", "gen_ai.request.model", "providedModelName", "provided_model_name"), t.Model, text(req.Get("model")))
		t.ID = firstText(v, "id", "custom_id", "key", "request_id")
	}
	return turns, nil
}

// unanswered returns why a record has no answer, or nil.
func (f *form) unanswered(v, answer rawjson.Value) error {
	status, err := strconv.Atoi(cmp.Or(text(v.Get("status")), text(find(v, "response/status_code"))))
	switch {
	case err == nil && status >= 400, v.Get("status").Str() == "failure":
		return SkippedFailure
	case f.whole && !answer.Exists():
		return errors.New("a request without a response")
	case !answer.Exists():
		return SkippedFailure
	}
	return nil
}

// response returns a turn for each choice with calls of a whole response.
func (f *form) response(v, req, answer rawjson.Value, sets *Toolsets) ([]Turn, error) {
	body := bodyOf(answer)
	if len(bytes.TrimSpace(body)) == 0 && f.whole {
		return nil, errors.New("a request without a response")
	}
	c, err := codecOf(text(v.Get("path")), bodyOf(req), body)
	if err != nil {
		return nil, err
	}
	var asked *middleware.Request
	if f.whole {
		if asked, err = request(c, bodyOf(req)); err != nil {
			return nil, fmt.Errorf("request: %w", err)
		}
		for i := range asked.Tools {
			asked.Tools[i].Native = nil
		}
	} else {
		asked = &middleware.Request{Tools: sets.known(req, v, text(v.Get(f.id)))}
	}
	resp, err := decode(c, asked, body)
	if err != nil {
		return nil, err
	}
	var turns []Turn
	for i, m := range append([]middleware.Message{resp.Message}, resp.Choices...) {
		if len(m.ToolCalls) == 0 {
			continue
		}
		t := Turn{Model: cmp.Or(asked.Model, resp.Model), Tools: asked.Tools, Calls: asLogged(m.ToolCalls)}
		t.Limits = onlyLimits(*asked)
		if slices.ContainsFunc(t.Calls, func(c middleware.ToolCall) bool {
			return !slices.ContainsFunc(t.Tools, func(tool middleware.Tool) bool { return tool.Name == c.Name })
		}) {
			t.Messages = asked.Messages
		}
		if i == 0 {
			t.Finish = resp.FinishReason // a further choice has none
		}
		turns = append(turns, t)
	}
	return turns, nil
}

// conversation returns a turn for each message with calls, in whichever format they are.
func conversation(list rawjson.Value) (turns []Turn, err error) {
	raw, holds := list.Raw(), holdsCall(list)
	if list.Kind() == rawjson.Object {
		raw = "[" + raw + "]"
	}
	for m := range list.Each() {
		t := Turn{Finish: middleware.FinishReason(m.Get("finish_reason").Str())}
		if t.Finish == "tool_call" { // the word of OpenTelemetry
			t.Finish = middleware.FinishToolCalls
		}
		for part := range m.Get("parts").Each() {
			if part.Get("type").Str() == "tool_call" { // OpenTelemetry's own form of a call
				t.Calls = append(t.Calls, toolCall(part))
			}
		}
		if len(t.Calls) > 0 {
			turns = append(turns, t)
		}
		holds = holds || holdsCall(m)
	}
	if !holds {
		return turns, nil
	}
	for _, c := range codecs {
		req, failed := c.DecodeRequest(fmt.Appendf(nil, `{%q:%s}`, cmp.Or(historyKeys[c.Dialect()], "messages"), raw))
		if failed != nil {
			err = cmp.Or(err, failed)
			continue
		}
		for _, m := range req.Messages {
			if len(m.ToolCalls) > 0 {
				turns = append(turns, Turn{Calls: asLogged(m.ToolCalls)})
			}
		}
		if len(turns) > 0 {
			return turns, nil
		}
	}
	return nil, err
}

// historyKeys are the members of requests that hold the conversation, by dialect, where it
// is not "messages".
var historyKeys = map[string]string{wire.OpenAIResponses().Dialect(): "input", wire.Gemini().Dialect(): "contents"}

// holdsCall reports whether a message has a call in the form of a provider.
func holdsCall(m rawjson.Value) bool {
	kind, calls := m.Get("type").Str(), m.Get("tool_calls")
	holds := calls.Exists() && !calls.Empty() || m.Get("function_call").Kind() == rawjson.Object || kind == "function_call" || kind == "custom_tool_call"
	for block := range m.Get("content").Each() {
		holds = holds || block.Get("type").Str() == "tool_use"
	}
	for part := range m.Get("parts").Each() {
		holds = holds || firstAt(part, []string{"functionCall", "function_call"}).Exists()
	}
	return holds
}

// toolsIn are the tools of requests that thin returns, by the first format in which most
// of them can be used.
var toolsIn = schema.NewCache(64<<20, func(body []byte) ([]middleware.Tool, int) {
	var best []middleware.Tool
	most := 0
	consider := func(tools []middleware.Tool) {
		usable := 0
		for i := range tools {
			tools[i].Native = nil
			if tools[i].Kind == middleware.KindFunction && tools[i].Name != "" {
				usable++
				if len(tools[i].Parameters) > 0 {
					usable++
				}
			}
		}
		if usable > most {
			best, most = tools, usable
		}
	}
	for _, c := range codecs {
		if req, err := c.DecodeRequest(body); err == nil {
			consider(req.Tools)
		}
	}
	if doc, err := rawjson.Parse(string(body), lineLimits); err == nil {
		consider(tools(doc.Root().Get("tools")))
	}
	return best, 8*len(body) + 1024
})

// thin returns the request of a record with nothing in it but what says how an answer is
// read: recorders leave the rest out.
func thin(v rawjson.Value) []byte {
	out := []byte(`{"messages":[],"input":[],"contents":[]`)
	for _, key := range []string{"model", "tools", "functions", "n", "generationConfig", "tool_choice", "parallel_tool_calls", "toolConfig", "gen_ai.tool.definitions"} {
		if m := find(v, key); m.Exists() {
			out = fmt.Appendf(out, ",%q:%s", strings.Replace(key, "gen_ai.tool.definitions", "tools", 1), m.Raw())
		}
	}
	return append(out, '}')
}

// find returns the value at a place; absent if it is missing or null.
func find(v rawjson.Value, place string) rawjson.Value {
	for place != "" {
		key, rest, _ := strings.Cut(place, "/")
		v, place = v.Get(key), rest
		if s := strings.TrimSpace(v.Str()); strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
			if doc, err := rawjson.Parse(s, lineLimits); err == nil {
				v = doc.Root()
			}
		}
	}
	if v.Kind() == rawjson.Null {
		return rawjson.Value{}
	}
	return v
}

// firstAt returns the value at the first place that is there.
func firstAt(v rawjson.Value, places []string) rawjson.Value {
	for _, place := range places {
		if at := find(v, place); at.Exists() {
			return at
		}
	}
	return rawjson.Value{}
}

// firstText returns the text of the first of some members that has one.
func firstText(v rawjson.Value, keys ...string) string {
	for _, key := range keys {
		if s := text(v.Get(key)); s != "" {
			return s
		}
	}
	return ""
}

// bodyOf returns a body that is JSON or, in a string, JSON or a stream of events.
func bodyOf(v rawjson.Value) []byte {
	if v.Kind() == rawjson.String {
		return []byte(v.Str())
	}
	return []byte(v.Raw())
}
