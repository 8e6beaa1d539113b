package argsvalidate_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// luhn is a keyword of jsonschema/v5: {"luhn": true} wants digits with a valid check digit.
type luhn struct{}

func (l luhn) Compile(_ jsonschema.CompilerContext, schema map[string]any) (jsonschema.ExtSchema, error) {
	if schema["luhn"] == true {
		return l, nil
	}
	return nil, nil
}

func (luhn) Validate(ctx jsonschema.ValidationContext, value any) error {
	text, _ := value.(string)
	digits, sum := []byte(text), 0
	slices.Reverse(digits)
	for i, c := range digits {
		d := int(c-'0') * (1 + i%2)
		sum += d/10 + d%10
	}
	if sum%10 != 0 {
		return ctx.Error("luhn", "the check digit is wrong")
	}
	return nil
}

// A domain validator as a rule: a schema with a vocabulary of your own, compiled and evaluated
// by jsonschema/v5, checks calls that match the tool's schema.
func ExampleRuleFunc_vocabulary() {
	c := jsonschema.NewCompiler()
	c.RegisterExtension("luhn", jsonschema.MustCompileString("luhn.json", `{"properties": {"luhn": {"type": "boolean"}}}`), luhn{})
	if err := c.AddResource("pay.json", strings.NewReader(`{"properties": {"card": {"luhn": true}}}`)); err != nil {
		panic(err)
	}
	domain := c.MustCompile("pay.json")
	rule := argsvalidate.RuleFunc(func(_ context.Context, call *argsvalidate.Call) ([]middleware.Issue, error) {
		var args any
		if err := json.Unmarshal([]byte(call.Arguments), &args); err != nil {
			return nil, err
		}
		var invalid *jsonschema.ValidationError
		if err := domain.Validate(args); !errors.As(err, &invalid) {
			return nil, err
		}
		var issues []middleware.Issue
		for _, e := range invalid.BasicOutput().Errors {
			if strings.HasSuffix(e.KeywordLocation, "/luhn") {
				issues = append(issues, middleware.Issue{Code: "luhn", Pointer: e.InstanceLocation, Message: e.Error})
			}
		}
		return issues, nil
	})
	check(rule, "pay", `{"card": "4539578763621487"}`)
	check(rule, "pay", `{"card": "4539578763621486"}`)
	// Output:
	// Tool 'pay' argument 'card': the check digit is wrong
}
