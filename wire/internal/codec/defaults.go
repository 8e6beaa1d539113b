package codec

import "net/http"

// Defaults has the methods of a Format that most formats share. A format embeds
// it and declares those in which it differs.
type Defaults struct{}

// WantsStream is part of Format: an answer is streamed only on request.
func (Defaults) WantsStream(path string, body []byte) bool { return WantsStream(path, body, false) }

// Opening is part of Format: every event of a stream stands for itself, so that a
// client understands a keep-alive before the first one.
func (Defaults) Opening(string) int { return 0 }

// Renumber is part of Format: events have no numbers.
func (Defaults) Renumber(events string, _ int) (string, error) { return events, nil }

// Authorize is part of Format: the key is a bearer token. A server of one's own
// needs none.
func (Defaults) Authorize(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}
