package rescue_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
)

// TestStreamFlows: text that cannot begin a call is passed on at once, and what may
// begin one not longer than 4 KiB or two seconds.
func TestStreamFlows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pieces []string
		wait   time.Duration
		shown  []string // after each piece
	}{
		"plain":              {[]string{"It ", "is ", "noon."}, 0, []string{"It ", "It is ", "It is noon."}},
		"code":               {[]string{"if a <", " b { x(", "`<tool_call>`"}, 0, []string{"", "if a < b { x(", "if a < b { x(`<tool_call>`"}},
		"the start of a tag": {[]string{"So <tool", "box> ", "x"}, 0, []string{"", "So <toolbox> ", "So <toolbox> x"}},
		"a tag, then prose":  {[]string{"So ", "<tool_call>", " is a tag"}, 0, []string{"So ", "So ", "So <tool_call> is a tag"}},
		"4 KiB":              {[]string{"<tool_call>{\"name\": \"", strings.Repeat("x", 4<<10), "y"}, 0, []string{"", "<tool_call>{\"name\": \"" + strings.Repeat("x", 4<<10), "<tool_call>{\"name\": \"" + strings.Repeat("x", 4<<10) + "y"}},
		"two seconds":        {[]string{"<tool_call>{\"na", "me\": \""}, 2 * time.Second, []string{"", "<tool_call>{\"name\": \""}},
		"a call is held":     {[]string{"A", "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"", strings.Repeat("x", 9<<10)}, 2 * time.Second, []string{"A", "A", "A"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var shown screen
				req := request()
				req.Sink = shown.event
				_, err := rescue.New(rescue.Options{MaxAttempts: 1})(func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
					for i, p := range c.pieces {
						if i > 0 {
							time.Sleep(c.wait) // of the test's own clock
						}
						require.NoError(t, req.Sink(middleware.Event{Kind: middleware.EventText, Text: p}))
						require.Equal(t, c.shown[i], string(shown.text), i)
					}
					return &middleware.Response{Message: middleware.Assistant(strings.Join(c.pieces, ""))}, nil
				})(context.Background(), req)
				require.NoError(t, err)
				require.Equal(t, strings.Join(c.pieces, ""), string(shown.text))
			})
		})
	}
}

// TestShownTooEarly: a call whose head the sink has already got is reset.
func TestShownTooEarly(t *testing.T) {
	t.Parallel()
	text := `<tool_call>{"arguments": {"path": "` + strings.Repeat("x", 9<<10) + `"}, "name": "write_file"}</tool_call>`
	var kinds []middleware.EventKind
	req := request()
	req.Sink = func(e middleware.Event) error {
		kinds = append(kinds, e.Kind)
		return nil
	}
	var asked []*middleware.Request
	out, err := rescue.New(rescue.Options{})(streamed(answers(&asked, "A "+text), []string{"A ", text[:8<<10], text[8<<10:]}))(context.Background(), req)
	require.NoError(t, err)
	require.Len(t, out.Message.ToolCalls, 1)
	require.Equal(t, []middleware.EventKind{middleware.EventText, middleware.EventText, middleware.EventText, middleware.EventReset, middleware.EventText}, kinds)
}

// TestLeadingSpace: white space before a call is not shown, so that nothing has to
// be reset.
func TestLeadingSpace(t *testing.T) {
	t.Parallel()
	text := "\n\n[TOOL_CALLS]get_time[ARGS]{}"
	var asked []*middleware.Request
	req := request()
	req.Sink = func(e middleware.Event) error {
		require.Fail(t, "shown", "%v", e)
		return nil
	}
	out, err := rescue.New(rescue.Options{})(streamed(answers(&asked, text), []string{"\n", "\n[TOOL", "_CALLS]get_time[ARGS]{}"}))(context.Background(), req)
	require.NoError(t, err)
	require.Len(t, out.Message.ToolCalls, 1)
}
