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
	display "github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// form is a form of a record: where its request and its answer are. A place is the names
// of members with / between them, and "" is the record itself. 0 is the first element of a
// list. A string on the way may hold JSON.
type form struct {
	name     string                        // for messages
	has      [][]sign                      // of each, a record of the form has one
	is       func(rawjson.Value) bool      // another sign; nil: has is enough
	read     func(*session, rawjson.Value) // reads a record; nil: the places below say what to read
	across   bool                          // records of a file belong together
	messages bool                          // messages are a sign
	exchange bool                          // members of the request are a sign
	session  bool                          // of an agent that worked for a person
	lines    bool                          // of one such session in a file: a message may be in several, and a call counts once
	request  []string                      // the first that is there has the tools; else the record, else Toolsets
	answer   []string                      // the first that is there is the answer: a response, a message, or messages
	id       string                        // of the request, in the input of a batch
	whole    bool                          // the request is all that the model received: without tools in it there were none
	history  bool                          // the answer is a conversation, and each message of the model in it is a turn
}

// sign is something that a record has, or does not have.
type sign struct {
	in, member string // the place of an object, and the name of its member
	text       string // what is there, where * is any text; "": anything
	not        bool
}

// signs returns the signs in a text: "a b/c=x|!d" is a member a, and either a member c of b
// with the text x or no member d.
func signs(all string) (out [][]sign) {
	for one := range strings.FieldsSeq(all) {
		var any []sign
		for s := range strings.SplitSeq(one, "|") {
			place, text, _ := strings.Cut(s, "=")
			place, not := strings.CutPrefix(place, "!")
			last := strings.LastIndex(place, "/")
			any = append(any, sign{place[:max(last, 0)], place[last+1:], text, not})
		}
		out = append(out, any)
	}
	return out
}

// on reports whether a record has the sign.
func (s sign) on(v rawjson.Value) bool {
	if s.in != "" {
		v = find(v, s.in)
	}
	at := enter(v, s.member)
	if s.text == "" {
		return (at.Exists() && at.Kind() != rawjson.Null) != s.not
	}
	return at.Kind() == rawjson.String && display.Match(s.text, at.Str())
}

// forms are the forms, in the order in which they are tried: behind the ones of programs,
// which programs.go puts in front. Recorded turns, which have their calls at the top, are not
// among them.
var forms = []form{
	exchange,
	// Anthropic, platform.claude.com/docs/en/api/retrieving-message-batch-results.
	{name: "batch output of Anthropic", has: signs("custom_id result"), answer: []string{"result/message"}, id: "custom_id"},
	// OpenAI, platform.openai.com/docs/api-reference/batch/request-output.
	{name: "batch output of OpenAI", has: signs("custom_id response"), answer: []string{"response/body"}, id: "custom_id"},
	// Gemini, ai.google.dev/gemini-api/docs/batch-api.
	{name: "batch output of Gemini", has: signs("key response"), answer: []string{"response"}, id: "key"},
	// LiteLLM: StandardLoggingPayload (docs.litellm.ai/docs/proxy/logging_spec), and rows of
	// LiteLLM_SpendLogs with store_prompts_in_spend_logs (docs.litellm.ai/docs/proxy/ui_logs).
	{name: "log of LiteLLM", has: signs("proxy_server_request response"), request: []string{"proxy_server_request/body", "proxy_server_request"}, answer: []string{"response"}},
	{name: "log of LiteLLM", has: signs("model_parameters response"), request: []string{"model_parameters"}, answer: []string{"response"}},
	{name: "response", has: signs("response"), answer: []string{"response/body", "response"}},
	// Conversations: requests of OpenAI Chat, Anthropic and Ollama and the lines of OpenAI's
	// fine-tuning (platform.openai.com/docs/api-reference/fine-tuning/chat-input), of Gemini,
	// and of OpenAI Responses.
	{name: "conversation", has: signs("messages"), answer: []string{"messages"}, history: true},
	{name: "conversation of Gemini", has: signs("contents"), answer: []string{"contents"}, history: true},
	{name: "conversation of OpenAI Responses", has: signs("input tools"), answer: []string{"input"}, history: true},
}

// exchange is what recorders of HTTP write. Vertex AI's batch prediction has the same members.
var exchange = form{
	name: "exchange", has: signs("request"), request: []string{"request/body", "request"}, answer: []string{"response/body", "response"}, whole: true,
}

