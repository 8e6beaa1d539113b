package agentloop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// hotelSchema is the schema of the one tool of the scripts below.
const hotelSchema = `{"type":"object","properties":{
	"user_id":{"type":"string","minLength":1},
	"nights":{"type":"integer","minimum":1},
	"note":{"type":"string"}},
	"required":["user_id","nights"],"additionalProperties":false}`

// The valid arguments that the scripts lead to.
const (
	threeNights = `{"user_id":"u_42","nights":3}`
	twoNights   = `{"user_id":"u_43","nights":2}`
)

// sentCall is a tool call as a scripted model sends it, without an id.
type sentCall struct{ name, args string }

// hotelAnswer is one answer of a scripted model.
type hotelAnswer struct {
	calls  []sentCall
	finish middleware.FinishReason // "" means FinishToolCalls
}

// bookWith is an answer with one call of book_hotel for each of args.
func bookWith(args ...string) hotelAnswer {
	var a hotelAnswer
	for _, arg := range args {
		a.calls = append(a.calls, sentCall{"book_hotel", arg})
	}
	return a
}

// bookAs is an answer with one valid call under another tool name.
func bookAs(name string) hotelAnswer {
	return hotelAnswer{calls: []sentCall{{name, threeNights}}}
}

// bookTruncated is an answer that was cut off inside its one call.
func bookTruncated(args string) hotelAnswer {
	a := bookWith(args)
	a.finish = middleware.FinishLength
	return a
}

// hotelModel returns a model that sends answers in order, and the last one again
// when it is asked more often. Once the newest message is the result of a
// booking, the model answers with text instead. The model refuses every request
// that a strict provider refuses. The second value counts the model calls.
func hotelModel(answers []hotelAnswer) (middleware.ModelCall, *int) {
	asked, ids := 0, 0
	play := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		asked++
		newest := req.Messages[len(req.Messages)-1]
		if newest.Role == middleware.RoleTool && newest.Text() == "booked" {
			return &middleware.Response{Message: middleware.Assistant("Your hotel is booked."), FinishReason: middleware.FinishStop}, nil
		}
		answer := answers[min(asked, len(answers))-1]
		finish := answer.finish
		if finish == "" {
			finish = middleware.FinishToolCalls
		}
		var calls []middleware.ToolCall
		for _, c := range answer.calls {
			ids++
			calls = append(calls, call(fmt.Sprintf("call_%d", ids), c.name, c.args))
		}
		return &middleware.Response{Message: middleware.Assistant("", calls...), FinishReason: finish}, nil
	}
	return acceptedEverywhere(play), &asked
}

// providerName is the form of a tool name that OpenAI and Anthropic accept.
var providerName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// acceptedEverywhere returns next behind the strict rules of all three providers
// and the rule for tool names.
func acceptedEverywhere(next middleware.ModelCall) middleware.ModelCall {
	for _, p := range []middlewaretest.Provider{middlewaretest.OpenAI, middlewaretest.Anthropic, middlewaretest.Gemini} {
		next = middlewaretest.Strict(p, next)
	}
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		for i, m := range req.Messages {
			for _, c := range m.ToolCalls {
				if !providerName.MatchString(c.Name) {
					return nil, fmt.Errorf("%w: messages[%d]: tool name %q", middlewaretest.ErrRefused, i, c.Name)
				}
			}
			if m.Role == middleware.RoleTool && m.ToolName != "" && !providerName.MatchString(m.ToolName) {
				return nil, fmt.Errorf("%w: messages[%d]: tool name %q", middlewaretest.ErrRefused, i, m.ToolName)
			}
		}
		return next(ctx, req)
	}
}

// bookHotel returns the tool of the scripts. It appends the arguments of each
// run to ran, and fails the test if they are invalid by jsonschema/v5 or hold an
// internal id.
func bookHotel(t *testing.T, ran *[]string) agentloop.Tool {
	schema := jsonschema.MustCompileString("book_hotel.json", hotelSchema)
	tool := agentloop.RawTool("book_hotel", "Books a hotel room.", json.RawMessage(hotelSchema), func(_ context.Context, c middleware.ToolCall) (agentloop.Result, error) {
		var v any
		if err := json.Unmarshal([]byte(c.Arguments), &v); err != nil {
			t.Errorf("the tool ran with arguments that are not JSON: %q", c.Arguments)
		} else if err := schema.Validate(v); err != nil {
			t.Errorf("the tool ran with invalid arguments %s: %v", c.Arguments, err)
		}
		if strings.Contains(c.Arguments, "lc_") {
			t.Errorf("the tool ran with an internal id: %s", c.Arguments)
		}
		*ran = append(*ran, c.Arguments)
		return agentloop.Text("booked"), nil
	})
	tool.Serial = true // it appends to ran
	return tool
}

