package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// client is a way to decode an answer.
type client struct {
	atCR bool                      // lines of a stream also end at CR
	tree func([]byte) (any, error) // decodes JSON
}

// clients are the ways to split lines times those to decode JSON: into a map,
// into structs, which folds case and merges members, and keeping the first of
// two members.
func clients(format string) (out []client) {
	last := func(b []byte) (any, error) {
		var v any
		err := json.Unmarshal(b, &v)
		return v, err
	}
	structs := func(b []byte) (any, error) {
		v := reflect.New(answerTypes[format])
		if err := json.Unmarshal(b, v.Interface()); err != nil {
			return nil, err
		}
		plain, err := json.Marshal(v.Interface())
		if err != nil {
			return nil, err
		}
		return last(plain)
	}
	for _, atCR := range []bool{true, false} {
		for _, tree := range []func([]byte) (any, error){last, structs, first} {
			out = append(out, client{atCR: atCR, tree: tree})
		}
	}
	return out
}

// first decodes JSON and keeps the first of members with one key.
func first(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	v, err := firstOf(d)
	if err == nil && d.More() {
		err = errors.New("more")
	}
	return v, err
}

func firstOf(d *json.Decoder) (any, error) {
	token, err := d.Token()
	delim, nested := token.(json.Delim)
	if err != nil || !nested {
		return token, err
	}
	object, list := map[string]any{}, []any{}
	for d.More() {
		key := any("")
		if delim == '{' {
			if key, err = d.Token(); err != nil {
				return nil, err
			}
		}
		v, err := firstOf(d)
		if err != nil {
			return nil, err
		}
		if _, again := object[key.(string)]; !again {
			object[key.(string)] = v
		}
		list = append(list, v)
	}
	if _, err = d.Token(); delim == '{' {
		return object, err
	}
	return list, err
}

type (
	function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	chatMessage struct {
		ToolCalls []struct {
			Index    int      `json:"index"`
			ID       string   `json:"id"`
			Function function `json:"function"`
		} `json:"tool_calls"`
		FunctionCall *function `json:"function_call"`
	}
	block struct {
		Type  string          `json:"type"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
)

// answerTypes are what a Go client decodes an answer, or an event of one, into.
var answerTypes = map[string]reflect.Type{
	"chat": reflect.TypeFor[struct {
		Error   any `json:"error"`
		Choices []struct {
			Message chatMessage `json:"message"`
			Delta   chatMessage `json:"delta"`
		} `json:"choices"`
	}](),
	"anthropic": reflect.TypeFor[struct {
		Type    string  `json:"type"`
		Index   int     `json:"index"`
		Content []block `json:"content"`
		Message struct {
			Content []block `json:"content"`
		} `json:"message"`
		Block *block `json:"content_block"`
		Delta struct {
			PartialJSON string `json:"partial_json"`
		} `json:"delta"`
	}](),
	"responses": reflect.TypeFor[struct {
		Output []struct {
			Type      string          `json:"type"`
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"output"`
	}](),
	"gemini": reflect.TypeFor[struct {
		Error      any `json:"error"`
		Candidates []struct {
			Content struct {
				Parts []struct {
					FunctionCall *struct {
						Name string          `json:"name"`
						Args json.RawMessage `json:"args"`
					} `json:"functionCall"`
				} `json:"parts"`
			} `json:"content"`
		} `json:"candidates"`
	}](),
	"ollama": reflect.TypeFor[struct {
		Error   any         `json:"error"`
		Message chatMessage `json:"message"`
	}](),
}

// under follows keys and elements through a tree.
func under(v any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			object, _ := v.(map[string]any)
			v = object[s]
		case int:
			list, _ := v.([]any)
			if v = nil; s < len(list) {
				v = list[s]
			}
		}
	}
	return v
}

func list(v any) []any  { l, _ := v.([]any); return l }
func text(v any) string { s, _ := v.(string); return s }

