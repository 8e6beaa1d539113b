package strip_test

import (
	"encoding/json"
	"fmt"

	"github.com/toolmend/toolmend/strip"
)

func ExampleJSON() {
	schema := json.RawMessage(`{"properties": {"city": {}, "units": {}, "tags": {}}, "required": ["city", "tags"]}`)
	args, removed, err := strip.JSON(`{"city": "Oslo", "units": null, "tags": []}`, schema, strip.Optional)
	fmt.Println(args, removed, err)
	// Output: {"city": "Oslo", "tags": []} [{/units null}] <nil>
}

func ExampleNew() {
	s, err := strip.New(json.RawMessage(`{"properties": {"id": {}, "note": {}}}`),
		strip.Options{Placeholders: strip.DefaultPlaceholders()})
	if err != nil {
		panic(err)
	}
	args, _, _ := s.JSON(`{"id": 9007199254740993, "note": " None "}`)
	fmt.Println(args)
	// Output: {"id": 9007199254740993}
}
