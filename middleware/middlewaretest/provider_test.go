package middlewaretest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

var everyProvider = []middlewaretest.Provider{middlewaretest.OpenAI, middlewaretest.Anthropic, middlewaretest.Gemini}

func toolCall(id, arguments string) middleware.ToolCall {
	return middleware.ToolCall{ID: id, Name: "f", Arguments: arguments}
}

func ok(id string) middleware.ToolCall { return toolCall(id, `{}`) }

func answerTo(id string) middleware.Message { return middleware.ToolReply(ok(id), "done") }

func TestCheck(t *testing.T) {
	t.Parallel()
	user, system, calls := middleware.User("hi"), middleware.System("s"), middleware.Assistant
	nameless := answerTo("a")
	nameless.ToolName = " "
	odd := user
	odd.ToolCalls = []middleware.ToolCall{ok("a")}
	free := toolCall("a", "free text")
	free.Kind = middleware.KindCustom
	all, some := everyProvider, func(p ...middlewaretest.Provider) []middlewaretest.Provider { return p }
	none := some()
	for name, tc := range map[string]struct {
		messages []middleware.Message
		refuse   []middlewaretest.Provider
		says     string
	}{
		"text":                          {[]middleware.Message{system, system, user}, none, ""},
		"a batch in order":              {[]middleware.Message{user, calls("", ok("a"), ok("b")), answerTo("a"), answerTo("b")}, none, ""},
		"two turns, then text":          {[]middleware.Message{user, calls("", ok("a")), answerTo("a"), calls("x", ok("b")), answerTo("b"), user}, none, ""},
		"id again in a later turn":      {[]middleware.Message{user, calls("", ok("a")), answerTo("a"), calls("", ok("a")), answerTo("a")}, none, ""},
		"arguments in white space":      {[]middleware.Message{user, calls("", toolCall("a", " \n{\"a\": 1} ")), answerTo("a")}, none, ""},
		"custom call in free text":      {[]middleware.Message{user, calls("", free), answerTo("a")}, none, ""},
		"no messages":                   {nil, all, "at least one message"},
		"unanswered":                    {[]middleware.Message{user, calls("", ok("a"))}, all, "has no "},
		"unanswered before user":        {[]middleware.Message{user, calls("", ok("a")), user}, all, "directly after it"},
		"one of two unanswered":         {[]middleware.Message{user, calls("", ok("a"), ok("b")), answerTo("a")}, all, " 1 has no "},
		"answered twice":                {[]middleware.Message{user, calls("", ok("a")), answerTo("a"), answerTo("a")}, all, "second time"},
		"reply after a user message":    {[]middleware.Message{user, calls("", ok("a"), ok("b")), answerTo("a"), user, answerTo("b")}, all, "has no "},
		"reply before its call":         {[]middleware.Message{user, answerTo("a"), calls("", ok("a"))}, all, "does not directly follow"},
		"reply to nothing":              {[]middleware.Message{user, calls("", ok("a")), answerTo("a"), answerTo("z")}, all, "answers no "},
		"reply to an earlier turn":      {[]middleware.Message{user, calls("", ok("a")), answerTo("a"), calls("", ok("b")), answerTo("a")}, all, "answers no "},
		"late second reply":             {[]middleware.Message{user, calls("", ok("a")), answerTo("a"), user, answerTo("a")}, all, "does not directly follow"},
		"other order":                   {[]middleware.Message{user, calls("", ok("a"), ok("b")), answerTo("b"), answerTo("a")}, all, "a rule of this module"},
		"blank id":                      {[]middleware.Message{user, calls("", ok(" ")), answerTo(" ")}, all, "blank id"},
		"no id":                         {[]middleware.Message{user, calls("", ok("")), answerTo("")}, all, "blank id"},
		"id twice in a turn":            {[]middleware.Message{user, calls("", ok("a"), ok("a")), answerTo("a"), answerTo("a")}, all, "id of another"},
		"empty arguments":               {[]middleware.Message{user, calls("", toolCall("a", "")), answerTo("a")}, all, "not a JSON object"},
		"null arguments":                {[]middleware.Message{user, calls("", toolCall("a", "null")), answerTo("a")}, all, "not a JSON object"},
		"an array":                      {[]middleware.Message{user, calls("", toolCall("a", "[{}]")), answerTo("a")}, all, "not a JSON object"},
		"cut off":                       {[]middleware.Message{user, calls("", toolCall("a", `{"a":`)), answerTo("a")}, all, "not a JSON object"},
		"two objects":                   {[]middleware.Message{user, calls("", toolCall("a", `{}{}`)), answerTo("a")}, all, "not a JSON object"},
		"not UTF-8":                     {[]middleware.Message{user, calls("", toolCall("a", "{\"a\":\"\xff\"}")), answerTo("a")}, all, "not a JSON object"},
		"calls of a user":               {[]middleware.Message{odd, answerTo("a")}, all, "only an assistant message"},
		"unknown role":                  {[]middleware.Message{user, {Role: "narrator"}}, all, "unknown role"},
		"no tool name":                  {[]middleware.Message{user, calls("", ok("a")), nameless}, some(middlewaretest.Gemini), "name of the function response"},
		"system in the middle":          {[]middleware.Message{user, system, user}, some(middlewaretest.Gemini), "system message"},
		"system between call and reply": {[]middleware.Message{user, calls("", ok("a")), system, answerTo("a")}, all, "has no "},
		"assistant last":                {[]middleware.Message{user, calls("text")}, some(middlewaretest.Gemini), "last turn"},
		"assistant first":               {[]middleware.Message{system, calls("hello"), user}, some(middlewaretest.Anthropic), "first message"},
		"call first":                    {[]middleware.Message{calls("", ok("a")), answerTo("a")}, some(middlewaretest.Anthropic, middlewaretest.Gemini), "user"},
		"call after text of its own":    {[]middleware.Message{user, calls("text"), calls("", ok("a")), answerTo("a")}, some(middlewaretest.Gemini), "directly after a user turn"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := &middleware.Request{Messages: tc.messages}
			for _, p := range everyProvider {
				err := middlewaretest.Check(p, req)
				refused := false
				for _, r := range tc.refuse {
					refused = refused || r == p
				}
				if !refused {
					require.NoError(t, err, string(p))
					continue
				}
				require.ErrorIs(t, err, middlewaretest.ErrRefused, string(p))
				require.ErrorContains(t, err, tc.says)
			}
		})
	}
}