// TestReaskScripts runs the loop against models that make one kind of mistake
// and correct it after the feedback. Each run must end with the answer within
// the number of model calls that this module once needed for the same script.
func TestReaskScripts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []hotelAnswer
		within  int      // model calls, the one with the final text included
		booked  []string // arguments that the tool must run with, once each; nil means threeNights
	}{
		"s01 misnamed twice": {within: 4, answers: []hotelAnswer{
			bookWith(`{"customer":"u_42","nights":3}`), bookWith(`{"user":"u_42","nights":3}`), bookWith(threeNights),
		}},
		"s02 batch half bad": {within: 3, booked: []string{threeNights, twoNights}, answers: []hotelAnswer{
			bookWith(threeNights, `{"user_id":"u_43"}`), bookWith(threeNights, twoNights),
		}},
		"s03 unknown tool":  {within: 3, answers: []hotelAnswer{bookAs("reserve_room"), bookWith(threeNights)}},
		"s04 truncated":     {within: 3, answers: []hotelAnswer{bookTruncated(`{"user_id":"u_42","nig`), bookWith(threeNights)}},
		"s05 null optional": {within: 2, answers: []hotelAnswer{bookWith(`{"user_id":"u_42","nights":3,"note":null}`), bookWith(threeNights)}},
		"s07 python dict":   {within: 2, answers: []hotelAnswer{bookWith(`{'user_id': 'u_42', 'nights': 3}`), bookWith(threeNights)}},
		"s07b missing comma": {within: 3, answers: []hotelAnswer{
			bookWith(`{"user_id":"u_42" "nights":3}`), bookWith(threeNights),
		}},
		"s08 extra key":          {within: 3, answers: []hotelAnswer{bookWith(`{"user_id":"u_42","nights":3,"city":"Oslo"}`), bookWith(threeNights)}},
		"s09 control token name": {within: 2, answers: []hotelAnswer{bookAs("book_hotel<|channel|>commentary"), bookWith(threeNights)}},
		"s10 internal id": {within: 3, answers: []hotelAnswer{
			bookWith(`{"user_id":"lc_0f0e0d0c-0000-4000-8000-abcdef012345","nights":3}`), bookWith(threeNights),
		}},
		"s11 number as text":     {within: 2, answers: []hotelAnswer{bookWith(`{"user_id":"u_42","nights":"3"}`), bookWith(threeNights)}},
		"s12 camel case":         {within: 2, answers: []hotelAnswer{bookWith(`{"userId":"u_42","nights":3}`), bookWith(threeNights)}},
		"s13 arguments an array": {within: 3, answers: []hotelAnswer{bookWith(`["u_42",3]`), bookWith(threeNights)}},
		"s13 array in a string":  {within: 3, answers: []hotelAnswer{bookWith(`"[\"u_42\",3]"`), bookWith(threeNights)}},
		"s14 empty arguments":    {within: 3, answers: []hotelAnswer{bookWith(""), bookWith(threeNights)}},
		"s15 garbage name":       {within: 3, answers: []hotelAnswer{bookAs(`reserve room <|mars|> "now"`), bookWith(threeNights)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ran, asked, answer, err := runHotelScript(t, c.answers)
			require.NoError(t, err)
			require.Equal(t, "Your hotel is booked.", answer)
			require.LessOrEqual(t, asked, c.within)
			booked := c.booked
			if booked == nil {
				booked = []string{threeNights}
			}
			require.Len(t, ran, len(booked), "each booking runs once")
			for i, want := range booked {
				require.JSONEq(t, want, ran[i])
			}
		})
	}
	t.Run("s06 same bad call forever", func(t *testing.T) {
		t.Parallel()
		ran, asked, _, err := runHotelScript(t, []hotelAnswer{bookWith(`{"customer":"u_42","nights":3}`)})
		require.ErrorIs(t, err, agentloop.ErrFailures)
		require.ErrorIs(t, err, argsvalidate.ErrRepeated)
		require.LessOrEqual(t, asked, 4)
		require.Empty(t, ran)
	})
}

// runHotelScript runs an agent with the default options of argsvalidate and the
// rule InternalIDs. It returns the arguments that the tool ran with, the number
// of model calls, and the answer and the error of the run.
func runHotelScript(t *testing.T, answers []hotelAnswer) (ran []string, asked int, answer string, err error) {
	t.Helper()
	model, count := hotelModel(answers)
	validated := argsvalidate.New(argsvalidate.Options{Rules: []argsvalidate.Rule{argsvalidate.InternalIDs()}})(model)
	s := agentloop.NewState(middleware.User("Book a hotel for u_42, three nights."))
	err = newAgent(t, validated, tools(bookHotel(t, &ran))).Run(t.Context(), s)
	require.NotErrorIs(t, err, middlewaretest.ErrRefused)
	return ran, *count, s.Answer(), err
}
