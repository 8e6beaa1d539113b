package chat

import "github.com/toolmend/toolmend/wire/internal/codec"

// Opening is part of codec.Format: a comment may stand before the first chunk.
func (Format) Opening(string) int { return 0 }

// KeepAlive is part of codec.Format.
func (Format) KeepAlive(text string, _, _ int) (string, bool) {
	if !codec.MayBeEvents(text) {
		return "", false
	}
	return codec.Comment, false
}

// Renumber is part of codec.Format: chunks have no number.
func (Format) Renumber(events string, _ int) (string, error) { return events, nil }