// bare is the form of a response alone.
var bare = form{answer: []string{""}}

// formOf returns the form of a record; nil if it has none. A record with
// messages is a conversation, unless a form is known by its messages: other members prove less.
// In the same way a record with the request of a model and a response is an exchange.
func formOf(v rawjson.Value) *form {
	hasMessages := enter(v.Get("messages"), "0").Kind() == rawjson.Object
	isExchange := false
	if (sign{member: "response"}).on(v) {
		req := find(v, "request")
		isExchange = firstAt(firstAt(req, []string{"body", ""}), []string{"messages", "contents", "input"}).Exists()
	}
	for i := range forms {
		f := &forms[i]
		if f.across && (hasMessages && !f.messages || isExchange && !f.exchange) {
			continue
		}
		if f.fits(v) {
			return f
		}
	}
	return nil
}

// fits reports whether a record has the signs of a form.
func (f *form) fits(v rawjson.Value) bool {
	for _, any := range f.has {
		if !slices.ContainsFunc(any, func(s sign) bool { return s.on(v) }) {
			return false
		}
	}
	return f.is == nil || f.is(v)
}

// nearest returns the name of the form that a record of no form has most signs of; "" if
// it has none of any. That a member is absent does not count.
func nearest(v rawjson.Value) (name string) {
	best := 0.0
	for _, f := range forms {
		n := 0
		for _, any := range f.has {
			if slices.ContainsFunc(any, func(s sign) bool { return !s.not && s.on(v) }) {
				n++
			}
		}
		if share := float64(n) / float64(max(len(f.has), 1)); share > best {
			best, name = share, f.name
		}
	}
	return name
}

// records returns the records in a line: the line, or what it has in lists, as pages of an
// API and exports of traces do. Below that many lists in each other it looks for no more.
func records(v rawjson.Value, lists int) (out []rawjson.Value) {
	if attributes := v.Get("attributes"); attributes.Exists() {
		if in, ok := jsonIn(string(appendAny(nil, attributes))); ok {
			v = in
		}
	}
	v = undotted(v)
	if lists > 0 && formOf(v) == nil {
		for _, key := range []string{"resourceSpans", "scopeSpans", "spans", "resourceLogs", "scopeLogs", "logRecords", "observations", "data", "data/spans", "runs", "interactions"} {
			if list := placeAt(v, key); list.Kind() == rawjson.Array {
				for e := range list.Each() {
					out = append(out, records(e, lists-1)...)
				}
			}
		}
	}
	if out == nil {
		out = append(out, v)
	}
	return out
}

// maxLists is how many lists in each other are read. Exports have four, and the trees of
// LangSmith a few more. Each may copy what is in it.
const maxLists = 32

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
	if (f != &bare || !v.Get("type").Exists()) && errors.Is(err, errFormat) || len(turns) == 0 && err == nil {
		found, failed := conversation(answer)
		switch {
		case len(found) > 0 || failed != nil:
			turns, err = found, failed
		case f.history, answer.Kind() == rawjson.String && !f.whole, answer.Kind() == rawjson.Array, answer.Get("role").Exists():
			err = nil // an answer of text
		}
	}
	for i := range turns {
		t := &turns[i]
		if t.Tools == nil {
			t.Tools = sets.known(req, v, text(v.Get(f.id)))
		}
		t.NoTools = t.Tools == nil && !f.whole
		t.Source = text(v.Get("source"))
		t.Model = cmp.Or(textAt(v, modelPlaces), t.Model, text(req.Get("model")))
		t.ID = firstText(v, "id", "custom_id", "key", "request_id")
	}
	return turns, err
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
		t := Turn{
			Model: cmp.Or(asked.Model, resp.Model), Tools: asked.Tools, Limits: onlyLimits(*asked),
			Calls: asLogged(m.ToolCalls), Outcomes: make([]Outcome, len(m.ToolCalls)),
		}
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

// conversation returns a turn for each message with calls, in whichever form they are.
func conversation(list rawjson.Value) ([]Turn, error) {
	s := newSession("", nil)
	if list.Kind() == rawjson.String || hasCall(list) {
		s.blocks(list)
	} else {
		s.messages(list)
	}
	var e *Error
	if len(s.errs) > 0 && errors.As(s.errs[0], &e) {
		return s.take(), e.Err
	}
	return s.take(), nil
}

