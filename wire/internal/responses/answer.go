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

// answer is an answer as it was read: one object, or the result of the events of a stream.
// The Native of a response remembers it, and an edit starts from it. No field of it
// changes after reading.
type answer struct {
	codec.Answered
	head    string        // the response object of the event that opened a stream
	started bool          // response.in_progress came
	ending  string        // the type of the event that ended it
	done    bool          // [DONE] came after it
	env     rawjson.Value // the response object; of a stream, the object of the last event
	turn    turn          // the message, and its items
	from    []int         // of the items of a stream: their places in it; -1: only the end has it
	events  [][]itemEvent // about the items of a stream that the provider runs
}

// newAnswer reads the response object env:
//
//	{"id": …, "status": "completed", "model": …, "output": [item, …], "usage": {…}}
//
// values are the items, of a stream those that its events made.
func newAnswer(s *stream, env rawjson.Value, values []rawjson.Value) (*answer, error) {
	a := &answer{head: s.opening.head, started: s.opening.started, ending: s.ending, done: s.done, env: env}
	var err error
	if a.turn, err = readAnswer(values, env.Get("store").Raw() == "false"); err != nil {
		return nil, err
	}
	a.Is = middleware.Response{Message: a.turn.message, ID: codec.Text(env.Get("id")), Model: codec.Text(env.Get("model")), Usage: figures.Read(env), Unpaired: a.turn.halves}
	a.Is.FinishReason = finish(env, len(a.Is.Message.ToolCalls))
	return a, nil
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
		d.item(it, " ")
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

// failed returns the error that a response object holds in the place of an answer, with its
// usage; nil without one. A failure with calls makes the answer unreadable: some clients would
// run them.
func failed(env rawjson.Value, event bool) (failure, err error) {
	if !event && env.Get("status").Str() != "failed" && (!on.Get(env, "error").Exists() || env.Get("output").Kind() == rawjson.Array) {
		return nil, nil
	}
	for v := range env.Get("output").Each() {
		if it, err := answerItem(v); err != nil || it.sort == isCall {
			return nil, codec.Shapef("calls in a response that has failed")
		}
	}
	f, _ := Format{}.ReadFailure(env)
	if u := figures.Read(env); u != (middleware.Usage{}) {
		return codec.WithUsage(inAnswer(f), codec.Text(env.Get("model")), u), nil
	}
	return inAnswer(f), nil
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
	if a.Form == codec.FormWhole && codec.SameResponse(&a.Is, resp) {
		return answerTree.Write(a.env), nil
	}
	items, err := a.items(resp)
	if err != nil {
		return "", err
	}
	env, _, err := a.edit(resp, lens.TextsOf(items, func(o written) string { return o.raw }))
	return env, err
}

// canonical returns the object text in the one spelling.
func canonical(text string, tree codec.Tree) (rawjson.Value, error) {
	v, err := codec.ParseObject(text)
	if err != nil {
		return v, err
	}
	return codec.ParseObject(tree.Write(v))
}

// edit returns the response object of resp, with items for its output. more are further
// members to set. status tells how the answer ends.
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
	return codec.EncodeAnswer(f, path, body, resp, codec.Writing{Streamed: codec.FormEvents, Whole: freshAnswer})
}

// freshAnswer writes a response as one object, with the members that the provider's SDKs
// demand: as a change of an empty answer. Reasoning of another provider is left out: the
// provider would refuse it in the next request. "store" is false, because the provider does
// not know the answer: a request cannot continue from its id.
func freshAnswer(resp *middleware.Response) (string, error) {
	null := func(key string) lens.Member { return lens.Raw(key, "null") }
	a, err := codec.Reread[*answer](Format{}, on.Native(on.Object(append([]lens.Member{
		lens.Text("id", codec.NewID("resp_")), lens.Text("object", "response"), lens.Raw("created_at", codec.Count(time.Now().Unix())),
		lens.Text("status", "completed"), null("error"), null("incomplete_details"), null("instructions"), lens.Text("model", ""), lens.Raw("output", "[]"),
		lens.Raw("parallel_tool_calls", "true"), null(previous), lens.Raw("store", "false"),
		null("temperature"), lens.Text("tool_choice", "auto"), lens.Raw("tools", "[]"), null("top_p"),
		lens.Raw("metadata", "{}"), lens.Raw("usage/total_tokens", "0"),
	}, figures.Members(rawjson.Value{}, middleware.Usage{})...)...)))
	if err != nil {
		return "", err
	}
	now := *resp
	now.Message, now.FinishReason, now.Usage = codec.WithCallIDs(resp.Message, "call_"), codec.FinishOf(resp), codec.FiguresOf(resp)
	return a.Whole(&now)
}

