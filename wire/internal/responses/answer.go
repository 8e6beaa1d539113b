package responses

import (
	"cmp"
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
	lens.Answered
	head   string        // the response object of the event that opened a stream
	ending string        // the type of the event that ended it
	done   bool          // [DONE] came behind it
	env    rawjson.Value // the response object; of a stream, the object of the last event
	turn   turn          // the message, and its items
	from   []int         // of the items of a stream: their places in it; -1: only the end has it
}

// newAnswer reads the response object env:
//
//	{"id": …, "status": "completed", "model": …, "output": [item, …], "usage": {…}}
//
// values are the items, of a stream those that its events made.
func newAnswer(s *stream, env rawjson.Value, values []rawjson.Value) (*answer, error) {
	a := &answer{Answered: lens.Answered{Text: s.Text(), Unchanged: s.Unchanged(), Streamed: s.end != ""}, head: s.opening.head, ending: s.ending, done: s.done, env: env}
	var err error
	if a.turn, err = readAnswer(values, env.Get("store").Raw() == "false"); err != nil {
		return nil, err
	}
	a.Is = middleware.Response{Message: a.turn.message, ID: codec.Text(env.Get("id")), Model: codec.Text(env.Get("model")), Usage: figures.Read(env)}
	a.Is.FinishReason = finish(env, len(a.Is.Message.ToolCalls))
	return a, nil
}

// readBody reads an answer again, as it was read first.
func readBody(body string) (*answer, error) {
	s := newStream(false)
	_, err := codec.Decode(s, []byte(body))
	return s.answer, err
}

// answered returns an error if a call that the provider has answered itself is
// of a tool that req offers: many clients look at no answer but run their tool; or if an
// item defines a tool that req does not offer.
func (t *turn) answered(req *middleware.Request) error {
	if req == nil {
		return nil
	}
	d := declared{have: map[[2]string]bool{}}
	for _, it := range t.items {
		_ = d.item(it, " ") // what an item lists is never an error
		if f, ok := calls[it.val.Get("type").Str()]; !ok || it.sort != isOpaque || f.kind == middleware.KindBuiltin {
			continue
		}
		name := codec.Text(it.val.Get("name"))
		if slices.ContainsFunc(req.Tools, func(t middleware.Tool) bool { return t.Name == name }) {
			return codec.Shapef("a call of the client's tool with its answer")
		}
	}
	err := d.nested()
	for _, t := range d.tools {
		if t.Kind != middleware.KindHosted { // its name is its type
			err = cmp.Or(err, codec.RejectUndefinedTool(req, t.Namespace, t.Name))
		}
	}
	return err
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
	if u := figures.Read(env); u != (middleware.Usage{}) {
		return codec.WithUsage(inAnswer(f), codec.Text(env.Get("model")), u), nil
	}
	return inAnswer(f), nil
}

// EncodeResponse writes an answer in the framing in which it came.
func (Format) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	return lens.EncodeResponse(on, resp, readBody)
}

// items returns the items of resp, which is the answer with changes.
func (a *answer) items(resp *middleware.Response) ([]written, error) {
	if err := codec.OneMessage(resp); err != nil {
		return nil, err
	}
	return a.turn.write(resp.Message, cmp.Or(strings.TrimPrefix(a.env.Get("id").Str(), "resp_"), "toolmend"))
}

// Whole returns resp as one object.
func (a *answer) Whole(resp *middleware.Response) (string, error) {
	items, err := a.items(resp)
	if err != nil {
		return "", err
	}
	raws := make([]string, len(items))
	for i, o := range items {
		raws[i] = o.raw
	}
	env, _, err := a.edit(resp, raws)
	return env, err
}

// canonical returns the object text in the one spelling.
func canonical(text string, tree codec.Tree) (string, error) {
	v, err := codec.ParseObject(text)
	return tree.Write(v), err
}

// edit makes of the response object that of resp, with items for its output. more are
// members to set besides. status says how the answer ends.
func (a *answer) edit(resp *middleware.Response, items []string, more ...lens.Member) (env, status string, err error) {
	edit := on.Edit(a.env)
	edit.Put(a.finish(resp)...)
	if resp.Model != a.Is.Model {
		edit.Put(lens.Text("model", resp.Model))
	}
	edit.Put(lens.Differ(usageMembers(a.env, a.Is.Usage), usageMembers(a.env, resp.Usage))...)
	edit.Put(more...)
	if old := a.env.Get("output_text"); old.Str() != "" && old.Str() == a.Is.Message.Text() && resp.Message.Text() != old.Str() {
		edit.Put(lens.Text("output_text", resp.Message.Text()))
	}
	edit.Elements("output", items)
	if env, err = edit.Text(); err != nil {
		return "", "", err
	}
	v, err := codec.ParseObject(env)
	return answerTree.Write(v), v.Get("status").Str(), err
}

// EncodeAnswer writes an answer that the provider did not send to this request.
func (f Format) EncodeAnswer(path string, body []byte, resp *middleware.Response) ([]byte, string, error) {
	return codec.EncodeAnswer(f, path, body, resp, codec.Writing{Streamed: codec.FormEvents, Whole: freshAnswer, Unfold: func(whole string) (string, error) {
		a, err := readBody(whole)
		if err != nil {
			return "", err
		}
		return a.Stream(&a.Is, nil, true)
	}})
}

