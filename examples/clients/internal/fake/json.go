package fake

import (
	"encoding/json"
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

// wants reads the members of a request that its stream member depends on.
func wants(body []byte) bool {
	var r struct{ Stream bool }
	return json.Unmarshal(body, &r) == nil && r.Stream
}
