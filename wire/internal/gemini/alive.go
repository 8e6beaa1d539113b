package gemini

import (
	"strings"

	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Opening is part of codec.Format: each chunk stands for itself.
func (Format) Opening(string) int { return 0 }

// KeepAlive is part of codec.Format. Google's clients fail at a comment, and a
// chunk without content makes their chats drop the turn from history. An event
// without any line is skipped by all: google-genai 3.4 (Python) skips empty
// lines, @google/genai 2.32 (JavaScript) and google.golang.org/genai 1.77 empty
// events. Between the elements of an array stands white space.
func (Format) KeepAlive(text string, _, _ int) (string, bool) {
	switch {
	case codec.MayBeEvents(text) && strings.Contains(text, "\r\n"):
		return "\r\n\r\n", false
	case codec.MayBeEvents(text):
		return "\n\n", false
	case codec.IsList(text):
		return "\n", false
	}
	return "", false
}

// Renumber is part of codec.Format: chunks have no number.
func (Format) Renumber(events string, _ int) (string, error) { return events, nil }
