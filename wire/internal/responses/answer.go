package responses

import (
	"slices"
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// answer is an answer as it was read: one object, or what the events of a stream made.
// It is what lens remembers behind the Native of a response, and what an edit starts
// from. No field of it changes after reading.
type answer struct {
	text     string // as it came
	plain    bool   // no reader finds a call in text: unchanged, it passes as it is
	streamed bool
	head     string        // the response object of the event that opened a stream
	ending   string        // the type of the event that ended it
	done     bool          // [DONE] came behind it
	env      rawjson.Value // the response object; of a stream, the object of the last event
	is       middleware.Response
	turn     turn  // the message of is, and its items
	from     []int // of the items of a stream: their places in it; -1: only the end has it
}

// DecodeResponse reads a whole answer.
func (f Format) DecodeResponse(req *middleware.Request, body []byte) (*middleware.Response, error) {
	return codec.Decode(f.NewStream(req, nil), body)
}

// newAnswer reads the response object env:
//
//	{"id": …, "status": "completed", "model": …, "output": [item, …], "usage": {…}}
//
// values are the items, of a stream those that its events made.
func newAnswer(s *stream, env rawjson.Value, values []rawjson.Value) (*answer, error) {
	a := &answer{text: s.Text(), plain: s.Plain(), streamed: s.end != "", head: s.opening.head, ending: s.ending, done: s.done, env: env}
	var err error
	if a.turn, err = readAnswer(values, env.Get("store").Raw() == "false"); err != nil {
		return nil, err
	}
	a.is = middleware.Response{Message: a.turn.message, ID: codec.Text(env.Get("id")), Model: codec.Text(env.Get("model")), Usage: readUsage(env.Get("usage"))}
	a.is.FinishReason = finish(env, len(a.is.Message.ToolCalls))
	return a, nil
}

// readBody reads an answer again, as it was read first.
func readBody(body string) (*answer, error) {
	s := newStream(false)
	_, err := codec.Decode(s, []byte(body))
	return s.answer, err
}

// answered returns an error if a call that the provider has answered itself is
// of a tool that req offers: many clients look at no answer but run their tool.
func (t *turn) answered(req *middleware.Request) error {
	if req == nil {
		return nil
	}
	for _, it := range t.items {
		if f, ok := calls[it.val.Get("type").Str()]; !ok || it.sort != isOpaque || f.kind == middleware.KindBuiltin {
			continue
		}
		name := codec.Text(it.val.Get("name"))
		if slices.ContainsFunc(req.Tools, func(t middleware.Tool) bool { return t.Name == name }) {
			return codec.Shapef("a call of the client's tool with its answer")
		}
	}
	return nil
}

// failed returns the error that a response object holds in the place of an answer, with
// what it has cost; nil if it holds none. A failure that has calls beside it is neither:
// some clients would run them.
func failed(env rawjson.Value, event bool) (failure, err error) {
	if !event && env.Get("status").Str() != "failed" && (!on.Get(env, "error").Exists() || env.Get("output").Kind() == rawjson.Array) {
		return nil, nil
	}
	for v := range env.Get("output").Each() {
		if it, err := answerItem(v); err != nil || it.sort == isCall {
			return nil, codec.Shapef("calls in a response that has failed")
		}
	}
	f, _ := readFailure(env)
	if u := readUsage(env.Get("usage")); u != (middleware.Usage{}) {
		return codec.WithUsage(inAnswer(f), codec.Text(env.Get("model")), u), nil
	}
	return inAnswer(f), nil
}

// EncodeResponse writes an answer in the framing in which it came.
func (Format) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	a, err := lens.Answer(on, resp, readBody)
	if err != nil {
		return nil, err
	}
	if a.plain && codec.SameResponse(&a.is, resp) {
		return []byte(a.text), nil
	}
	out := ""
	if a.streamed {
		out, err = a.events(resp, true, nothing)
	} else {
		out, err = a.object(resp)
	}
	return []byte(out), unencodable(err)
}

// items returns the items of resp, which is the answer with changes.
func (a *answer) items(resp *middleware.Response) ([]written, error) {
	if len(resp.Choices) > 0 {
		return nil, codec.Unencodablef("further choices")
	}
	return a.turn.write(resp.Message, true, "")
}

