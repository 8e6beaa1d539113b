package codec

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Joined is a text that comes in several JSON strings. They are joined as JSON and
// decoded once: a letter that is escaped as a surrogate pair may be divided between two.
type Joined struct{ raw strings.Builder }

// Add adds the string v. Of any other value it adds the JSON text.
func (j *Joined) Add(v rawjson.Value) {
	raw := v.Raw()
	if v.Kind() != rawjson.String {
		raw = QuoteAsSent(raw)
	}
	_ = j.AddRaw(raw[1 : len(raw)-1])
}

// AddRaw adds a JSON string without its quotes. It always returns nil.
func (j *Joined) AddRaw(raw string) error {
	j.raw.WriteString(raw)
	return nil
}

// String returns the text.
func (j *Joined) String() string {
	doc, err := Parse(`"` + j.raw.String() + `"`)
	if err != nil { // longer than a body
		return ""
	}
	return doc.Root().Str()
}
