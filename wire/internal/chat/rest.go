package chat

import (
	"cmp"
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
	return lens.Rest(on, &s.Units, sent, resp, readAnswer, func(sent int) (*stream, error) { return codec.Given(s, newStream(false), sent) })
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
	reasoned := !own && hasReasoning(was)
	if !own {
		was = rawjson.Value{}
	}
	var left []lens.Member
	for m := range message.Each() {
		switch key := m.Key(); {
		case key == "tool_calls":
			for c := range m.Each() {
				members := []lens.Member{lens.Raw("index", codec.Count(int64(len(calls))))}
				for f := range c.Each() {
					if f.Key() != "index" {
						members = append(members, lens.Raw(f.Key(), f.Raw()))
					}
				}
				calls = append(calls, codec.Object(members...))
			}
		case key == "role" && g.role: // openai-python adds up the roles of a stream as if they were text
		case m.Kind() == rawjson.Null && g.role, reasoned && strings.HasPrefix(key, "reasoning"):
		default:
			rest, err := behind(m, was.Get(key))
			if err != nil {
				return "", nil, err
			}
			left = append(left, lens.Raw(key, rest))
		}
	}
	return codec.Object(left...), calls, nil
}

var errShown = codec.Unencodablef("a change of what was shown already")

// behind returns what of v, a member of a message, is not in was, its beginning; "" for
// nothing. Of two lists the last element of was may go on, if it is a text.
func behind(v, was rawjson.Value) (string, error) {
	switch kind := v.Kind(); {
	case v.Raw() == was.Raw():
		return "", nil
	case kind == rawjson.String && was.Kind() == kind:
		rest, ok := strings.CutPrefix(v.Str(), was.Str())
		if !ok {
			return "", errShown
		}
		return lens.Word("", rest).Raw, nil
	case kind == rawjson.Array && was.Kind() == kind && v.Len() >= was.Len():
		had, rest := slices.Collect(was.Each()), []string(nil)
		i := 0
		for e := range v.Each() {
			raw := e.Raw()
			if i < len(had) && raw != had[i].Raw() {
				text, err := behind(e.Get("text"), had[i].Get("text"))
				if err != nil || i < len(had)-1 || e.Get("text").Kind() != rawjson.String {
					return "", errShown
				}
				if raw, err = on.Set(e, lens.Raw("text", cmp.Or(text, `""`))); err != nil {
					return "", err
				}
			} else if i < len(had) {
				raw = ""
			}
			if i++; raw != "" {
				rest = append(rest, raw)
			}
		}
		return lens.List("", rest).Raw, nil
	case v.Key() == "content" && kind != rawjson.Null && was.Exists() && was.Kind() != rawjson.Null:
		return "", errShown
	}
	return v.Raw(), nil
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
