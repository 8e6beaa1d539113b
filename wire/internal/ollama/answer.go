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
	reason         string
	usage          middleware.Usage
	done, seen     bool // seen: something of this format
	strange        bool // seen: an object of another
	failure        *codec.Failure
}

// add reads the next line, and returns its message.
func (a *answer) add(root rawjson.Value) (rawjson.Value, error) {
	if a.failure != nil {
		return rawjson.Value{}, nil
	}
	if a.failure = failureOf(root); a.failure != nil {
		return rawjson.Value{}, nil
	}
	message, err := member(root, "message", rawjson.Object)
	if err != nil {
		return message, err
	}
	done, err := member(root, "done", rawjson.Bool)
	if err != nil {
		return message, err
	}
	if !message.Exists() && !done.Exists() {
		a.strange = true
		return message, nil
	}
	a.seen = true
	if model, err := text(root, "model"); err != nil || model != "" {
		if a.model = model; err != nil {
			return message, err
		}
	}
	if message.Exists() {
		if err := a.addMessage(message); err != nil {
			return message, err
		}
	}
	if done.Raw() != "true" {
		return message, nil
	}
	a.done = true
	return message, a.end(root)
}

// end reads a line that says done.
func (a *answer) end(root rawjson.Value) error {
	var err error
	if a.reason, err = text(root, "done_reason"); err != nil {
		return err
	}
	for key, to := range map[string]*int64{inputKey: &a.usage.Input, outputKey: &a.usage.Output} {
		figure, err := member(root, key, rawjson.Number)
		if err != nil {
			return err
		}
		if figure.Exists() {
			*to = max(0, codec.Int(figure))
		}
	}
	return nil
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
		piece, err := text(message, s.key)
		if err != nil {
			return err
		}
		s.add(piece)
	}
	for key, to := range map[string]*[]string{"images": &a.images, "tool_calls": &a.calls} {
		list, err := member(message, key, rawjson.Array)
		if err != nil {
			return err
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
	if a.messages == 1 && a.role != "" {
		return codec.ParseObject(a.message.Raw())
	}
	role := a.role
	if role == "" {
		role = string(middleware.RoleAssistant)
	}
	members := []codec.Member{
		{Key: "role", Raw: rawjson.Quote(role)}, {Key: "content", Raw: rawjson.Quote(a.text.String())},
		quoted("thinking", a.thinking.String()), listed("images", a.images), listed("tool_calls", a.calls),
	}
	return codec.ParseObject(codec.Object(append(members, a.others...)...))
}
