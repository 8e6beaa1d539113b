package codec

import (
	"bytes"
	"encoding/json"
	"strings"
)

// WantsStream reports whether a request asks for a streamed answer: by the
// member "stream" of its body, else by the last segment of its path, as in
// Gemini's format and on Vertex, else if the format streams by default. Like
// the servers that are written in Go it reads the key in any case.
func WantsStream(path string, body []byte, byDefault bool) bool {
	var v struct {
		Stream *bool `json:"stream"`
	}
	if mayHoldStream(body) && json.Unmarshal(body, &v) == nil && v.Stream != nil {
		return *v.Stream
	}
	path, _, _ = strings.Cut(path, "?")
	last := path[strings.LastIndexAny(path, "/:")+1:]
	return byDefault || strings.Contains(strings.ToLower(last), "stream")
}

// mayHoldStream saves parsing a body without the key, escaped keys included.
func mayHoldStream(body []byte) bool {
	for _, trace := range []string{"tream\"", "TREAM\"", `\u00`} {
		if bytes.Contains(body, []byte(trace)) {
			return true
		}
	}
	return false
}