// Stream writes the answer, with the changes of resp, as a stream after the part that the
// client has. The items of a later answer continue the numbers. Items that were begun are
// finished. The end has the id that the client has seen. It names the items that were shown, so
// that history has the text that the user has read, and the items after them.
func (a *answer) Stream(resp *middleware.Response, client *codec.Client) (string, error) {
	g, err := client.Of.(*stream).clientState(client.Has.(*stream))
	if err != nil {
		return "", err
	}
	items, err := a.items(resp)
	if err != nil {
		return "", err
	}
	t := transcript{beginning: g.beginning, ids: map[string]bool{}}
	if !t.begun {
		t.named, t.numbered = true, true
	}
	if t.head == "" {
		if err := t.created(a, resp); err != nil {
			return "", err
		}
	}
	if a.started && !t.started && len(g.items) == 0 {
		t.write(started, lens.Raw("response", t.head))
	}
	var output []string
	if client.Own {
		items = a.begun(g, items)
	}
	for _, has := range g.items {
		raw := has.completed
		if raw == "" && (!client.Own || has.sort == isReasoning) && has.final.Exists() {
			raw = has.final.Raw()
		}
		if raw, err = t.item(raw, has); err != nil {
			return "", err
		}
		output = append(output, raw)
	}
	for _, o := range items {
		if !strings.HasPrefix(o.raw, "{") {
			continue // no item, and no event could bring it
		}
		has := clientItem{at: -1, index: t.index}
		if o.from >= 0 && o.from < len(a.events) {
			has.missing = a.events[o.from]
		}
		raw, err := t.item(o.raw, has)
		if err != nil {
			return "", err
		}
		output = append(output, raw)
	}
	return t.end(a, resp, output)
}

// clientState is the part of a stream that a client has, with the final form of its items.
type clientState struct {
	beginning
	items []clientItem
}

// clientItem is an item that the client has at least the beginning of.
type clientItem struct {
	at    int // its place in the stream
	index int64
	sort  sort
	progress
	missing   []itemEvent   // about the item: those that the client has not got
	final     rawjson.Value // the item, as the stream read on; absent if it never ended
	completed string        // the item that it becomes, as JSON; "": none of the answer's own
}

// clientState returns what a client has of s, which from has read.
func (s *stream) clientState(from *stream) (*clientState, error) {
	g, final := &clientState{beginning: from.snapshot}, map[int]rawjson.Value{}
	if s.answer != nil {
		for i, at := range s.answer.from {
			final[at] = s.answer.turn.items[i].val
		}
	}
	for i, it := range from.items[:from.snapshot.itemCount] {
		has := clientItem{at: i, index: it.index, sort: it.sort, progress: it.progress, final: final[i]}
		if it.epoch == from.epoch {
			has.progress = it.before
		}
		has.missing = s.items[i].events[len(has.events):]
		if !has.final.Exists() {
			v, err := s.items[i].value(rawjson.Value{})
			if err != nil {
				return nil, err
			}
			has.final = v
		}
		g.items = append(g.items, has)
	}
	slices.SortStableFunc(g.items, func(a, b clientItem) int { return cmp.Compare(a.index, b.index) })
	return g, nil
}

// begun notes which of items, the items of the stream itself, go on with what is given, and
// returns the others. A text that was written anew goes on with the text that was begun.
func (a *answer) begun(g *clientState, items []written) (others []written) {
	at := map[int]*clientItem{}
	for i := range g.items {
		at[g.items[i].at] = &g.items[i]
	}
	for _, o := range items {
		if o.from >= 0 && o.from < len(a.from) && at[a.from[o.from]] != nil {
			at[a.from[o.from]].completed = o.raw
		} else {
			others = append(others, o)
		}
	}
	i := 0
	return slices.DeleteFunc(others, func(o written) bool {
		for ; i < len(g.items); i++ {
			if has := &g.items[i]; has.completed == "" && has.sort == isMessage && has.done == "" {
				break
			}
		}
		if o.from >= 0 || o.sort != isMessage || i == len(g.items) {
			return false
		}
		v, _ := codec.ParseObject(o.raw)
		raw, err := on.Set(v, lens.Raw("id", cmp.Or(g.items[i].final.Get("id").Raw(), v.Get("id").Raw())))
		g.items[i].completed = raw
		return err == nil
	})
}

// transcript writes a stream after the part that a client has.
type transcript struct {
	beginning
	out   strings.Builder
	index int64           // the output_index of the next item
	ids   map[string]bool // of the items so far
}

