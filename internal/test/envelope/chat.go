package envelope

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
)

// chatMessage is a message, or a delta of one, with calls in either form.
type chatMessage struct {
	ToolCalls []struct {
		Index    json.RawMessage `json:"index"`
		ID       text            `json:"id"`
		Function function        `json:"function"`
	} `json:"tool_calls"`
	FunctionCall *function `json:"function_call"`
}

// chatBody is an answer, or a chunk of one.
type chatBody struct {
	ID      text `json:"id"`
	Object  text `json:"object"`
	Choices []struct {
		Message chatMessage `json:"message"`
		Delta   chatMessage `json:"delta"`
	} `json:"choices"`
}

// chatWhole reads the first choice of the list, as most programs do.
func chatWhole(events []event) (calls []Call) {
	return whole(events, chatBody.calls)
}

// calls returns the calls of the first choice, those in the old form last. A program
// may look at one form only: then it runs some of them.
func (body chatBody) calls() (calls []Call) {
	if len(body.Choices) == 0 {
		return nil
	}
	m := body.Choices[0].Message
	for _, c := range m.ToolCalls {
		calls = append(calls, Call{string(c.Function.Name), string(c.Function.Arguments)})
	}
	if f := m.FunctionCall; f != nil {
		calls = append(calls, Call{string(f.Name), string(f.Arguments)})
	}
	return calls
}

// chatStyle is how a client finds the call that a delta belongs to, and what it
// does with its name.
type chatStyle struct {
	key       func(index json.RawMessage) text // nil: by order, and an id that is not the last one's begins a call
	keepsName bool                             // the first one stays
	oneID     bool                             // chunks with another id than the first one's are left out
	oneObject bool                             // chunks that do not say what they are are left out
}

// Go's and Python's SDKs key a map by the value of the index, JavaScript's by
// its text; the Vercel AI SDK keeps the first name, programs mostly the last. The
// accumulator of openai-go and the helper of openai-python leave chunks out.
var chatStyles = map[string]chatStyle{
	"index, last name":          {key: rawIndex},
	"index, first name":         {key: rawIndex, keepsName: true},
	"text of index, first name": {key: textIndex, keepsName: true},
	"new id, new call":          {},
	"openai-go":                 {key: rawIndex, oneID: true},
	"openai-python":             {key: rawIndex, oneObject: true},
}

// rawIndex: a delta without an index has 0, as in a struct of Go.
func rawIndex(index json.RawMessage) text {
	if len(index) == 0 || string(index) == "null" {
		return "0"
	}
	return text(index)
}

// textIndex: in JavaScript the keys 0 and "0" of an object are the same.
func textIndex(index json.RawMessage) text {
	key := rawIndex(index)
	if key[0] == '"' {
		key = text(unquote(string(key)))
	}
	return key
}

// find returns the call of a delta, a new one where there is none.
func (s chatStyle) find(calls []building, index json.RawMessage, id text) (int, []building) {
	if s.key == nil {
		if last := len(calls) - 1; last >= 0 && (id == "" || id == "null" || calls[last].key == id) {
			return last, calls
		}
		return len(calls), append(calls, building{key: id})
	}
	key := s.key(index)
	if i := slices.IndexFunc(calls, func(b building) bool { return b.key == key }); i >= 0 {
		return i, calls
	}
	return len(calls), append(calls, building{key: key})
}

// chatDeltas reads the first choice of each chunk until [DONE].
func chatDeltas(events []event, style chatStyle) []Call {
	var calls, old []building
	var id text
	for _, e := range events {
		if strings.TrimSpace(e.data) == "[DONE]" {
			break
		}
		body, ok := decode[chatBody](e.data)
		if !ok {
			continue
		}
		id = cmp.Or(id, body.ID)
		if len(body.Choices) == 0 || style.oneID && body.ID != id || style.oneObject && body.Object != "chat.completion.chunk" {
			continue
		}
		d := body.Choices[0].Delta
		for _, c := range d.ToolCalls {
			var i int
			i, calls = style.find(calls, c.Index, c.ID)
			name := c.Function.Name
			if style.keepsName && calls[i].call.Name != "" {
				name = ""
			}
			calls[i].add(name, c.Function.Arguments)
		}
		if f := d.FunctionCall; f != nil {
			old = add(old, "", f.Name, f.Arguments)
		}
	}
	calls = slices.DeleteFunc(calls, func(b building) bool { return style.key != nil && several(b.call.Arguments) })
	return append(built(calls), built(old)...)
}

// several reports whether arguments are several JSON texts in a row: some servers
// number every call 0, and a client that joins those has arguments that it cannot
// read.
func several(arguments string) bool {
	d := json.NewDecoder(strings.NewReader(arguments))
	for n := 0; ; n++ {
		var v any
		if err := d.Decode(&v); err != nil {
			return n > 1 && errors.Is(err, io.EOF)
		}
	}
}
