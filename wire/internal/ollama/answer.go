package ollama

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// answer is what the lines of an answer say together.
type answer struct {
	model          string
	role           string
	text, thinking strings.Builder
	images, calls  []string // elements
	further        map[string]int
	others         []codec.Member // members of a message that this package does not know
	message        rawjson.Value  // the last one
	messages       int
	odd            bool // a member of a message is of a kind that has no place in history
	reason         string
	usage          middleware.Usage
	done, seen     bool // seen: something of this format
	strange        bool // seen: an object of another
	failure        *codec.Failure
}

// add reads the next line, and returns its message.
func (a *answer) add(root rawjson.Value) (rawjson.Value, error) {
	if a.failure == nil {
		a.failure = failureOf(root)
	}
	switch {
	case a.failure == nil:
	case root.Get("message").Get("tool_calls").Len() > 0:
		return rawjson.Value{}, codec.Shapef("calls beside or behind an error")
	default:
		return rawjson.Value{}, nil
	}
	message, err := member(root, "message", rawjson.Object)
	if err != nil {
		return message, err
	}
	done := root.Get("done")
	if !message.Exists() && !done.Exists() {
		a.strange = true
		return message, nil
	}
	a.seen = true
	if model := root.Get("model").Str(); model != "" {
		a.model = model
	}
	if message.Exists() {
		if a.done && message.Get("tool_calls").Len() > 0 {
			return message, codec.Shapef("a call behind the end of the stream")
		}
		if err := a.addMessage(message); err != nil {
			return message, err
		}
	}
	if isDone(root) {
		a.done = true
		a.end(root)
	}
	return message, nil
}

// isDone reports whether a line is the last one.
func isDone(root rawjson.Value) bool {
	done := root.Get("done")
	return done.Raw() == "true" || done.Str() == "true"
}

// end reads a line that says done.
func (a *answer) end(root rawjson.Value) {
	a.reason = codec.Text(root.Get("done_reason"))
	for key, to := range map[string]*int64{inputKey: &a.usage.Input, outputKey: &a.usage.Output} {
		if figure := root.Get(key); figure.Kind() == rawjson.Number {
			*to = max(0, codec.Int(figure))
		}
	}
}

const (
	inputKey  = "prompt_eval_count"
	outputKey = "eval_count"
)

func (a *answer) addMessage(message rawjson.Value) error {
	a.message = message
	a.messages++
	for _, s := range []struct {
		key string
		add func(string)
	}{
		{"role", func(role string) {
			if role != "" {
				a.role = role
			}
		}},
		{"content", func(piece string) { a.text.WriteString(piece) }},
		{"thinking", func(piece string) { a.thinking.WriteString(piece) }},
	} {
		piece := message.Get(s.key)
		k := piece.Kind()
		a.odd = a.odd || k != rawjson.String && k != rawjson.Null && k != rawjson.Invalid
		s.add(piece.Str())
	}
	for key, to := range map[string]*[]string{"images": &a.images, "tool_calls": &a.calls} {
		list := message.Get(key)
		k := list.Kind()
		a.odd = a.odd || k != rawjson.Array && k != rawjson.Null && k != rawjson.Invalid
		if key == "tool_calls" && k != rawjson.Array && !list.Empty() && (k == rawjson.Object || list.Str() != "") {
			return codec.Shapef("tool_calls is of kind %s", k)
		}
		if k != rawjson.Array {
			continue
		}
		for e := range list.Each() {
			*to = append(*to, e.Raw())
		}
	}
	a.keep(message)
	return nil
}

// keep keeps members of a message that this package does not know; of several
// values the last.
func (a *answer) keep(message rawjson.Value) {
	for m := range message.Each() {
		switch key := m.Key(); key {
		case "role", "content", "thinking", "images", "tool_calls":
		default:
			i, ok := a.further[key]
			if !ok {
				if a.further == nil {
					a.further = map[string]int{}
				}
				i = len(a.others)
				a.further[key] = i
				a.others = append(a.others, codec.Member{Key: key})
			}
			a.others[i].Raw = m.Raw()
		}
	}
}

// turn returns the message as it stands in the history of a request: as it
// was written, if it came in one piece.
func (a *answer) turn() (rawjson.Value, error) {
	if a.messages == 1 && !a.odd && strings.EqualFold(a.role, string(middleware.RoleAssistant)) {
		return codec.ParseObject(a.message.Raw())
	}
	members := []codec.Member{
		{Key: "role", Raw: rawjson.Quote(string(middleware.RoleAssistant))}, {Key: "content", Raw: rawjson.Quote(a.text.String())},
		quoted("thinking", a.thinking.String()), listed("images", a.images), listed("tool_calls", a.calls),
	}
	return codec.ParseObject(codec.Object(append(members, a.others...)...))
}