// hasCall reports whether a list begins with a call that no message is around.
func hasCall(list rawjson.Value) bool {
	v := enter(list, "0")
	return !v.Get("role").Exists() && !isItem(v.Get("type").Str()) && isCall(v)
}

// toolsIn are the tools of requests that thin returns, by the first format in which most
// of them can be used.
var toolsIn = schema.NewCache(64<<20, func(body []byte) ([]middleware.Tool, int) {
	var candidates [][]middleware.Tool
	for _, c := range codecs {
		if req, err := c.DecodeRequest(body); err == nil {
			candidates = append(candidates, req.Tools)
		}
	}
	if in, ok := jsonIn(string(body)); ok {
		candidates = append(candidates, tools(in.Get("tools")))
	}
	var best []middleware.Tool
	most := 0
	for _, tools := range candidates {
		usable := 0
		for i, t := range tools {
			tools[i].Native = nil
			if t.Kind == middleware.KindFunction && t.Name != "" {
				usable += 1 + min(1, len(t.Parameters))
			}
		}
		if usable > most {
			best, most = tools, usable
		}
	}
	return best, 8*len(body) + 1024
})

// toolsOf returns the tools in the JSON of a list.
func toolsOf(list string) []middleware.Tool {
	return toolsIn.Get([]byte(`{"messages":[],"input":[],"contents":[],"tools":` + list + `}`))
}

// toolPlaces are where records have the tools of the model: requests, Bedrock's too,
// OpenTelemetry, OpenInference, OpenLLMetry, the AI SDK, LangSmith, Google ADK, tau2,
// promptfoo, and the logs of other platforms.
var toolPlaces = []string{
	"tools", "toolConfig/tools", "gen_ai.tool.definitions", "llm/tools", "llm/request/functions", "ai.prompt.tools",
	"extra/invocation_params/tools", "extra/invocation_params/functions", "inputs/tools", "config/tools",
	"input/tools", "info/environment_info/tool_defs", "environment_info/tool_defs", "metadata/ai.prompt.tools", "metadata/attributes/ai.prompt.tools",
	"tool_definitions", "properties/$ai_tools",
}

// thin returns the request of a record with nothing in it but what says how an answer is
// read: recorders leave the rest out.
func thin(v rawjson.Value) []byte {
	out := []byte(`{"messages":[],"input":[],"contents":[]`)
	for _, key := range []string{"model", "functions", "n", "generationConfig", "tool_choice", "parallel_tool_calls", "toolConfig"} {
		if m := find(v, key); m.Exists() {
			out = fmt.Appendf(out, ",%q:%s", key, m.Raw())
		}
	}
	if m := firstAt(v, toolPlaces); m.Exists() {
		out = fmt.Appendf(out, `,"tools":%s`, m.Raw())
	}
	var shown []string
	for m := range v.Each() { // Langfuse's handler for LangChain puts the tools among the messages
		if t := m.Get("content"); v.Kind() == rawjson.Array && m.Get("role").Str() == "tool" && t.Get("type").Str() == "function" {
			shown = append(shown, t.Raw())
		}
	}
	if len(shown) > 0 {
		out = fmt.Appendf(out, `,"tools":[%s]`, strings.Join(shown, ","))
	}
	return append(out, '}')
}

// find returns the value at a place; absent if it is missing or null.
func find(v rawjson.Value, place string) rawjson.Value {
	for place != "" {
		key, rest, _ := strings.Cut(place, "/")
		v, place = decoded(enter(v, key)), rest
	}
	if v.Kind() == rawjson.Null {
		return rawjson.Value{}
	}
	return v
}

// enter returns a member of an object, or the first element of a list.
func enter(v rawjson.Value, key string) rawjson.Value { return v.At("/" + key) }

// decoded returns a value, or the JSON in a text.
func decoded(v rawjson.Value) rawjson.Value {
	for v.Kind() == rawjson.String {
		s := strings.TrimSpace(v.Str())
		if s == "" || !strings.Contains(`{["`, s[:1]) {
			break
		}
		in, ok := jsonIn(s)
		if !ok {
			break
		}
		v = in
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

// textAt returns the string at the first place that is there. It does not keep the record in
// memory.
func textAt(v rawjson.Value, places []string) string { return strings.Clone(firstAt(v, places).Str()) }

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
