package codec

import "net/http"

// Defaults has the methods of a Format that most formats share. A format embeds
// it and declares those in which it differs.
type Defaults struct{}

// WantsStream reports whether a request asks for a streamed answer; one that does not say it asks for none.
func (Defaults) WantsStream(path string, body []byte) bool { return WantsStream(path, body, false) }

// Opening returns the end of the event that opens a streamed answer: every event of a stream stands for itself, so that a
// client understands a keep-alive before the first one.
func (Defaults) Opening(string) int { return 0 }

// Renumber returns the events as they are: they have no numbers.
func (Defaults) Renumber(events string, _ int) (string, error) { return events, nil }

// Authorize sets the key: the key is a bearer token. A server of one's own
// needs none.
func (Defaults) Authorize(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// MayHoldCall reports whether a word for calls of any format occurs in a body.
func (Defaults) MayHoldCall(body []byte) bool { return MayHoldCall(body) }
