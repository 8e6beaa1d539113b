package recorded

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// session collects the turns of records that belong together: of the messages of a
// conversation, or of the lines of a file.
type session struct {
	line     int // of the record that is read
	lists    int // that this record is in
	file     string
	form     *form            // of the record that is read
	seen     map[callKey]bool // calls of all files of a command; nil: a repeat counts
	local    bool             // a call counts once in the file, whatever its id looks like
	turns    []*Turn
	late     []*Turn // of their calls those count that no other turn has
	byKey    map[string]*Turn
	byID     map[string]place // of the last call with each id
	open     *Turn            // gets calls that no message holds together
	tools    []middleware.Tool
	runTools map[string][]middleware.Tool // of requests that come before their answers, by id
	runTypes map[string]string
	model    string
	outcomes map[string]Outcome
	added    int // calls, repeats and all, and answers that were read in another way
	repeats  int
	errs     []error // of records that could not be read
	texts    rawjson.Value
	partly   bool // tools are some of those that the model had
	session  bool // of an agent that worked for a person
}

// place is where a call is.
type place struct {
	turn *Turn
	call int
}

func newSession(file string, seen map[callKey]bool) *session {
	return &session{file: file, seen: seen, session: filepath.Base(file) == "api_conversation_history.json", byKey: map[string]*Turn{}, byID: map[string]place{}, outcomes: map[string]Outcome{}, runTools: map[string][]middleware.Tool{}, runTypes: map[string]string{}}
}

// turn returns the turn with a key, or begins one.
func (s *session) turn(key, model string) *Turn {
	if t := s.byKey[key]; t != nil && key != "" {
		return t
	}
	t := &Turn{Model: cmp.Or(model, s.model), Tools: s.tools, NoTools: s.tools == nil, Line: s.line, key: key}
	s.turns = append(s.turns, t)
	if key != "" {
		s.byKey[key] = t
	}
	return t
}

// fail keeps an error.
func (s *session) fail(err error) {
	s.errs = append(s.errs, &Error{File: s.file, Line: s.line, Err: err})
}

// found counts what was read in records.
func (s *session) found() int { return s.added + len(s.late) + len(s.errs) }

// add adds a call to a turn. A call that the turn has already is a later state of it; a call
// that was read elsewhere is a repeat.
func (s *session) add(t *Turn, v rawjson.Value) {
	s.added++
	if was := find(v, "state/input"); v.Get("tool").Str() == "invalid" && was.Get("tool").Exists() { // opencode did not know the tool: it keeps the name alone
		s.turns = append(s.turns, &Turn{Model: t.Model, Line: s.line, Session: true, Tools: []middleware.Tool{},
			Calls: []middleware.ToolCall{{ID: text(v.Get("callID")), Name: text(was.Get("tool"))}}, Outcomes: []Outcome{OutcomeError}})
		return
	}
	c, err := readCall(v)
	if err != nil {
		s.fail(err)
		return
	}
	outcome := cmp.Or(outcomeOf(v.Get("toolInvocation")), outcomeOf(v))
	c.Arguments = s.attached(c.Arguments)
	if at := s.byID[c.ID]; t.key != "" && at.turn == t && at.call < len(t.Calls) && t.Calls[at.call].ID == c.ID {
		i := at.call
		if c.Arguments != "" {
			t.Calls[i] = c
		}
		t.Outcomes[i] = cmp.Or(outcome, t.Outcomes[i])
		return
	}
	s.append(t, c, outcome)
}

// append appends a call to a turn, unless it is a repeat.
func (s *session) append(t *Turn, c middleware.ToolCall, outcome Outcome) {
	if s.repeated(t.key, c) {
		s.again(c, t.Tools)
		return
	}
	if c.ID != "" {
		s.byID[c.ID] = place{t, len(t.Calls)}
	}
	t.Calls, t.Outcomes = append(t.Calls, c), append(t.Outcomes, outcome)
}

// attachment is what Inspect writes in place of a long text.
var attachment = regexp.MustCompile(`"attachment://([^"]*)"`)

// attached returns arguments with the long texts that Inspect keeps apart.
func (s *session) attached(arguments string) string {
	if !s.texts.Exists() {
		return arguments
	}
	return attachment.ReplaceAllStringFunc(arguments, func(found string) string {
		return cmp.Or(s.texts.Get(attachment.FindStringSubmatch(found)[1]).Raw(), found)
	})
}

