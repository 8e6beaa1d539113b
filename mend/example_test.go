package mend_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
)

// Validate can be a Validator whose own repairs are off.
func ExampleArguments() {
	tool := middleware.Tool{Name: "book", Parameters: []byte(`{"type": "object", "required": ["city"],
		"properties": {"city": {"type": "string"}, "nights": {"type": "integer"}}}`)}
	v := argsvalidate.NewValidator(argsvalidate.Options{Mend: mend.Off()})
	validate := func(arguments string) []middleware.Issue {
		_, err := v.Validate(context.Background(), []middleware.Tool{tool}, middleware.ToolCall{Name: "book", Arguments: arguments})
		var invalid *argsvalidate.Error
		if errors.As(err, &invalid) {
			return invalid.Verdicts[0].Issues
		}
		return nil
	}
	sent := `{"City": "Rome", "nights": "2"}`
	arguments, changes, ok := mend.Arguments(mend.Input{Tool: tool, Arguments: sent, Issues: validate(sent), Validate: validate})
	fmt.Println(arguments, ok)
	for _, c := range changes {
		fmt.Println(c.By, c.Pointer, c.Before, "->", c.After)
	}
	// Output:
	// {"city": "Rome", "nights": 2} true
	// mend.rename /City "City" -> "city"
	// mend.coerce /nights "2" -> 2
}

func ExampleName() {
	fmt.Println(mend.Name("functions.getWeather<|channel|>commentary", []string{"get_weather", "get_weather_map"}))
	fmt.Println(mend.Name("weather", []string{"get_weather", "get_weather_map"}))
	// Output:
	// get_weather true
	//  false
}

// A loop that repairs many calls of a tool reads the schema of the tool once.
func ExampleReadSchema() {
	schema := mend.ReadSchema([]byte(`{"properties": {"nights": {"type": "integer"}}}`))
	for _, sent := range []string{`{"nights": "2"}`, `{"nights": "two"}`} {
		arguments, _, ok := mend.Arguments(mend.Input{
			Arguments: sent,
			Issues:    []middleware.Issue{{Code: "type", Pointer: "/nights"}},
			Schema:    schema,
			Validate:  func(string) []middleware.Issue { return nil },
		})
		fmt.Println(arguments, ok)
	}
	// Output:
	// {"nights": 2} true
	//  false
}

// A loop that checks many calls prepares the names of its tools once.
func ExampleNewNames() {
	names := mend.NewNames([]string{"get_weather", "book"})
	for _, sent := range []string{"getWeather", "functions.book"} {
		fmt.Println(names.Match(sent))
	}
	// Output:
	// get_weather true
	// book true
}

func ExampleJSON() {
	fmt.Println(mend.JSON("```json {'city': 'Oslo', \"metric\": True,}```"))
	fmt.Println(mend.JSON(`{"city": "Oslo"`))
	// Output:
	// {"city": "Oslo", "metric": true} true
	//  false
}

func ExampleDefault() {
	fmt.Println(append(mend.Default(), mend.FillDefaults))
	// Output: [coerce unwrap rename syntax tool_name enum close omit duplicates echo fill_defaults]
}

func ExampleExtended() {
	fmt.Println(mend.Extended()[len(mend.Default()):])
	// Output: [drop_unknown rename_close split enum_words]
}

func ExampleAll() {
	fmt.Println(len(mend.All()), mend.All()[0])
	// Output: 17 coerce
}

// With Off, a Validator reports invalid calls and repairs none.
func ExampleOff() {
	v := argsvalidate.NewValidator(argsvalidate.Options{Mend: mend.Off()})
	tool := middleware.Tool{Name: "book", Parameters: []byte(`{"properties": {"nights": {"type": "integer"}}}`)}
	_, err := v.Validate(context.Background(), []middleware.Tool{tool}, middleware.ToolCall{Name: "book", Arguments: `{"nights": "2"}`})
	fmt.Println(errors.As(err, new(*argsvalidate.Error)))
	// Output: true
}