// write writes an event, with a name and the next number if events have them.
func (t *transcript) write(typ string, members ...lens.Member) {
	all := []lens.Member{lens.Text("type", typ)}
	if t.numbered {
		all = append(all, lens.Raw("sequence_number", codec.Count(t.next)))
		t.next++
	}
	if t.named {
		t.out.WriteString("event: " + typ + "\n")
	}
	t.out.WriteString("data: " + codec.OneLine(codec.Object(append(all, members...)...)) + "\n\n")
}

// created writes the event that opens the stream.
func (t *transcript) created(a *answer, resp *middleware.Response) error {
	head, set := a.env, []lens.Member{lens.Text("status", "in_progress"), lens.Raw("output", "[]")}
	if a.head != "" {
		head, _ = codec.ParseObject(a.head)
		set = nil
	}
	if resp.Model != a.Is.Model {
		set = append(set, lens.Text("model", resp.Model))
	}
	raw, err := on.Set(head, set...)
	if err == nil {
		head, err = codec.ParseObject(raw)
	}
	t.head = headTree.Write(head)
	t.write("response.created", lens.Raw("response", t.head))
	return err
}

// end writes the event that ends the answer, under the identity of its beginning:
// clients refuse the end of another answer.
func (t *transcript) end(a *answer, resp *middleware.Response, output []string) (string, error) {
	var identity []lens.Member
	head, _ := codec.ParseObject(t.head)
	for _, key := range []string{"id", "created_at"} {
		if first := head.Get(key); first.Exists() && first.Raw() != a.env.Get(key).Raw() {
			identity = append(identity, lens.Raw(key, first.Raw()))
		}
	}
	env, status, err := a.edit(resp, output, identity...)
	if err != nil {
		return "", err
	}
	typ := cmp.Or(a.ending, "response.completed")
	if status == "completed" || status == "incomplete" {
		typ = "response." + status
	}
	t.write(typ, lens.Raw("response", env))
	if a.done {
		t.out.WriteString("data: [DONE]\n\n")
	}
	return t.out.String(), nil
}

// item writes the missing events of an item, as the provider does: the item without its
// texts and arguments, then these piece by piece, then the whole item. It returns the item as the
// client has it then.
func (t *transcript) item(raw string, has clientItem) (string, error) {
	if raw == "" {
		return "", codec.ErrShown
	}
	v, err := canonical(raw, itemTree)
	if err != nil {
		return "", err
	}
	t.index = max(t.index, has.index+1)
	if has.done != "" {
		done, err := canonical(has.done, itemTree)
		if err == nil && done.Raw() != v.Raw() {
			err = codec.ErrShown
		}
		t.ids[v.Get("id").Str()] = true
		return v.Raw(), err
	}
	id := v.Get("id").Raw()
	if has.at < 0 {
		if v, err = t.ownID(v); err != nil {
			return "", err
		}
	}
	if v, err = argumentsAsText(v); err != nil {
		return "", err
	}
	t.ids[v.Get("id").Str()] = true
	index := lens.Raw("output_index", codec.Count(has.index))
	if has.at < 0 && (len(has.missing) == 0 || has.missing[0].typ != added || id != v.Get("id").Raw()) {
		bare, err := announced(v)
		if err != nil {
			return "", err
		}
		t.write(added, index, lens.Raw("item", bare))
		has.missing = nil
	}
	for _, e := range has.missing {
		if err := t.event(e, index); err != nil {
			return "", err
		}
	}
	if err := t.pieces(v, []lens.Member{lens.Raw("item_id", v.Get("id").Raw()), index}, has.blocks); err != nil {
		return "", err
	}
	t.write("response.output_item.done", index, lens.Raw("item", v.Raw()))
	return v.Raw(), nil
}

// event writes an event about an item that the provider runs, with its next number.
func (t *transcript) event(e itemEvent, index lens.Member) error {
	v, err := canonical(e.raw, eventTree)
	members := []lens.Member{index}
	for m := range v.Each() {
		if !slices.Contains([]string{"type", "sequence_number", "output_index"}, rawjson.Fold(m.Key())) {
			members = append(members, lens.Raw(m.Key(), m.Raw()))
		}
	}
	t.write(e.typ, members...)
	return err
}

// callForm returns where the client's call v has its arguments; false for any other item.
func callForm(v rawjson.Value) (f form, ok bool) {
	f, ok = calls[v.Get("type").Str()]
	return f, ok && f.kind != middleware.KindBuiltin
}

