package responses

import (
	"slices"
	"time"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// answer is an answer as it was read: one object, or the events of a stream. It is
// what lens remembers behind the Native of a response, and what an edit starts from.
// No field of it changes after reading.
type answer struct {
	*recording
	env    rawjson.Value // the response object, of a stream that of the last event
	is     middleware.Response
	turn   turn  // the message of is, and its items
	flowOf []int // of the items of a stream: their flow; -1: they are only in env
}

// DecodeResponse is part of wire.Codec.
func (f Format) DecodeResponse(req *middleware.Request, body []byte) (*middleware.Response, error) {
	return codec.Decode(f.NewStream(req, nil), body)
}

// newAnswer reads the response object env:
//
//	{"id": …, "status": "completed", "model": …, "output": [item, …], "usage": {…}}
//
// values are the items, of a stream those that it had before its end.
func newAnswer(s *stream, env rawjson.Value, values []rawjson.Value) (*answer, error) {
	a := &answer{recording: s.recording, env: env}
	var err error
	if a.turn, err = readAnswer(values, env.Get("store").Raw() == "false"); err != nil {
		return nil, err
	}
	a.is = middleware.Response{Message: a.turn.message, Model: codec.Text(env.Get("model")), Usage: readUsage(env.Get("usage"))}
	a.is.FinishReason = finish(env, len(a.is.Message.ToolCalls))
	return a, nil
}

// readBody reads an answer again, as it was read first.
func readBody(body string) (*answer, error) {
	s := newStream(nil, nil)
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

// readWhole reads a body that is not a stream.
func (s *stream) readWhole() (*answer, error) {
	root, err := codec.ParseObject(s.buf.Text())
	if err == nil {
		err = answerEnvelope.Check(root)
	}
	if err == nil {
		err = failed(root)
	}
	if err != nil {
		return nil, err
	}
	output := root.Get("output")
	if output.Kind() != rawjson.Array {
		return nil, codec.Shapef("a body without an output")
	}
	return newAnswer(s, root, slices.Collect(output.Each()))
}

// failed returns the error that a response object holds in the place of an
// answer, with what it has cost. A failure that has calls beside it is neither:
// some clients would run them.
func failed(env rawjson.Value) error {
	if env.Get("status").Str() != "failed" && (!on.Get(env, "error").Exists() || env.Get("output").Kind() == rawjson.Array) {
		return nil
	}
	if err := uncalled(env); err != nil {
		return err
	}
	f, _ := failure(env)
	u := readUsage(env.Get("usage"))
	if u == (middleware.Usage{}) {
		return inAnswer(f)
	}
	return codec.WithUsage(inAnswer(f), codec.Text(env.Get("model")), u)
}

// uncalled returns an error if a response object that has failed holds calls.
func uncalled(env rawjson.Value) error {
	if calls, err := callsIn(env); len(calls) > 0 || err != nil {
		return codec.Shapef("calls in a response that has failed")
	}
	return nil
}

// EncodeResponse is part of wire.Codec.
func (Format) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	a, err := lens.Answer(on, resp, readBody)
	if err != nil {
		return nil, err
	}
	out, err := a.encode(resp)
	return []byte(out), unencodable(err)
}

// encode returns the text of the answer with what differs in resp. One object is
// edited where it stands; a stream is kept up to the first item that changed.
func (a *answer) encode(resp *middleware.Response) (string, error) {
	text := a.buf.Text()
	if len(resp.Choices) > 0 {
		return "", codec.Unencodablef("further choices")
	}
	if codec.SameResponse(&a.is, resp) {
		return text, nil
	}
	items, err := a.turn.write(resp.Message, true, "")
	if err != nil {
		return "", err
	}
	if a.last >= 0 {
		return a.rewrite(resp, items)
	}
	edits, _, err := a.edits(resp, items, nil)
	if err != nil {
		return "", err
	}
	return codec.Apply(text, edits)
}

// edits makes of the response object that of resp. before are items that a
// client was shown earlier, more are members to set besides. status says how the
// answer ends now; "": as before.
func (a *answer) edits(resp *middleware.Response, items []written, before []string, more ...lens.Member) (edits []rawjson.Edit, status string, err error) {
	status, reason, err := a.finishEdit(resp)
	if err != nil {
		return nil, "", err
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
	if output := a.env.Get("output"); a.last < 0 || !output.Empty() || len(a.turn.items) == 0 {
		edit.Elements("output", append(slices.Clone(before), a.ends(items)...))
	} // else clients take no notice of it
	edits, err = edit.Edits()
	return edits, status, err
}

// ends returns items as the end of the answer names them: those that have not
// changed as their copies there.
func (a *answer) ends(items []written) []string {
	raws := make([]string, len(items))
	for i, o := range items {
		raws[i] = o.raw
		if a.last < 0 || !a.same(o) || a.flowOf[o.from] < 0 {
			continue
		}
		if end := a.flows[a.flowOf[o.from]].end; end.Exists() {
			raws[i] = end.Raw()
		}
	}
	return raws
}

// same reports whether an item is as the answer has it. A new one is not.
func (a *answer) same(o written) bool {
	return o.from >= 0 && o.raw == a.turn.items[o.from].val.Raw()
}

// rewrite returns the stream with what differs in resp, of which items are the
// items: its own bytes up to the first item that has changed, then the events of
// the others afresh, and the end.
func (a *answer) rewrite(resp *middleware.Response, items []written) (string, error) {
	place := map[int]int{} // where in the answer a flow is
	for i, at := range a.flowOf {
		place[at] = i
	}
	kept := 0
	for kept < len(items) && items[kept].from == kept && a.same(items[kept]) {
		kept++
	}
	n := slices.IndexFunc(a.events[:a.last], func(ev event) bool {
		at, ok := place[ev.flow]
		return ev.flow >= 0 && ok && at >= kept
	})
	if n < 0 {
		n = a.last
	}
	t := newTape(a.recording)
	for _, ev := range a.events[:n] {
		if err := t.keep(ev, a.is.Model, resp.Model); err != nil {
			return "", err
		}
	}
	t.moved = n < a.last
	if err := t.finish(n, a.last); err != nil {
		return "", err
	}
	if len(items) == 0 && len(t.shown) > 0 && !a.env.Get("output").Empty() {
		return "", codec.Unencodablef("an end without items, where some that were shown are no part of the answer")
	}
	for _, o := range items {
		same := a.same(o)
		if same && (a.flowOf[o.from] < 0 || t.has[a.flowOf[o.from]]) || len(a.flows) == 0 && len(a.turn.items) > 0 {
			continue // it is there, or it stands in the end of the stream only
		}
		if err := t.item(o.raw); err != nil {
			return "", err
		}
	}
	if err := t.end(a, resp, items, nil); err != nil {
		return "", err
	}
	return t.out.String(), shows(t.out.String(), resp.Message)
}

// shows returns an error unless a stream reads as m: the order of the items may
// be another one, and what the first events say cannot change.
func shows(stream string, m middleware.Message) error {
	a, err := showsCalls(stream, m)
	if err == nil && a.is.Message.Text() != m.Text() {
		err = codec.Unencodablef("a change that the stream does not show")
	}
	return err
}

// showsCalls returns an error unless a stream has the calls of m: items of one id,
// which are apart in an object, are one for clients of a stream.
func showsCalls(stream string, m middleware.Message) (*answer, error) {
	a, err := readBody(stream)
	if err == nil && !slices.EqualFunc(a.is.Message.ToolCalls, m.ToolCalls, codec.SameCall) {
		err = codec.Unencodablef("calls that the stream does not show")
	}
	return a, err
}

// EncodeAnswer is part of wire.Codec.
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
	t := &tape{recording: a.recording, has: map[int]bool{}, named: true, numbered: true}
	items, err := a.turn.write(a.is.Message, true, "")
	if err != nil {
		return "", err
	}
	if err = t.follow(a, &a.is, items, nil); err == nil {
		_, err = showsCalls(t.out.String(), a.is.Message)
	}
	return t.out.String(), err
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