// repeated reports whether a call was read before. Ids that count up, such as call_0, are
// the same in every conversation.
func (s *session) repeated(key string, c middleware.ToolCall) bool {
	if s.seen == nil || c.ID == "" {
		return false
	}
	within := "" // every file
	if last := strings.LastIndexAny(c.ID, "_:.-"); len(c.ID)-last <= 6 {
		if key == "" && !s.local {
			return false
		}
		within = cmp.Or(key, s.file)
	}
	k := KeyOf(within, c)
	again := s.seen[k]
	s.seen[k] = true
	return again
}

type callKey = [16]byte

// KeyOf returns what is the same for equal calls of a file or another whole. Arguments that
// differ only in white space, the order of keys or spelling are equal: programs print them anew.
func KeyOf(within string, c middleware.ToolCall) callKey {
	sum := sha256.Sum256([]byte(within + "\x00" + c.ID + "\x00" + c.Name + "\x00" + rawjson.Canonical(c.Arguments)))
	return callKey(sum[:16])
}

// again counts a repeat. Where the repeat has the tools and the call does not, it gets them.
func (s *session) again(c middleware.ToolCall, tools []middleware.Tool) {
	s.repeats++
	if t := s.byID[c.ID].turn; t != nil && t.NoTools && tools != nil {
		t.Tools, t.NoTools = tools, false
	}
}

// take returns the turns with calls that s has collected. It is called once.
func (s *session) take() (out []Turn) {
	read := map[string]bool{}
	for _, t := range s.turns {
		for _, c := range t.Calls {
			read[c.ID] = true
		}
	}
	for _, t := range s.late {
		late := *t
		late.Calls, late.Outcomes = nil, nil
		for i, c := range t.Calls {
			if len(read) > 0 && (c.ID == "" || read[c.ID]) {
				s.repeats++
				continue
			}
			late.Calls, late.Outcomes = append(late.Calls, c), append(late.Outcomes, t.Outcomes[i])
		}
		s.turns = append(s.turns, &late)
	}
	for _, t := range s.turns {
		if len(t.Calls) == 0 {
			continue
		}
		t.Calls[0].Arguments += string(t.rest)
		if t.Tools == nil && s.tools != nil {
			t.Tools, t.NoTools = s.tools, false
		}
		if s.partly && t.Tools != nil {
			t.NoTools = true
			SomeTools(s.tools).complete(t)
		}
		for i, c := range t.Calls {
			if c.ID != "" && s.outcomes[c.ID] != "" {
				t.Outcomes[i] = s.outcomes[c.ID]
			}
		}
		t.Session, t.key, t.rest = t.Session || s.session, "", nil
		out = append(out, *t)
	}
	return out
}

// roles are the roles of a model's messages, in the words of all forms.
var roles = []string{"assistant", "model", "ai", "AIMessage", "AIMessageChunk", "gemini", "qwen", "response", "gpt", "assistant.message", "ToolCallRequestEvent", "AssistantMessage"}

// unwrap returns the message in a record, and its role.
func unwrap(v rawjson.Value) (rawjson.Value, string) {
	role := firstText(v, "role", "from")
	for _, key := range []string{"kwargs", "data", "message"} { // LangChain's dumpd and messages_to_dict, Claude Code, OpenInference
		in := v.Get(key)
		if in.Kind() != rawjson.Object || v.Get("content").Exists() || v.Get("tool_calls").Exists() || key == "data" && !in.Get("content").Exists() && !in.Get("toolRequests").Exists() {
			continue
		}
		if key == "kwargs" {
			for id := range v.Get("id").Each() {
				role = id.Str()
			}
		}
		if !in.Get("role").Exists() && (in.Get("message").Kind() == rawjson.Object || in.Get("kwargs").Kind() == rawjson.Object) {
			return unwrap(in)
		}
		if kind := text(v.Get("type")); slices.Contains(roles, kind) || kind == "user" {
			role = cmp.Or(role, kind)
		}
		return in, cmp.Or(text(in.Get("role")), role, text(in.Get("type")), text(v.Get("type")))
	}
	if role == "" && v.Get("content").Get("parts").Kind() == rawjson.Array { // Google ADK
		return unwrap(v.Get("content"))
	}
	return v, cmp.Or(role, text(v.Get("info").Get("role")), text(v.Get("kind")), text(v.Get("type")))
}

// messages reads the messages in a list, or one message.
func (s *session) messages(list rawjson.Value) {
	if list.Kind() != rawjson.Array {
		s.message(list)
		return
	}
	for m := range list.Each() {
		if m.Kind() == rawjson.Array {
			s.messages(m)
			continue
		}
		s.message(m)
	}
}

