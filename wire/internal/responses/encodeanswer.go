package responses

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// EncodeResponse is part of wire.Codec.
func (Format) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	a, err := answerOf(resp)
	if err != nil {
		return nil, unencodable(err)
	}
	out, err := a.encode(resp)
	return []byte(out), unencodable(err)
}

func (a *answer) encode(resp *middleware.Response) (string, error) {
	if len(resp.Choices) > 0 {
		return "", codec.Unencodablef("further choices")
	}
	if resp.FinishReason == a.was.FinishReason && resp.Model == a.was.Model && resp.Usage == a.was.Usage && a.msg.same(resp.Message) {
		return a.body, nil
	}
	items, err := writer{answer: true}.assistant(resp.Message, a.msg)
	if err != nil {
		return "", err
	}
	end, err := a.end(resp)
	switch {
	case err != nil:
		return "", err
	case a.stream == nil:
		patch := a.envelope(resp, end)
		a.joined(patch, resp.Message)
		patch.Add(codec.Splice(a.env.Get("output"), texts(items)), a.once("output"))
		edits, err := patch.Edits()
		if err != nil {
			return "", err
		}
		return codec.Apply(a.body, edits)
	}
	var out string
	if end == nil && a.inPlace(items) {
		out, err = a.editStream(resp, items)
	} else {
		out, err = a.rebuild(resp, items, end)
	}
	if err != nil {
		return "", err
	}
	return out, shows(out, resp.Message)
}

// shows returns an error unless a stream reads as m: in a stream that is not as
// the provider writes it, a change may have found some of its copies only.
func shows(stream string, m middleware.Message) error {
	resp, err := codec.Decode(Format{}.NewStream(nil, nil), []byte(stream))
	if err != nil {
		return err
	}
	if resp.Message.Text() != m.Text() || !slices.EqualFunc(resp.Message.ToolCalls, m.ToolCalls, codec.SameCall) {
		return codec.Unencodablef("a change that the stream does not show")
	}
	return nil
}

// once returns an error if the response object, or its member, stands there
// twice.
func (a *answer) once(key string) error {
	if a.stream != nil {
		if _, err := codec.Only(a.env.Parent(), "response"); err != nil {
			return err
		}
	}
	_, err := codec.Only(a.env, key)
	return err
}

// end returns the members that say how the answer ended, if these have to
// change. Whether it ended with calls stands nowhere but in the calls.
func (a *answer) end(resp *middleware.Response) ([]codec.Member, error) {
	status := func(word, reason string) []codec.Member {
		details := "null"
		if reason != "" {
			details = codec.Object(member("reason", reason))
		}
		return []codec.Member{member("status", word), {Key: "incomplete_details", Raw: details}}
	}
	had, has := len(a.msg.was.ToolCalls) > 0, len(resp.Message.ToolCalls) > 0
	now := resp.FinishReason
	natural := finish(a.env, len(resp.Message.ToolCalls))
	word := a.env.Get("status").Str()
	switch {
	case has && !had && now == a.was.FinishReason && now != middleware.FinishLength && word != "completed" && word != "":
		return status("completed", ""), nil
	case now == natural, now == a.was.FinishReason:
		return nil, nil
	case now == middleware.FinishLength:
		return status("incomplete", "max_output_tokens"), nil
	case now == middleware.FinishFilter:
		return status("incomplete", "content_filter"), nil
	case now == middleware.FinishToolCalls && has, now == middleware.FinishStop && !has:
		return status("completed", ""), nil
	}
	return nil, codec.Unencodablef("the finish reason %q with %d calls", now, len(resp.Message.ToolCalls))
}

// envelope patches what stands around the output.
func (a *answer) envelope(resp *middleware.Response, end []codec.Member) *codec.Patch {
	patch := codec.NewPatch(a.env)
	for _, m := range end {
		if m.Raw != "null" || a.env.Get(m.Key).Exists() {
			patch.Set(m.Key, m.Raw)
		}
	}
	if resp.Model != a.was.Model {
		patch.Set("model", rawjson.Quote(resp.Model))
	}
	if usage := a.env.Get("usage"); resp.Usage != a.was.Usage && usage.Kind() == rawjson.Object {
		patch.Add(usageEdits(usage, a.was.Usage, resp.Usage))
		patch.Add(nil, a.once("usage"))
	}
	return patch
}

// usageEdits writes the figures that have changed.
func usageEdits(v rawjson.Value, was, now middleware.Usage) ([]rawjson.Edit, error) {
	patch := codec.NewPatch(v)
	figure := func(p *codec.Patch, key string, was, now int64) {
		if was != now {
			p.Set(key, codec.Count(now))
		}
	}
	details := func(key string, set func(p *codec.Patch)) {
		if old := v.Get(key); old.Kind() == rawjson.Object {
			inner := codec.NewPatch(old)
			set(inner)
			edits, err := inner.Edits()
			if _, twice := codec.Only(v, key); len(edits) > 0 && twice != nil {
				err = twice
			}
			patch.Add(edits, err)
			return
		}
		doc, _ := codec.ParseObject("{}")
		inner := codec.NewPatch(doc)
		set(inner)
		if raw, err := inner.Text(); err != nil || raw != "{}" {
			patch.Set(key, raw)
		}
	}
	figure(patch, "input_tokens", was.Input, now.Input)
	figure(patch, "output_tokens", was.Output, now.Output)
	details("input_tokens_details", func(p *codec.Patch) {
		figure(p, "cached_tokens", was.Cached, now.Cached)
		figure(p, "cache_write_tokens", was.CacheWrite, now.CacheWrite)
	})
	details("output_tokens_details", func(p *codec.Patch) { figure(p, "reasoning_tokens", was.Reasoning, now.Reasoning) })
	if v.Get("total_tokens").Exists() && (was.Input != now.Input || was.Output != now.Output) {
		patch.Set("total_tokens", codec.Count(now.Input+now.Output))
	}
	return patch.Edits()
}

// joined patches output_text, the copy of all texts that some servers add.
func (a *answer) joined(patch *codec.Patch, now middleware.Message) {
	old := a.env.Get("output_text")
	if old.Kind() == rawjson.String && old.Str() != "" && old.Str() == a.msg.was.Text() && now.Text() != old.Str() {
		patch.Set("output_text", rawjson.Quote(now.Text()))
	}
}
