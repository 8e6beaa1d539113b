package fake

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

type (
	object = map[string]any
	array  = []any
)

// j returns v as JSON.
func j(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // a script is wrong
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// event returns v as one event of a stream, which has a name in some formats.
func event(name string, v any) string {
	if name != "" {
		name = "event: " + name + "\n"
	}
	return name + "data: " + j(v) + "\n\n"
}

// pieces cuts text as a model's stream would.
func pieces(text string) []string {
	var out []string
	for len(text) > 5 {
		out, text = append(out, text[:5]), text[5:]
	}
	if text == "" {
		return out
	}
	return append(out, text)
}

// isObject returns an error unless text is a JSON object.
func isObject(text string) error {
	var o map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &o); err != nil || o == nil {
		return errors.New("arguments are no JSON object")
	}
	return nil
}

// wants reads the members of a request that its stream member depends on.
func wants(body []byte) bool {
	var r struct{ Stream bool }
	return json.Unmarshal(body, &r) == nil && r.Stream
}

// pending is the calls of a turn that no result has answered yet.
type pending []string

// call adds one.
func (p *pending) call(id string) error {
	if id == "" {
		return errors.New("a call without an id")
	}
	for _, other := range *p {
		if other == id {
			return fmt.Errorf("call id %s twice in a turn", id)
		}
	}
	*p = append(*p, id)
	return nil
}

// answer takes the next one away, which has to be id.
func (p *pending) answer(id string) error {
	if len(*p) == 0 || (*p)[0] != id {
		return fmt.Errorf("result for %q, waiting for %q", id, *p)
	}
	*p = (*p)[1:]
	return nil
}

// none returns an error if a call waits for its result.
func (p *pending) none() error {
	if len(*p) > 0 {
		return fmt.Errorf("no result for %q", *p)
	}
	return nil
}
