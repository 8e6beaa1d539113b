package chat

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// shown is what a client has of a choice.
type shown struct {
	role    bool   // its role: a stream has it once
	message string // "" for nothing
}

// Rest returns what completes a stream of which the client has a part. resp is the answer of s, perhaps with changes behind
// what was shown, or a later answer, which follows as further chunks.
func (s *stream) Rest(sent int, resp *middleware.Response) ([]byte, error) {
	a, err := lens.Answer(on, resp, readAnswer)
	if err != nil {
		return nil, err
	}
	own := on.Raw(resp.Native) == s.Text()
	switch {
	case own && a.plain && codec.SameResponse(a.is, resp):
		return []byte(a.text[sent:]), nil
	case sent == 0:
		return Format{}.EncodeResponse(resp)
	}
	object, err := a.write(resp)
	if err != nil {
		return nil, err
	}
	given, err := s.given(sent)
	if err != nil {
		return nil, err
	}
	out, err := events(object, given.like, given.shown, own, true)
	return []byte(out), err
}

// given returns a stream with what the client has after the first sent bytes.
func (s *stream) given(sent int) (*stream, error) {
	out, safe, _ := s.Shown()
	if sent == safe && s.Marked() {
		return s, nil
	}
	given := newStream(false)
	_, err := given.Write([]byte(out[:sent]))
	given.Mark()
	return given, err
}

// events writes an answer that is one object as a stream behind what is given, of this
// answer if own, else of an earlier one: for each choice the message, its calls and the
// end, and then, if usage is set, the figures. Each is one chunk, because a client joins
// chunks of any size. The chunks take the members of the first ones, like, as clients
// drop those of another id.
func events(object string, like []lens.Member, given map[int64]shown, own, usage bool) (string, error) {
	v, err := codec.ParseObject(object)
	if err != nil {
		return "", err
	}
	if len(like) == 0 {
		like = envelope(v)
	}
	var out strings.Builder
	write := func(members ...lens.Member) {
		out.WriteString(eventText(codec.Object(append(slices.Clone(like), members...)...)))
	}
	for c := range v.Get("choices").Each() {
		n, _ := indexOf(c)
		choice := func(delta, finish string) {
			write(lens.Raw("choices", "["+codec.Object(lens.Raw("index", codec.Count(n)), lens.Raw("delta", delta), lens.Raw("finish_reason", finish))+"]"))
		}
		left, calls, err := given[n].lacks(c.Get("message"), own)
		if err != nil {
			return "", err
		}
		if left != "{}" {
			choice(left, "null")
		}
		if len(calls) > 0 {
			choice(codec.Object(lens.List("tool_calls", calls)), "null")
		}
		if finish := c.Get("finish_reason"); finish.Str() != "" {
			choice("{}", finish.Raw())
		}
	}
	if figures := v.Get("usage"); usage && figures.Kind() == rawjson.Object {
		write(lens.Raw("choices", "[]"), lens.Raw("usage", figures.Raw()))
	}
	return out.String() + eventText("[DONE]"), nil
}

// lacks returns the delta that brings what of a message is not shown, without its calls,
// and those with their index. Behind an answer that was given up stands all of the
// message, but no second reasoning: a provider that signs it accepts that of one answer
// only.
func (g shown) lacks(message rawjson.Value, own bool) (delta string, calls []string, err error) {
	was, _ := codec.ParseObject(g.message)
	reasoned := !own && (was.Get("reasoning_content").Exists() || was.Get("reasoning").Exists() || was.Get("reasoning_details").Exists())
	if !own {
		was = rawjson.Value{}
	}
	var left []lens.Member
	for m := range message.Each() {
		was := was.Get(m.Key())
		switch key := m.Key(); {
		case key == "tool_calls":
			for c := range m.Each() {
				text, err := numbered(c.Raw(), int64(len(calls)))
				if err != nil {
					return "", nil, err
				}
				calls = append(calls, text)
			}
		case key == "role": // openai-python adds up the roles of a stream as if they were text
			if !g.role {
				left = append(left, lens.Raw("role", m.Raw()))
			}
		case m.Kind() == rawjson.Null && g.role, reasoned && strings.HasPrefix(key, "reasoning"):
		case m.Kind() == rawjson.String && was.Kind() == rawjson.String:
			rest, ok := strings.CutPrefix(m.Str(), was.Str())
			if !ok {
				return "", nil, codec.Unencodablef("a change of what was shown already")
			}
			left = append(left, lens.Word(key, rest))
		case m.Kind() == rawjson.Array && was.Kind() == rawjson.Array:
			rest, err := lacking(m, was)
			if err != nil {
				return "", nil, err
			}
			left = append(left, lens.List(key, rest))
		case was.Exists() && m.Kind() != rawjson.Null && was.Kind() != rawjson.Null && m.Raw() != was.Raw() && key == "content":
			return "", nil, codec.Unencodablef("a change of what was shown already")
		case m.Raw() != was.Raw():
			left = append(left, lens.Raw(key, m.Raw()))
		}
	}
	return codec.Object(left...), calls, nil
}

// lacking returns what of the list is not in was, which it begins with. The text of the
// last element of was may go on.
func lacking(list, was rawjson.Value) ([]string, error) {
	all, had := slices.Collect(list.Each()), slices.Collect(was.Each())
	var out []string
	for i, v := range all {
		switch {
		case i >= len(had):
			out = append(out, v.Raw())
		case v.Raw() == had[i].Raw():
		default:
			rest, ok := strings.CutPrefix(v.Get("text").Str(), had[i].Get("text").Str())
			if !ok || i < len(had)-1 || v.Get("text").Kind() != rawjson.String {
				return nil, codec.Unencodablef("a change of what was shown already")
			}
			text, err := on.Set(v, lens.Text("text", rest))
			if err != nil {
				return nil, err
			}
			out = append(out, text)
		}
	}
	if len(all) < len(had) {
		return nil, codec.Unencodablef("a change of what was shown already")
	}
	return out, nil
}

// numbered gives a call the index that a delta has, and that a call in a message
// does not.
func numbered(text string, i int64) (string, error) {
	v, err := codec.ParseObject(text)
	if err != nil {
		return "", err
	}
	members := []lens.Member{lens.Raw("index", codec.Count(i))}
	for m := range v.Each() {
		members = append(members, lens.Raw(m.Key(), m.Raw()))
	}
	return codec.Object(members...), nil
}

// eventText writes an event.
func eventText(data string) string {
	return "data: " + codec.OneLine(data) + "\n\n"
}

// envelope returns what every chunk of a stream repeats: the plain members, such as
// id, created and model, but for what pads a chunk. OpenAI adds obfuscation, and
// Mistral p, so that an eavesdropper cannot tell tokens by the size of a chunk.
func envelope(like rawjson.Value) []lens.Member {
	var members []lens.Member
	for _, o := range others(like, "choices", "usage", "error") {
		m := like.Get(o.Key)
		switch key := m.Key(); {
		case key == "obfuscation" || key == "p" || m.Kind() == rawjson.Null || m.Kind() == rawjson.Array || m.Kind() == rawjson.Object:
		case key == "object":
			members = append(members, lens.Text(key, "chat.completion.chunk"))
		default:
			members = append(members, lens.Raw(key, m.Raw()))
		}
	}
	return members
}
