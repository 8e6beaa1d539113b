package schema

import (
	"fmt"
	"github.com/toolmend/toolmend/internal/rawjson"
	"testing"
)

func TestSmoke(t *testing.T) {
	s, err := Compile([]byte(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"anyOf":[{"type":"string"},{"type":"null"}]},"u":{"enum":["x","yy"]},"o":{"type":"object","properties":{"p":{"type":"string","pattern":"(?=x)"}},"required":["p"],"additionalProperties":false}},"required":["a","c d"],"additionalProperties":false}`), Options{})
	fmt.Println(err)
	d, err := rawjson.Parse(`{"a":"5","b":7,"u":"y","o":{"P":1},"zz":2}`, rawjson.Limits{})
	fmt.Println(err, s.Notes())
	for _, i := range s.Validate(d.Root()) {
		fmt.Printf("%+v\n", i)
	}
	for _, bad := range []string{`{"type":"dict","properties":{"a":{"type":"float","required":true,"exclusiveMinimum":true,"minimum":1}}}`, `{"$ref":"file:///etc/passwd"}`, `{"type":6}`, `{"type":"nope"}`, `{"$ref":"#"}`, `{"required":[{}]}`} {
		s, err := Compile([]byte(bad), Options{})
		fmt.Println(err)
		if s != nil {
			fmt.Println(s.Notes(), s.doc.Text())
		}
	}
}
