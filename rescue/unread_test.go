package rescue_test

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
)

// foreign are calls in markups that no form reads.
var foreign = map[string]string{
	"a tag":              `<acme_tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</acme_tool_call>`,
	"a token":            `<|acme_call|>functions.get_weather:0 {"city": "Oslo"}`,
	"capitals":           "[CALL_FUNCTION] get_weather {\"city\": \"Oslo\"}",
	"an attribute":       `<call tool="get_weather" city="Oslo"/>`,
	"a name and a list":  "<tool_call>get_weather('Oslo')</tool_call>",
	"a tag for the tool": "<get_weather>\n<city>Oslo</city>\n</get_weather>",
}

// TestUnread: a call in markup that is not read is noted, and asked about if the
// options say so, whole and streamed. The reply has nothing of the text.
func TestUnread(t *testing.T) {
	t.Parallel()
	for name, text := range foreign {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask := func(o rescue.Options, text string, pieces []string) (*middleware.Response, []*middleware.Request, string) {
				var asked []*middleware.Request
				var shown screen
				req, model := request(), answers(&asked, text, "Done.")
				if pieces != nil {
					req.Sink, model = shown.event, func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
						if len(asked) > 0 {
							return answers(&asked, "", "Done.")(ctx, req)
						}
						return streamed(answers(&asked, text), pieces)(ctx, req)
					}
				}
				resp, err := rescue.New(o)(model)(context.Background(), req)
				require.NoError(t, err)
				require.Empty(t, resp.Message.ToolCalls)
				return resp, asked, string(shown.text)
			}
			resp, asked, _ := ask(rescue.Options{}, text, nil)
			require.Len(t, asked, 1)
			require.True(t, rescue.Unread(resp.Report))
			require.Equal(t, "unread", resp.Report.Attempts[0].Issues[0].Code)
			require.Equal(t, text, resp.Message.Text())
			require.Equal(t, middleware.NoCalls, resp.Report.Status)

			resp, asked, _ = ask(rescue.Options{ReaskUnread: true}, "Right.\n"+text, nil)
			require.Len(t, asked, 2)
			require.True(t, rescue.Unread(resp.Report))
			require.Equal(t, "Done.", resp.Message.Text())
			reply := resp.Report.Attempts[0].Replies[0].Text()
			require.NotContains(t, reply, "get_weather")
			require.NotContains(t, reply, "Oslo")

			for _, end := range []string{"", "\n<"} { // the second one may begin a call, and is held
				_, asked, shown := ask(rescue.Options{ReaskUnread: true}, "Right.\n"+text+end, []string{"Right.\n" + text + end})
				require.Len(t, asked, 2, "as a whole answer")
				require.Equal(t, "Done.", shown)
			}

			for _, pieces := range splits(text) {
				held := &screen{}
				var asked []*middleware.Request
				req := request()
				req.Sink = held.event
				model := answers(&asked, text, "Done.")
				_, err := rescue.New(rescue.Options{ReaskUnread: true})(func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
					if len(asked) > 0 {
						return model(ctx, req)
					}
					return streamed(model, pieces)(ctx, req)
				})(context.Background(), req)
				require.NoError(t, err)
				require.Len(t, asked, 2, "%q", pieces)
				require.Equal(t, "Done.", string(held.text))

				resp, asked, shown := ask(rescue.Options{ReaskUnread: true}, "Right.\n"+text, append([]string{"Right.\n"}, pieces...))
				require.Len(t, asked, 2, "%q", pieces)
				require.True(t, rescue.Unread(resp.Report))
				require.Equal(t, "Done.", shown)
			}
		})
	}
}

// TestNotUnread has texts that are not noted.
func TestNotUnread(t *testing.T) {
	t.Parallel()
	texts := map[string]string{
		"prose about a mark":    "The tag <tool_call> begins a call of get_weather.",
		"prose about a tool":    "I use <b>get_weather</b> and <code>get_time</code>.",
		"a link":                "See [get_weather](https://tools.invalid/call).",
		"HTML":                  "<table><tr><td>get_weather</td></tr></table>",
		"no tool of the offer":  `<acme_tool_call>{"name": "get_whether"}</acme_tool_call>`,
		"an example":            `For example: <acme_tool_call>{"name": "get_weather"}`,
		"a closing mark":        "</tool_call>get_weather",
		"a call in another tag": "<Button onClick={call(get_weather)}>",
		"far away":              "<acme_call>" + strings.Repeat(" ", 200) + "get_weather",
	}
	for name, text := range foreign {
		texts[name+" between backticks"] = "Write `" + strings.ReplaceAll(text, "\n", "") + "`."
		texts[name+" in a block"] = "```\n" + text + "\n```"
		texts[name+" in a quotation"] = `It says "` + text
		texts[name+" behind a mark of Markdown"] = "> " + strings.ReplaceAll(text, "\n", "")
		texts[name+" in reasoning"] = "<think>" + text + "</think>Hi."
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked []*middleware.Request
			resp, err := rescue.New(rescue.Options{ReaskUnread: true})(answers(&asked, text))(context.Background(), request())
			require.NoError(t, err)
			require.False(t, rescue.Unread(resp.Report))
			require.Len(t, asked, 1, "%v", resp.Report.Attempts[0].Issues)
		})
	}
	requested := maps.Clone(foreign)
	requested["a short one"] = "<x_call>get_time"
	for name, text := range requested {
		t.Run(name+" in the request", func(t *testing.T) {
			t.Parallel()
			var asked []*middleware.Request
			req := request()
			req.Messages = append(req.Messages, middleware.ToolReply(middleware.ToolCall{ID: "a", Name: "fetch"}, "<html>"+text+"</html>"))
			resp, err := rescue.New(rescue.Options{ReaskUnread: true})(answers(&asked, "It has "+text))(context.Background(), req)
			require.NoError(t, err)
			require.False(t, rescue.Unread(resp.Report))
			require.Len(t, asked, 1)
		})
	}
}
