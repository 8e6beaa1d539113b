package batch

import (
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// Recent returns the last of the failed turns of a step. Together they have at
// most limit bytes of text, names and arguments; the last turn is always
// included. It limits what failed turns add to a request.
func Recent(turns [][]middleware.Message, limit int) [][]middleware.Message {
	size := 0
	for n := len(turns) - 1; n >= 0; n-- {
		if size += sizeOf(turns[n]); size > limit && n < len(turns)-1 {
			return turns[n+1:]
		}
	}
	return turns
}

func sizeOf(turn []middleware.Message) int {
	size := 0
	for _, m := range turn {
		for _, p := range m.Parts {
			size += len(p.Text) + len(p.Data)
		}
		for _, c := range m.ToolCalls {
			size += len(c.Name) + len(c.Arguments)
		}
	}
	return size
}

// shorten cuts the text of m to maxSaid bytes. Reasoning stays complete,
// because providers sign it.
func shorten(m *middleware.Message) {
	left := maxSaid
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != middleware.PartText {
			continue
		}
		p.Text = text.Clip(p.Text, max(left, len("…"))) // providers refuse an empty text
		left = max(left-len(p.Text), 0)
	}
}

// Said returns a text of the model for the history. Many servers refuse an empty message,
// and two of the user in a row, so that a blank one becomes "(empty)".
func Said(text string) middleware.Message {
	if blank(text) {
		text = "(empty)"
	}
	return middleware.Assistant(text)
}