func TestRefusalHasTheProvidersForm(t *testing.T) {
	t.Parallel()
	req := &middleware.Request{Messages: []middleware.Message{middleware.User("hi"), middleware.Assistant("", toolCall("a", "SECRET"))}}
	for p, want := range map[middlewaretest.Provider]struct{ code, text string }{
		middlewaretest.OpenAI:    {"invalid_request_error", "messages[1]: the arguments of tool call 0 are not a JSON object"},
		middlewaretest.Anthropic: {"invalid_request_error", "messages.1: the arguments of `tool_use` block 0 are not a JSON object"},
		middlewaretest.Gemini:    {"INVALID_ARGUMENT", "contents[1]: the arguments of function call 0 are not a JSON object"},
	} {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			err := middlewaretest.Check(p, req)
			var me *middleware.ModelError
			require.ErrorAs(t, err, &me)
			require.Equal(t, 400, me.StatusCode)
			require.Equal(t, want.code, me.Code)
			require.ErrorContains(t, err, want.text)
			require.NotContains(t, err.Error(), "SECRET")
			require.NotErrorIs(t, err, middleware.ErrInvalidToolCall, "the request is refused, not the model's call")
		})
	}
}

func TestStrict(t *testing.T) {
	t.Parallel()
	asked := 0
	call := middlewaretest.Strict(middlewaretest.OpenAI, func(context.Context, *middleware.Request) (*middleware.Response, error) {
		asked++
		return &middleware.Response{Message: middleware.Assistant("hi")}, nil
	})
	resp, err := call(t.Context(), &middleware.Request{})
	require.ErrorIs(t, err, middlewaretest.ErrRefused)
	require.Nil(t, resp)
	require.Zero(t, asked)

	resp, err = call(t.Context(), &middleware.Request{Messages: []middleware.Message{middleware.User("hi")}})
	require.NoError(t, err)
	require.Equal(t, "hi", resp.Message.Text())
	require.Equal(t, 1, asked)
}

func TestUnknownProviderPanics(t *testing.T) {
	t.Parallel()
	const want = `middlewaretest: Provider: one of openai, anthropic, gemini is wanted, got "acme"`
	require.PanicsWithValue(t, want, func() { middlewaretest.Strict("acme", nil) })
	require.PanicsWithValue(t, want, func() { _ = middlewaretest.Check("acme", &middleware.Request{}) })
}

// Signed reasoning goes back as it was given: unchanged, in front of the calls of its
// response, and not beside that of another response.
func TestStrictReasoning(t *testing.T) {
	t.Parallel()
	signed := func(text, signature string) middleware.Part {
		return middleware.Part{Kind: middleware.PartReasoning, Text: text, Native: &middleware.Native{Dialect: "d", Raw: signature}}
	}
	message := func(id string, parts ...middleware.Part) middleware.Message {
		m := middleware.Assistant("", ok(id))
		m.Parts = parts
		return m
	}
	one, two, text := signed("A", "1"), signed("B", "2"), middleware.Part{Text: "t"}
	for name, c := range map[string]struct {
		message middleware.Message
		says    string
	}{
		"as it was given":             {message("a", one), ""},
		"left out":                    {message("a"), ""},
		"not signed":                  {message("a", middleware.Part{Kind: middleware.PartReasoning, Text: "x"}), ""},
		"text behind it":              {message("b", one, text), ""},
		"text changed":                {message("a", signed("x", "1")), "signed reasoning cannot be modified"},
		"never given":                 {message("a", signed("A", "3")), "this signed reasoning was not given by the model"},
		"two responses":               {message("b", one, two), "signed reasoning of two responses stands in one message"},
		"two responses, text between": {message("b", one, text, two), "signed reasoning of two responses"},
		"a call of another response":  {message("b", one), "signed reasoning stands in front of a call of another response"},
		"a call that nobody knows":    {message("z", one), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, p := range everyProvider {
				answers := []middleware.Message{message("a", one), message("b", two), middleware.Assistant("done")}
				call := middlewaretest.Strict(p, func(context.Context, *middleware.Request) (*middleware.Response, error) {
					m := answers[0]
					answers = answers[1:]
					return &middleware.Response{Message: m}, nil
				})
				ask := func(ms ...middleware.Message) error {
					_, err := call(t.Context(), &middleware.Request{Messages: append([]middleware.Message{middleware.User("hi")}, ms...)})
					return err
				}
				require.NoError(t, ask())
				require.NoError(t, ask())
				err := ask(c.message, middleware.ToolReply(c.message.ToolCalls[0], "r"))
				if c.says == "" {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, middlewaretest.ErrRefused)
				require.ErrorContains(t, err, c.says)
			}
		})
	}
}
