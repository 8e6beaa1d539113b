package strip

import (
	"sync"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
)

// anyObject is the schema that accepts everything, for its look at the text.
var anyObject = sync.OnceValue(func() *schema.Schema {
	s, err := schema.Compile([]byte(`{}`), schema.Options{})
	if err != nil {
		panic("strip: the empty schema does not compile: " + err.Error())
	}
	return s
})

// nothing reports whether args is one JSON object that surely holds no empty
// value at all: the answer for most arguments, without allocating.
func (s *Stripper) nothing(args string) bool {
	return len(s.placeholders) == 0 && anyObject().SurelyValid(args, rawjson.Limits{}, schema.RefuseAnyEmpty)
}