// freshAnswer writes a response as one object, with the members that the provider's SDKs
// demand: as a change of an answer that says nothing. Reasoning of another provider is
// left out: the provider would refuse it in the next request. "store" is false, because
// the provider does not know the answer: a request cannot go on from its id.
func freshAnswer(resp *middleware.Response) (string, error) {
	null := func(key string) lens.Member { return lens.Raw(key, "null") }
	a, err := readBody(on.Object(append([]lens.Member{
		lens.Text("id", codec.NewID("resp_")), lens.Text("object", "response"), lens.Raw("created_at", codec.Count(time.Now().Unix())),
		lens.Text("status", "completed"), null("error"), null("incomplete_details"), null("instructions"), lens.Text("model", ""), lens.Raw("output", "[]"),
		lens.Raw("parallel_tool_calls", "true"), null(previous), lens.Raw("store", "false"),
		null("temperature"), lens.Text("tool_choice", "auto"), lens.Raw("tools", "[]"), null("top_p"),
		lens.Raw("metadata", "{}"), lens.Raw("usage/total_tokens", "0"),
	}, figures.Members(rawjson.Value{}, middleware.Usage{})...)...))
	if err != nil {
		return "", err
	}
	now := *resp
	now.Message, now.FinishReason, now.Usage = codec.WithCallIDs(resp.Message, "call_"), codec.FinishOf(resp), codec.FiguresOf(resp)
	return a.Whole(&now)
}

// figures are the places of the figures in a response object. Cached and CacheWrite are
// parts of Input, Reasoning is one of Output, here as in the neutral form:
//
//	{"input_tokens": 10, "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 0},
//	 "output_tokens": 4, "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 14}
var figures = codec.Figures{
	{Of: codec.InputOf, Keys: []string{"usage/input_tokens"}},
	{Of: codec.CachedOf, Keys: []string{"usage/input_tokens_details/cached_tokens"}},
	{Of: codec.CacheWriteOf, Keys: []string{"usage/input_tokens_details/cache_write_tokens"}},
	{Of: codec.OutputOf, Keys: []string{"usage/output_tokens"}},
	{Of: codec.ReasoningOf, Keys: []string{"usage/output_tokens_details/reasoning_tokens"}},
}

// usageMembers projects usage onto a response object, with the sum if that has it. Figures
// of 0 are written too: the provider's SDKs demand them. Usage is not invented.
func usageMembers(env rawjson.Value, u middleware.Usage) []lens.Member {
	if env.Get("usage").Kind() != rawjson.Object {
		return nil
	}
	members := figures.Members(env, u)
	if env.Get("usage").Get("total_tokens").Exists() {
		members = append(members, lens.Raw("usage/total_tokens", codec.Count(u.InputTokens+u.OutputTokens)))
	}
	return members
}

// finish reads status and incomplete_details:
//
//	{"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
//
// No status says that the answer ended with calls, so that their number decides. A
// status without a neutral word, such as that of an answer in the background, is
// passed on.
func finish(env rawjson.Value, calls int) middleware.FinishReason {
	switch status := codec.Text(env.Get("status")); status {
	case "completed", "":
		if calls > 0 {
			return middleware.FinishToolCalls
		}
		return middleware.FinishStop
	case "incomplete":
		switch reason := env.Get("incomplete_details").Get("reason").Str(); reason {
		case "max_output_tokens":
			return middleware.FinishLength
		case "content_filter":
			return middleware.FinishFilter
		default:
			return middleware.FinishReason(cmp.Or(reason, status))
		}
	default:
		return middleware.FinishReason(status)
	}
}

// finish returns the members that say how resp ended, if these have to change. Whether it
// ended with calls stands nowhere but in the calls.
func (a *answer) finish(resp *middleware.Response) []lens.Member {
	calls, word := len(resp.Message.ToolCalls), a.env.Get("status").Str()
	came := calls > 0 && len(a.Is.Message.ToolCalls) == 0 && word != "completed" && word != "" && resp.FinishReason != middleware.FinishLength
	switch f := resp.FinishReason; {
	case came && f == a.Is.FinishReason:
		return finishMembers(middleware.FinishToolCalls)
	case f == a.Is.FinishReason, f == finish(a.env, calls):
		return nil
	}
	return finishMembers(codec.FinishOf(resp))
}

// finishMembers projects a finish reason. One that the format has no word for is the
// reason of an incomplete answer.
func finishMembers(f middleware.FinishReason) []lens.Member {
	reason := string(f)
	switch f {
	case middleware.FinishStop, middleware.FinishToolCalls:
		return []lens.Member{lens.Text("status", "completed"), lens.Raw("incomplete_details", "null")}
	case middleware.FinishLength:
		reason = "max_output_tokens"
	}
	return []lens.Member{lens.Text("status", "incomplete"), lens.Text("incomplete_details/reason", reason)}
}
