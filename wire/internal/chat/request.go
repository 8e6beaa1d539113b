package chat

import (
	"cmp"
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// ReadRequest reads a body:
//
//	{"model": …, "messages": [message, …], "tools": [tool, …], "tool_choice": …, "temperature": …, "stop": …, …}
//
// Only the neutral request is remembered, and no parsed text: an edit, which is rare, reads
// the body again. The error wraps ErrShape.
func (Format) ReadRequest(in *codec.Input) (*middleware.Request, error) {
	is := &middleware.Request{}
	err := in.Borrow(dialect, "messages", func(v rawjson.Value) (err error) {
		if err = readSettings(v, is); err != nil {
			return err
		}
		if is.Tools, err = readTools(v, in); err != nil {
			return err
		}
		if is.Messages, err = readMessages(v.Get("messages")); err == nil {
			in.Keep(v.Get(toolLists[0]), nil, readNewTool)
			in.Keep(v.Get("messages"), nil, nil)
		}
		return err
	})
	return is, err
}

// readMessages reads the conversation. Two facts come from other messages: the name of the
// tool of a result, which is in the call with its id, and the call in the old form that a
// message of the role function answers. Old calls and their answers belong together in order,
// as neither has an id.
func readMessages(list rawjson.Value) ([]middleware.Message, error) {
	if list.Kind() != rawjson.Array {
		return nil, codec.Shapef("no list of messages")
	}
	messages := make([]middleware.Message, 0, list.Len())
	calls := 0
	var open []string // ids of the calls in the old form that have no reply yet
	for v := range list.Each() {
		m, err := readMessage(v)
		if err != nil {
			return nil, err
		}
		if len(m.ToolCalls) > 0 && isOldTurn(v) {
			m.ToolCalls[0].ID = codec.PlaceID(calls + 1)
			open = append(open, m.ToolCalls[0].ID)
		}
		calls += len(m.ToolCalls)
		if len(open) > 0 && v.Get("role").Str() == functionRole {
			m.ToolCallID, open = open[0], open[1:]
		}
		messages = append(messages, m)
	}
	codec.NameResults(messages)
	return messages, nil
}

// EncodeRequest writes the body of a request.
func (f Format) EncodeRequest(req *middleware.Request) ([]byte, error) {
	return on.EncodeRequest(req, f.ReadRequest, editRequest, freshRequest)
}

func editRequest(doc *rawjson.Doc, was, req *middleware.Request) (string, error) {
	v := doc.Root()
	e := on.Edit(v)
	if err := editSettings(e, v, was, req); err != nil {
		return "", err
	}
	if err := editTools(e, v, was, req); err != nil {
		return "", err
	}
	messages, err := messageTexts(was.Messages, req.Messages)
	if err != nil {
		return "", err
	}
	e.Elements("messages", messages)
	return e.Apply(doc)
}

// messageTexts writes messages as elements of a request that had old.
func messageTexts(old, messages []middleware.Message) ([]string, error) {
	texts := make([]string, len(messages))
	for i, run := range on.History(old, nil, messages, nil) {
		if run.Same {
			texts[i] = on.Raw(messages[i].Native)
			continue
		}
		var err error
		if texts[i], err = messageText(messages[i], messages[:i]); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// freshRequest writes a request that was not decoded from this format. Params win.
// max_tokens in them keeps max_completion_tokens out: OpenAI refuses a request that
// has both.
func freshRequest(req *middleware.Request) (string, error) {
	messages, err := messageTexts(nil, req.Messages)
	if err != nil {
		return "", err
	}
	tools, _, err := on.Tools(nil, req.Tools, func(t middleware.Tool) (string, error) { return toolText(t, false) })
	if err != nil {
		return "", err
	}
	members := []lens.Member{lens.Word("model", req.Model), lens.Raw("messages", codec.Array(messages)), lens.List("tools", tools)}
	if len(tools) > 0 {
		members = append(members, lens.Raw("tool_choice", choiceText(req)), lens.Off(parallel, !req.NoParallelCalls))
	}
	members = append(members, lens.Float("temperature", req.Temperature))
	if params, _ := codec.ParseObject(string(req.Params)); !params.Get(limits[1]).Exists() {
		members = append(members, lens.Count(limits[0], int64(max(req.MaxTokens, 0))))
	}
	members = append(members, lens.Words("stop", req.Stop), output(req))
	if req.Sink != nil {
		members = append(members, lens.Flag("stream", true), lens.Raw("stream_options", `{"include_usage":true}`))
	}
	return on.WithParams(members, req.Params)
}

// readSettings reads the members of a request other than messages and tools. null means that
// the provider's default holds.
func readSettings(v rawjson.Value, req *middleware.Request) (err error) {
	if req.Model, err = on.Text(v, "model"); err != nil {
		return err
	}
	req.Temperature = codec.Float(v.Get("temperature"))
	for _, key := range limits {
		if n := codec.Int(v.Get(key)); n > 0 && n == int64(int(n)) && req.MaxTokens == 0 {
			req.MaxTokens = int(n)
		}
	}
	switch stop := v.Get("stop"); stop.Kind() {
	case rawjson.String:
		req.Stop = []string{stop.Str()}
	case rawjson.Array:
		req.Stop, err = on.Texts(v, "stop")
	}
	choice := v.Get("tool_choice")
	if !choice.Exists() {
		choice = v.Get("function_call") // the old name
	}
	req.ToolChoice, req.AllowedTools = readChoice(choice)
	req.NoParallelCalls = v.Get(parallel).Raw() == "false"
	return err
}

// parallel is the member that limits a message to one call.
const parallel = "parallel_tool_calls"

// limits are the two names of the bound on the answer, the newer one first.
var limits = []string{"max_completion_tokens", "max_tokens"}

// readChoice reads a choice of tools, in the newer or the old form:
//
//	"auto" or "none" or "required" or "any", which is Mistral's word for it
//	{"type": "function", "function": {"name": …}} or {"name": …}
//	{"type": "allowed_tools", "allowed_tools": {"mode": …, "tools": […]}}
//
// Some servers take the mode and the list in the outer object, as Responses has them.
func readChoice(v rawjson.Value) (c middleware.ToolChoice, allowed []string) {
	word := v.Str()
	if list, _ := allowedIn(v); list.Exists() {
		word, allowed = list.Get("mode").Str(), codec.AllowedNames(list.Get("tools"), nameIn)
	} else if v.Kind() == rawjson.Object {
		c.Name = nameIn(v)
	}
	switch word {
	case "none":
		c.Mode = middleware.ToolNone
	case "required", "any":
		c.Mode = middleware.ToolRequired
	}
	return c, allowed
}

// nameIn returns the name of the tool that an object chooses, "" if it has none.
func nameIn(v rawjson.Value) string {
	return codec.FirstText(v.Get("function").Get("name"), v.Get("custom").Get("name"), v.Get("name"))
}

// allowedIn returns what has the mode and the list of allowed tools in a choice of tools, absent
// without a list, and its path in the request.
func allowedIn(v rawjson.Value) (rawjson.Value, string) {
	switch {
	case v.Get("allowed_tools").Kind() == rawjson.Object:
		return v.Get("allowed_tools"), "tool_choice/allowed_tools"
	case v.Get("type").Str() == "allowed_tools":
		return v, "tool_choice"
	}
	return rawjson.Value{}, ""
}

// editSettings puts the settings in which req differs from is into an edit of v. Without
// tools, it removes the members that need tools.
func editSettings(e *lens.Edit, v rawjson.Value, is, req *middleware.Request) error {
	e.Put(lens.Differ(settings(v, is), settings(v, req))...)
	if len(req.Output) > 0 {
		if form := v.Get("response_format"); form.Exists() && form.Get("type").Str() != "text" {
			return codec.Unencodablef("a schema of the answer's text beside response_format")
		}
		e.Put(output(req))
	}
	if len(req.Tools) == 0 && codec.SameChoice(req, &middleware.Request{}) && len(is.Tools) > 0 && v.Get("tools").Len() > 0 {
		e.Put(lens.None("tool_choice"), lens.None(parallel))
		return nil
	}
	if req.NoParallelCalls != is.NoParallelCalls {
		e.Put(lens.Off(parallel, !req.NoParallelCalls))
	}
	if codec.SameChoice(req, is) {
		return nil
	}
	m, err := choice(v, is, req)
	e.Put(m)
	return err
}

// output is the member for the schema of the answer's text.
func output(req *middleware.Request) lens.Member {
	if len(req.Output) == 0 {
		return lens.None("response_format")
	}
	return lens.Raw("response_format", `{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":`+string(req.Output)+`}}`)
}

// settings projects the settings but for the choice of tools. A limit is written to the member
// that has it, else under its newer name: OpenAI refuses both.
func settings(v rawjson.Value, req *middleware.Request) []lens.Member {
	members := []lens.Member{lens.Word("model", req.Model), lens.Float("temperature", req.Temperature)}
	limit := lens.Count(limits[0], int64(max(req.MaxTokens, 0)))
	found := false
	for _, key := range limits {
		if on.Get(v, key).Exists() {
			members, found = append(members, lens.Raw(key, limit.Raw)), true
		}
	}
	if !found {
		members = append(members, limit)
	}
	if len(req.Stop) == 1 && v.Get("stop").Kind() == rawjson.String {
		return append(members, lens.Text("stop", req.Stop[0]))
	}
	return append(members, lens.Words("stop", req.Stop))
}

// choice returns the member that another choice of tools changes. The list of
// allowed tools stays where only its mode does.
func choice(v rawjson.Value, is, req *middleware.Request) (lens.Member, error) {
	const function = "function_call"
	c, allowed := codec.Choice(req)
	mode, only := c.Mode, c.Name
	list, place := allowedIn(v.Get("tool_choice"))
	switch {
	case list.Exists() && slices.Equal(allowed, is.AllowedTools) && only == "" && mode != middleware.ToolNone:
		return lens.Text(place+"/mode", cmp.Or(string(mode), "auto")), nil
	case !isOld(v) || v.Get("tool_choice").Exists(): // which is the one that is read
		return lens.Raw("tool_choice", choiceText(req)), nil
	case allowed != nil:
		return lens.Member{}, codec.Unencodablef("function_call cannot list allowed tools")
	case only != "":
		return lens.Raw(function, codec.Object(lens.Text("name", only))), nil
	case mode == middleware.ToolRequired:
		return lens.Member{}, codec.Unencodablef("function_call cannot require some call")
	}
	return lens.Word(function, string(mode)), nil
}

// choiceText writes req's choice of tools; "" is the default.
func choiceText(req *middleware.Request) string {
	c, allowed := codec.Choice(req)
	entry := func(name string) string {
		kind := "function"
		if slices.ContainsFunc(req.Tools, func(t middleware.Tool) bool { return t.Name == name && t.Kind == middleware.KindCustom }) {
			kind = "custom"
		}
		return on.Object(lens.Text("type", kind), lens.Text(kind+"/name", name))
	}
	switch {
	case c.Name != "":
		return entry(c.Name)
	case allowed != nil:
		return on.Object(lens.Text("type", "allowed_tools"), lens.Text("allowed_tools/mode", cmp.Or(string(c.Mode), "auto")),
			lens.List("allowed_tools/tools", lens.TextsOf(allowed, entry)))
	}
	return lens.Word("", string(c.Mode)).Raw
}