// object returns the answer, which came as one object, with what differs in resp.
func (a *answer) object(resp *middleware.Response) (string, error) {
	items, err := a.items(resp)
	if err != nil {
		return "", err
	}
	raws := make([]string, len(items))
	for i, o := range items {
		raws[i] = o.raw
	}
	env, _, err := a.edit(resp, raws)
	start, end := a.env.Span()
	switch root := a.env.Raw(); {
	case err != nil:
		return "", err
	case a.plain: // nothing but what changed is another
		at := strings.Index(a.text, root)
		return a.text[:at] + env + a.text[at+end-start:], nil
	}
	return canonical(env, answerTree)
}

// canonical returns the object text in the one spelling.
func canonical(text string, tree codec.Tree) (string, error) {
	v, err := codec.ParseObject(text)
	return tree.Write(v), err
}

// edit makes of the response object that of resp, with items for its output. more are
// members to set besides. status says how the answer ends now; "": as before.
func (a *answer) edit(resp *middleware.Response, items []string, more ...lens.Member) (env, status string, err error) {
	status, reason, err := a.finishEdit(resp)
	if err != nil {
		return "", "", err
	}
	edit := on.Edit(a.env)
	if status != "" {
		edit.Put(lens.Text("status", status))
		if reason != "" {
			edit.Put(lens.Raw("incomplete_details", on.Object(lens.Text("reason", reason))))
		} else if a.env.Get("incomplete_details").Exists() {
			edit.Put(lens.Raw("incomplete_details", "null"))
		}
	}
	if resp.Model != a.is.Model {
		edit.Put(lens.Text("model", resp.Model))
	}
	edit.Put(usageEdit(a.env, a.is.Usage, resp.Usage)...)
	edit.Put(more...)
	if old := a.env.Get("output_text"); old.Str() != "" && old.Str() == a.is.Message.Text() && resp.Message.Text() != old.Str() {
		edit.Put(lens.Text("output_text", resp.Message.Text()))
	}
	edit.Elements("output", items)
	env, err = edit.Text()
	return env, status, err
}

// EncodeAnswer writes an answer that the provider did not send to this request.
func (f Format) EncodeAnswer(path string, body []byte, resp *middleware.Response) ([]byte, string, error) {
	out, kind, err := codec.EncodeAnswer(f, path, body, resp, codec.Writing{Streamed: codec.FormEvents, Whole: freshAnswer, Unfold: asEvents})
	return out, kind, unencodable(err)
}

// asEvents writes an answer that is one object as a stream.
func asEvents(whole string) (string, error) {
	a, err := readBody(whole)
	if err != nil {
		return "", err
	}
	return a.events(&a.is, true, nothing)
}

// freshAnswer writes a response as one object, with the members that the
// provider's SDKs demand. Reasoning of another provider is left out: the
// provider would refuse it in the next request. "store" is false, because the
// provider does not know the answer: a request cannot go on from its id.
func freshAnswer(resp *middleware.Response) (string, error) {
	if err := codec.AnswerOnly(resp.Message); err != nil {
		return "", err
	}
	if len(resp.Choices) > 0 {
		return "", codec.Unencodablef("further choices")
	}
	id := codec.NewID("")
	var t *turn
	items, err := t.write(codec.WithCallIDs(resp.Message, "call_"), true, id)
	if err != nil {
		return "", err
	}
	output := make([]string, len(items))
	for i, o := range items {
		output[i] = o.raw
	}
	status, details := finishMembers(codec.FinishOf(resp))
	null := func(key string) lens.Member { return lens.Raw(key, "null") }
	return on.Object(slices.Concat([]lens.Member{
		lens.Text("id", "resp_"+id), lens.Text("object", "response"), lens.Raw("created_at", codec.Count(time.Now().Unix())),
		status, null("error"), details, null("instructions"),
		lens.Text("model", resp.Model), lens.Raw("output", codec.Array(output)),
		lens.Raw("parallel_tool_calls", "true"), null(previous), lens.Raw("store", "false"),
		null("temperature"), lens.Text("tool_choice", "auto"), lens.Raw("tools", "[]"), null("top_p"),
	}, usageMembers(codec.FiguresOf(resp)), []lens.Member{lens.Raw("metadata", "{}")})...), nil
}