// argumentsIn returns arguments as text, whether they are one or an object.
func argumentsIn(v any) string {
	if s, ok := v.(string); ok || v == nil {
		return s
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// piece is a call, or a part of one, that a client puts together by key.
type piece struct{ key, name, arguments string }

// pieces returns what one JSON text of an answer says of calls.
func pieces(format string, v any, n int) (out []piece) {
	add := func(key any, name, arguments any) {
		out = append(out, piece{fmt.Sprint(key), text(name), argumentsIn(arguments)})
	}
	switch format {
	case "chat":
		for _, of := range []string{"message", "delta"} {
			m := under(v, "choices", 0, of)
			for i, c := range list(under(m, "tool_calls")) {
				key := under(c, "index")
				if key == nil || of == "message" {
					key = i
				}
				add(key, under(c, "function", "name"), under(c, "function", "arguments"))
			}
			if f := under(m, "function_call"); f != nil {
				add("old", under(f, "name"), under(f, "arguments"))
			}
		}
	case "anthropic":
		for i, b := range append(list(under(v, "content")), list(under(v, "message", "content"))...) {
			if under(b, "type") == "tool_use" {
				add(fmt.Sprint("whole", i), under(b, "name"), under(b, "input"))
			}
		}
		if b := under(v, "content_block"); under(v, "type") == "content_block_start" && under(b, "type") == "tool_use" {
			add(under(v, "index"), under(b, "name"), nil)
		}
		if d := under(v, "delta"); under(v, "type") == "content_block_delta" && text(under(d, "partial_json")) != "" {
			add(under(v, "index"), nil, under(d, "partial_json"))
		}
	case "responses":
		for i, item := range list(under(v, "output")) {
			if under(item, "type") == "function_call" {
				add(i, under(item, "name"), under(item, "arguments"))
			}
		}
	case "gemini":
		for i, p := range list(under(v, "candidates", 0, "content", "parts")) {
			if f := under(p, "functionCall"); f != nil {
				add(fmt.Sprint(n, ".", i), under(f, "name"), under(f, "args"))
			}
		}
	case "ollama":
		for i, c := range list(under(v, "message", "tool_calls")) {
			add(fmt.Sprint(n, ".", i), under(c, "function", "name"), under(c, "function", "arguments"))
		}
	}
	return out
}

// runs returns the calls that the client would run: those of a tool that it
// has, with arguments that are an object. A client that meets what it cannot
// decode, or an error, runs nothing.
func (c client) runs(format, body string) (out [][2]string) {
	texts := []string{body}
	switch stream := strings.TrimSpace(body); {
	case !strings.HasPrefix(stream, "{"):
		texts = data(body, c.atCR)
	case format == "ollama":
		texts = strings.Split(stream, "\n")
	}
	var order []string
	calls := map[string]*piece{}
	for n, t := range texts {
		if t = strings.TrimSpace(t); t == "" || t == "[DONE]" {
			continue
		}
		v, err := c.tree([]byte(t))
		if err != nil || under(v, "error") != nil || under(v, "type") == "error" {
			return nil
		}
		for _, p := range pieces(format, v, n) {
			if calls[p.key] == nil {
				calls[p.key] = &piece{}
				order = append(order, p.key)
			}
			calls[p.key].name += p.name
			calls[p.key].arguments += p.arguments
		}
	}
	for _, key := range order {
		var object map[string]any
		if p := calls[key]; (p.name == "pay" || p.name == "steal") && json.Unmarshal([]byte(p.arguments), &object) == nil {
			plain, _ := json.Marshal(object)
			out = append(out, [2]string{p.name, string(plain)})
		}
	}
	return out
}

// data returns the data of the events of a stream.
func data(stream string, atCR bool) (out []string) {
	if atCR {
		stream = strings.TrimPrefix(stream, "\ufeff")
	}
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	if atCR {
		stream = strings.ReplaceAll(stream, "\r", "\n")
	}
	var now []string
	for _, line := range append(strings.Split(stream, "\n"), "") {
		if field, value, _ := strings.Cut(line, ":"); field == "data" {
			now = append(now, strings.TrimPrefix(value, " "))
		} else if line == "" {
			out, now = append(out, strings.Join(now, "\n")), nil
		}
	}
	return out
}