// argumentsAsText returns v with the arguments of a call as a string: clients join the
// deltas, which are strings.
func argumentsAsText(v rawjson.Value) (rawjson.Value, error) {
	f, ok := callForm(v)
	if !ok || v.Get(f.args[0]).Kind() != rawjson.Object {
		return v, nil
	}
	return on.Changed(v, lens.Text(f.args[0], v.Get(f.args[0]).Raw()))
}

// pieces writes the missing texts of an item, or the arguments of a call. place identifies the
// item; blocks are the texts that the client has.
func (t *transcript) pieces(v rawjson.Value, place []lens.Member, blocks []block) error {
	if typ := v.Get("type").Str(); typ == "message" || typ == "reasoning" {
		for _, list := range []string{"summary", "content"} {
			i := int64(0)
			for b := range v.Get(list).Each() {
				if err := t.block(place, list, i, b, blocks); err != nil {
					return err
				}
				i++
			}
		}
	}
	if f, ok := callForm(v); ok {
		event, args := "response.function_call_arguments", textOr(v.Get(f.args[0]), `""`)
		if f.kind == middleware.KindCustom {
			event = "response.custom_tool_call_input"
		}
		t.write(event+".delta", slices.Concat(place, []lens.Member{lens.Raw("delta", args)})...)
		t.write(event+".done", slices.Concat(place, []lens.Member{lens.Raw(f.args[0], args)})...)
	}
	return nil
}

// ownID returns an item with an id that no other item of the stream has: clients join
// what has one id, or none.
func (t *transcript) ownID(v rawjson.Value) (rawjson.Value, error) {
	was := v.Get("id").Str()
	switch {
	case was != "" && !t.ids[was]:
		return v, nil
	case was == "":
		was = "item"
	case v.Get("type").Str() == "mcp_approval_request":
		return v, codec.Unencodablef("two items of one id, of which one is answered by it")
	}
	id := was
	for n := int64(2); t.ids[id]; n++ {
		id = was + "_" + codec.Count(n)
	}
	return on.Changed(v, lens.Text("id", id))
}

// textOr returns the JSON text of v, if v is a string, else other, a JSON text as
// well.
func textOr(v rawjson.Value, other string) string {
	if v.Kind() == rawjson.String {
		return v.Raw()
	}
	return other
}

// block writes the missing events of a block of a message or of reasoning: the part without
// its text, the text in one delta, the text again, the part with its text. A block without a
// text is a part alone. place identifies the item, list the member that has the block, and i
// its index; blocks are the ones that the client has.
func (t *transcript) block(place []lens.Member, list string, i int64, b rawjson.Value, blocks []block) error {
	typ := b.Get("type").Str()
	key, event, part, counter := textMember(typ), "response."+typ, "response.content_part", "content_index"
	if list == "summary" {
		event, part, counter = "response.reasoning_summary_text", "response.reasoning_summary_part", "summary_index"
	}
	write := func(typ string, members ...lens.Member) {
		t.write(typ, slices.Concat(place, []lens.Member{lens.Raw(counter, codec.Count(i))}, members)...)
	}
	whole, text := lens.Raw("part", b.Raw()), textOr(b.Get(key), `""`)
	at := slices.IndexFunc(blocks, func(b block) bool { return b.list == list && b.index == i })
	if key == "" || event == "response.text" {
		if at < 0 {
			write(part+".added", whole)
			write(part+".done", whole)
		}
		return nil
	}
	annotations, probs := lens.None("annotations"), lens.None("logprobs")
	if typ == "output_text" {
		annotations.Raw, probs.Raw = "[]", "[]"
	}
	delta := text
	if at < 0 {
		write(part+".added", lens.Raw("part", on.Object(lens.Text("type", typ), lens.Text(key, ""), annotations)))
	} else {
		rest, ok := strings.CutPrefix(b.Get(key).Str(), blocks[at].text.String())
		switch {
		case !ok || rest != "" && blocks[at].ended:
			return codec.ErrShown
		case blocks[at].ended:
			return nil
		}
		delta = rawjson.Quote(rest)
	}
	if at < 0 || delta != `""` {
		write(event+".delta", lens.Raw("delta", delta), probs)
	}
	write(event+".done", lens.Raw(key, text), probs)
	write(part+".done", whole)
	return nil
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
// The format has no status for an answer that ended with calls, so their number decides. A
// status without a neutral word, such as one for an answer in the background, is passed on.
func finish(env rawjson.Value, calls int) middleware.FinishReason {
	word := cmp.Or(codec.Text(env.Get("status")), "completed")
	if word == "incomplete" {
		word = cmp.Or(env.Get("incomplete_details").Get("reason").Str(), word)
	}
	return codec.Finish(word, calls > 0)
}

// finish returns the members for the end of resp, if they have to change. Only the calls show
// whether it ended with calls.
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