// message reads one message, or one item of OpenAI Responses. Only a model's messages have
// calls; others have results, and mini-swe-agent puts an answer that it refused beside the
// message that says so.
func (s *session) message(v rawjson.Value) {
	if v.Kind() != rawjson.Object || v.Get("is_demo").Raw() == "true" {
		return
	}
	kind := v.Get("type").Str()
	if !v.Get("role").Exists() && (isItem(kind) || isCall(v)) {
		s.item(v)
		return
	}
	m, role := unwrap(v)
	if v.Get("sender").Str() == "tool" || text(m.Get("model")) == "<synthetic>" || v.Get("requestor").Str() == "user" {
		return
	}
	s.open = nil
	if role == "function_call" || role == "tool_call" { // of ShareGPT
		body := firstAt(m, []string{"value", "content"})
		if body.Kind() != rawjson.Object && body.Kind() != rawjson.Array {
			s.fail(errors.New("a message " + role + " that is not JSON"))
		} else {
			s.blocks(body)
		}
		return
	}
	if !slices.Contains(roles, role) && role != "" {
		s.results(m, role)
		if answer := m.Get("extra").Get("response"); answer.Kind() == rawjson.Object {
			for c := range answer.Get("choices").Each() {
				s.message(c)
			}
			s.messages(answer.Get("output"))
		}
		return
	}
	if out := m.Get("output"); role == "" && (out.Kind() == rawjson.Array || out.Kind() == rawjson.Object) && !m.Get("content").Exists() { // of OpenAI Responses, or of Bedrock
		s.messages(out)
		return
	}
	if role == "" && !firstAt(m, []string{"tool_calls", "toolCalls", "content", "parts", "blocks"}).Exists() {
		return
	}
	key := cmp.Or(text(m.Get("id")), text(m.Get("messageId")), text(v.Get("uuid")))
	if s.form == nil || !s.form.lines {
		key = ""
	} else if t := s.byKey[key]; t != nil && !slices.ContainsFunc(t.Calls, func(c middleware.ToolCall) bool { return c.ID != "" }) {
		t.Calls, t.Outcomes = nil, nil // the message is written again, whole
	}
	t := s.turn(key, textAt(m, messageModels))
	if t.Finish = middleware.FinishReason(firstText(m, "finish_reason")); t.Finish == "tool_call" { // the word of OpenTelemetry
		t.Finish = middleware.FinishToolCalls
	}
	s.calls(t, m)
}

// messageModels are where messages have the name of their model.
var messageModels = []string{"model", "model_name", "modelID", "modelName", "info/modelID", "response_metadata/model_name", "response_metadata/model"}

// calls adds the calls of a message to its turn, and to further turns where the message
// has several. Members that repeat the calls of others are read only where those are absent.
func (s *session) calls(t *Turn, m rawjson.Value) {
	n := 0
	for _, key := range []string{"tool_calls", "invalid_tool_calls", "toolCalls", "toolRequests"} {
		n += s.list(t, m.Get(key))
	}
	for _, place := range []string{"additional_kwargs/tool_calls", "function_call", "additional_kwargs/function_call"} {
		if old := placeAt(m, place); n == 0 && (old.Kind() == rawjson.Array || text(old.Get("name")) != "") {
			n += s.list(t, old)
		}
	}
	for _, key := range []string{"content", "parts", "items", "blocks"} {
		blocks := m.Get(key)
		if n > 0 || blocks.Kind() != rawjson.Array {
			continue
		}
		for b := range blocks.Each() {
			switch kind := b.Get("type").Str(); {
			case kind == "step-start" && len(t.Calls) > 0:
				t = s.turn("", t.Model)
			case kind == "tool_calls":
				n += s.list(t, b.Get("value"))
			case kind != "text" && isCall(b) && !isPartial(b):
				s.add(t, b)
				n++
			}
		}
	}
	switch {
	case n > 0:
	case m.Get("function_call_name").Exists(): // OpenInference
		s.add(t, m)
	default:
		s.list(t, m.Get("toolInvocations"))
	}
}

// list adds the calls in a list, in a text with one, or a call alone, and returns how many
// there are.
func (s *session) list(t *Turn, v rawjson.Value) (n int) {
	switch v = decoded(v); {
	case v.Kind() == rawjson.Object:
		s.add(t, v)
		return 1
	case v.Kind() == rawjson.String && v.Str() != "":
		s.fail(errors.New("tool_calls is of kind string, which is not expected there"))
	}
	for c := range v.Each() {
		if c.Kind() != rawjson.Object {
			s.fail(errors.New("tool_calls has " + article(c.Kind()) + ", which is not expected there"))
			continue
		}
		if n++; c.Get("requestor").Str() != "user" && !isPartial(c) {
			s.add(t, c)
		}
	}
	return n
}

