package argsvalidate_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/typeschema"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

var update = flag.Bool("update", false, "write the golden files anew")

// trip is a tool whose schema has room for every kind of mistake.
var trip = tool("book_trip", `{"type": "object", "properties": {
	"city": {"type": "string", "minLength": 2},
	"days": {"type": "integer", "minimum": 1, "maximum": 14},
	"unit": {"enum": ["celsius", "fahrenheit"]},
	"start": {"type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$"},
	"guests": {"type": "array", "minItems": 1, "items": {"type": "object",
		"properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"], "additionalProperties": false}},
	"budget": {"anyOf": [{"type": "number"}, {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]}]}},
	"required": ["city", "days"], "additionalProperties": false}`)

// event is an open schema; meeting and its texts come from Go types.
var (
	event = tool("add_event", `{"type": "object", "properties": {"title": {"type": "string"}, "place": {"type": "object",
		"properties": {"street": {"type": "string"}, "zip": {"type": "string", "pattern": "^[0-9]{5}$"}}, "required": ["street", "zip"]},
		"rooms": {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}, "minItems": 1}}, "required": ["title", "rooms"]}`)
	meeting = func() middleware.Tool {
		parameters, err := typeschema.For(reflect.TypeFor[struct {
			When time.Time `json:"when"`
		}]())
		if err != nil {
			panic(err)
		}
		return middleware.Tool{Name: "plan_meeting", Parameters: parameters}
	}()
	// task is the tool of nine properties on which the texts are measured; see
	// docs/feedback.md.
	task = tool("create_task", `{"type": "object", "properties": {
		"title": {"type": "string", "minLength": 1},
		"description": {"type": "string"},
		"project_code": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
		"priority": {"type": "string", "enum": ["low", "medium", "high"]},
		"due": {"type": "string", "format": "date"},
		"estimate_hours": {"type": "integer", "minimum": 1},
		"owner": {"type": "object", "properties": {"name": {"type": "string"}, "email": {"type": "string"}}, "required": ["name"], "additionalProperties": false},
		"steps": {"type": "array", "items": {"type": "object", "properties": {"text": {"type": "string"}, "hours": {"type": "number"}}, "required": ["text"], "additionalProperties": false}},
		"tags": {"type": "array", "items": {"type": "string"}}},
		"required": ["title", "project_code", "owner"], "additionalProperties": false}`)
)

// taskArguments are the arguments of a call to task, with some members in the
// place of the right ones.
func taskArguments(title, middle, owner, steps string) string {
	return `{` + title + `, "description": "Everything before 2020 goes to the cold store.", ` + middle + `, "due": "2026-12-01", "owner": ` + owner +
		`, "steps": [{"text": "list the files", "hours": 2}, ` + steps + `, {"text": "check the sums", "hours": 2}], "tags": ["archive", "storage"]}`
}

const (
	taskTitle  = `"title": "Move the archive"`
	taskMiddle = `"project_code": "ARC-2026", "priority": "high", "estimate_hours": 12`
	taskOwner  = `{"name": "Ann Berg", "email": "ann@example.org"}`
	taskStep   = `{"text": "copy them", "hours": 8}`
)

// feedbackCase is a call that fails, and how often it did.
type feedbackCase struct {
	tool      middleware.Tool // trip if it has no name
	name      string          // of the call; the tool's if empty
	args      string
	attempt   int
	repeated  bool
	truncated bool
	o         argsvalidate.Options
}

