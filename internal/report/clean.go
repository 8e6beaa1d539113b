package report

import (
	"github.com/toolmend/toolmend/internal/text"
)

// maxName is how many bytes of a model-written name are kept as a key, and shown.
const maxName = 200

// Name returns a model-written name for people: on one line, never empty.
func Name(s string) string {
	if s == "" {
		return "(none)"
	}
	return text.Visible(text.Clip(s, maxName), false)
}
