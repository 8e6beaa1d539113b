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