var feedbackCases = map[string]feedbackCase{
	"missing_and_misspelled": {args: `{"cityname": "Oslo", "dayz": 2}`},
	"wrong_types":            {args: `{"city": 5, "days": "two", "guests": "Ann"}`},
	"null_for_required":      {args: `{"city": null, "days": 2}`},
	"empty_for_optional":     {args: `{"city": "Oslo", "days": 2, "unit": ""}`, o: argsvalidate.Options{Strip: strip.Off}},
	"bounds":                 {args: `{"city": "O", "days": 99, "guests": []}`},
	"enum":                   {args: `{"city": "Oslo", "days": 2, "unit": "Celsius"}`},
	"pattern":                {args: `{"city": "Oslo", "days": 2, "start": "tomorrow"}`},
	"nested":                 {args: `{"city": "Oslo", "days": 2, "guests": [{"name": "Ann"}, {"nam": "Bob", "age": 1.5}]}`},
	"any_of":                 {args: `{"city": "Oslo", "days": 2, "budget": "much"}`},
	"text_for_an_array":      {args: `{"city": "Oslo", "days": 2, "guests": "[{\"name\": \"Ann\"}]"}`},
	"schema_for_a_value":     {args: `{"city": {"type": "string", "minLength": 2}, "days": 2}`},
	"schema_for_arguments":   {args: `{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}`},
	"envelope_like_a_name":   {tool: event, args: `{"plaice": {"title": "Tea"}}`},
	"envelope":               {tool: trip, args: `{"trip": {"city": "Oslo", "days": 2}}`},
	"envelope_open":          {tool: event, args: `{"event": {"title": "Tea", "rooms": ["red"]}}`},
	"envelope_inside":        {tool: event, args: `{"title": "Tea", "rooms": ["red"], "place": {"address": {"street": "Main 1", "zip": "12345"}}}`},
	"no_envelope":            {tool: event, args: `{"meta": {"title": "Tea", "by": "Ann", "at": "noon"}, "rooms": ["red"]}`},
	"second_whole_and_part":  {args: `{"city": "Oslo", "days": 99, "hotel": "x"}`, attempt: 2},
	"missing_open":           {tool: event, args: `{"name": "Tea", "titel": "Tea"}`},
	"missing_object":         {args: `{"city": "Oslo", "days": 2, "guests": [{"age": 4}, {"age": 5}]}`},
	"time":                   {tool: meeting, args: `{"when": "tomorrow"}`},
	"time_missing":           {tool: meeting, args: `{}`},
	"syntax":                 {args: `{"city": "Oslo", "days": 2,, }`},
	"syntax_word":            {args: `not json`},
	"syntax_long":            {tool: task, args: strings.Replace(taskArguments(taskTitle, taskMiddle, taskOwner, taskStep), `, "due"`, ` "due"`, 1)},
	"trailing_data":          {args: `{"city": "Oslo", "days": 2} {"city": "Rome"}`},
	"not_object":             {args: `["Oslo", 2]`},
	"duplicate_key":          {args: `{"city": "Oslo", "city": "Rome", "days": 2}`},
	"depth":                  {args: `{"city": ` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`},
	"truncated":              {args: `{"city": "Os`, truncated: true},
	"unknown_tool":           {name: "book_trips", args: `{}`},
	"unknown_tool_again":     {name: "book_trips", args: `{}`, attempt: 2},
	"control_tokens":         {name: "book_trip<|channel|>", args: `{}`},
	"control_token_sent":     {args: `{"city": "Oslo", "days": "<|im_end|>"}`},
	"rule":                   {args: `{"city": "Atlantis", "days": 2}`},
	"rule_again":             {args: `{"city": "Atlantis", "days": 2}`, attempt: 2},
	"undecided":              {args: `{"city": "Troy", "days": 2}`, attempt: 2, repeated: true, o: argsvalidate.Options{OnRuleError: argsvalidate.AsIssue}},
	"second_attempt":         {args: `{"city": "Oslo", "days": 99}`, attempt: 2},
	"second_unknown_key":     {args: `{"city": "Oslo", "days": 2, "guests": [{"name": "Ann", "surname": "Berg"}]}`, attempt: 2},
	"repeated":               {args: `{"city": "Oslo", "days": 99}`, attempt: 2, repeated: true},
	"task_misnamed":          {tool: task, args: taskArguments(`"name": "Move the archive"`, taskMiddle, taskOwner, taskStep)},
	"task_three_faults": {tool: task, args: taskArguments(taskTitle, `"project_code": "ARC-2026", "priority": "urgent", "estimate_hours": 12`,
		`{"name": "Ann Berg", "surname": "x", "email": "ann@example.org"}`, `{"text": "copy them", "hours": "eight"}`)},
	"task_null_and_type":       {tool: task, args: `{"title": null, "project_code": "ARC-2026", "priority": "high", "estimate_hours": "twelve", "owner": {"name": "Ann Berg"}}`},
	"task_pattern_and_minimum": {tool: task, args: `{"title": "Move the archive", "project_code": "archive", "estimate_hours": 0, "owner": {"name": "Ann Berg"}}`},
}

// text returns the feedback on the case.
func (c feedbackCase) text(t *testing.T) string {
	t.Helper()
	if c.tool.Name == "" {
		c.tool = trip
	}
	if c.name == "" {
		c.name = c.tool.Name
	}
	turn := answer(call("1", c.name, c.args))
	if c.truncated {
		turn = truncated(call("1", c.name, c.args))
	}
	c.o.OnExhausted, c.o.MaxAttempts = middleware.Raise, 1
	c.o.Rules = []argsvalidate.Rule{
		argsvalidate.FieldRule[string]{Path: "/city", Message: "no such city: {value}", Valid: func(s string) bool { return s != "Atlantis" }},
		argsvalidate.RuleFunc(func(_ context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) {
			if strings.Contains(c.Arguments, "Troy") {
				return nil, errors.New("the database is down")
			}
			return nil, nil
		}),
	}
	verdict := failure(t, run(t, c.o, request(c.tool, note), turn).err).Verdicts[0]
	in := argsvalidate.FeedbackInput{Verdict: verdict, Available: []string{c.tool.Name, note.Name}, Attempt: max(c.attempt, 1), Repeated: c.repeated}
	if c.name == c.tool.Name {
		in.Tool, in.Declared = c.tool, true
	}
	return argsvalidate.DefaultFeedback(in)
}

// One golden file for each kind of mistake: read them before changing one.
func TestDefaultFeedback(t *testing.T) {
	t.Parallel()
	for name, c := range feedbackCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, filepath.Join("feedback", name+".golden"), c.text(t)+"\n")
		})
	}
}

// A text that grows is paid for in every failed turn after it.
func TestFeedbackSizes(t *testing.T) {
	t.Parallel()
	var sizes strings.Builder
	measured, sum := 0, 0
	for _, name := range slices.Sorted(maps.Keys(feedbackCases)) {
		n := len(feedbackCases[name].text(t))
		fmt.Fprintf(&sizes, "%4d %s\n", n, name)
		if strings.HasPrefix(name, "task_") {
			measured, sum = measured+1, sum+n
		}
	}
	golden(t, "feedback/sizes.txt", sizes.String())
	require.Equal(t, 4, measured)
	require.LessOrEqual(t, sum/measured, 320, "bytes; 485 before each fact was said once")
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	file = filepath.Join("testdata", file)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
