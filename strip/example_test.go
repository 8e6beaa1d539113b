package strip_test

import (
	"encoding/json"
	"errors"
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

func ExampleStripper_JSON() {
	s, err := strip.New(json.RawMessage(`{"properties": {"id": {}, "tags": {}}}`), strip.Options{})
	if err != nil {
		panic(err)
	}
	args, removals, err := s.JSON(`{"id": 7, "tags": []}`)
	fmt.Println(args, err)
	for _, r := range removals {
		fmt.Println(r.Pointer, r.Value)
	}
	_, _, err = s.JSON(`{"id": 7`)
	fmt.Println(errors.Is(err, strip.ErrNotObject))
	// Output:
	// {"id": 7} <nil>
	// /tags []
	// true
}

func ExampleDefaultPlaceholders() {
	fmt.Printf("%q\n", strip.DefaultPlaceholders())
	// Output: ["none" "null" "undefined" "\"\"" "''"]
}
