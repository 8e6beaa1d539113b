package anthropic

import "github.com/toolmend/toolmend/wire/internal/codec"

// Opening is part of codec.Format.
func (Format) Opening(text string) int {
	e, _ := codec.First(text, func(e codec.Event) bool { return kindOf(e) == "message_start" })
	return e.End
}

// KeepAlive is part of codec.Format. Before message_start a ping is unknown to
// some clients, a comment to none.
func (Format) KeepAlive(text string, sent, _ int) (string, bool) {
	switch {
	case !codec.MayBeEvents(text):
		return "", false
	case sent == 0:
		return codec.Comment, false
	}
	return "event: ping\ndata: {\"type\": \"ping\"}\n\n", false
}

// Renumber is part of codec.Format: events have no number.
func (Format) Renumber(events string, _ int) (string, error) { return events, nil }

func kindOf(e codec.Event) string {
	root, err := codec.ParseObject(e.Data)
	if err != nil {
		return ""
	}
	return root.Get("type").Str()
}