// jsonIn returns the JSON in a text.
func jsonIn(s string) (rawjson.Value, bool) {
	doc, err := rawjson.Parse(strings.TrimSpace(s), lineLimits)
	if err != nil {
		return rawjson.Value{}, false
	}
	return doc.Root(), true
}

// marked reads the calls of ShareGPT and Hermes, which are JSON in a text.
func (s *session) marked(t *Turn, said string) {
	for _, piece := range strings.Split(said, "<tool_call>")[1:] {
		body, _, ok := strings.Cut(piece, "</tool_call>")
		in, isJSON := jsonIn(body)
		if !ok || !isJSON || in.Kind() != rawjson.Object {
			s.fail(errors.New("a <tool_call> in a text that is not JSON"))
			return
		}
		s.add(t, in)
	}
}

// isItem reports whether a type is of an item of OpenAI Responses that holds a call or its
// result.
func isItem(kind string) bool {
	return kind == "function_call" || kind == "custom_tool_call" || ownCalls[kind].name != "" || isOutput(kind) || kind == "reasoning"
}

func isOutput(kind string) bool {
	return strings.HasSuffix(kind, "_call_output") || kind == "custom_tool_call_output"
}

// item reads an item of OpenAI Responses, or a call of a list. The calls of a turn follow
// each other.
func (s *session) item(v rawjson.Value) {
	switch kind := v.Get("type").Str(); {
	case isOutput(kind):
		s.open = nil
		s.result(v, firstText(v, "call_id"))
	case kind == "reasoning" || isPartial(v):
	default:
		if s.open == nil || !isItem(kind) {
			s.open = s.turn("", "")
		}
		s.add(s.open, v)
	}
}

// results reads what became of calls from a message that has their results.
func (s *session) results(m rawjson.Value, role string) {
	if id := firstText(m, "tool_call_id", "toolCallId"); id != "" || role == "tool" {
		s.result(m, cmp.Or(id, text(m.Get("id"))))
	}
	for _, key := range []string{"content", "parts"} {
		for b := range m.Get(key).Each() {
			switch id := firstText(b, "tool_use_id", "tool_call_id", "toolCallId"); {
			case id == "":
			case b.Get("part_kind").Str() == "retry-prompt":
				s.became(id, OutcomeError)
			default:
				s.result(b, id)
			}
		}
	}
}

func (s *session) result(v rawjson.Value, id string) {
	if o := outcomeOf(v); o != "" && id != "" {
		s.became(id, o)
	}
}

// became notes what became of a call: of the last one with the id, else of one to come.
func (s *session) became(id string, o Outcome) {
	if at := s.byID[id]; at.turn != nil && at.call < len(at.turn.Outcomes) {
		at.turn.Outcomes[at.call] = o
	} else {
		s.outcomes[id] = o
	}
}

// blocks reads a text with blocks of JSON in it, each on lines of its own, as promptfoo joins
// the blocks of an answer of Anthropic.
func (s *session) blocks(v rawjson.Value) {
	switch v = decoded(v); {
	case v.Kind() == rawjson.String:
		t := s.turn("", "")
		for line := range strings.SplitSeq(v.Str(), "\n") {
			if in, ok := jsonIn(line); ok && isCall(in) {
				s.add(t, in)
			}
		}
	case v.Kind() == rawjson.Array:
		t := s.turn("", "")
		for c := range v.Each() {
			if isCall(c) {
				s.add(t, c)
			} else {
				s.message(c)
			}
		}
	case isCall(v):
		s.add(s.turn("", ""), v)
	default:
		s.message(v)
	}
}

// adopt adds turns that were read in another way, and keeps the error unless it is a Skipped.
func (s *session) adopt(turns []Turn, err error) {
	s.added++
	if _, skipped := err.(Skipped); err != nil && !skipped {
		s.fail(err)
	}
	for _, t := range turns {
		kept := t
		kept.Model = cmp.Or(kept.Model, s.model)
		if kept.NoTools && s.tools != nil {
			kept.Tools, kept.NoTools = s.tools, false
		}
		kept.Calls, kept.Outcomes, kept.Line = nil, nil, s.line
		for i, c := range t.Calls {
			s.append(&kept, c, t.Outcomes[i])
		}
		s.turns = append(s.turns, &kept)
	}
}
