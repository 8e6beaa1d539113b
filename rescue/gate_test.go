package rescue_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
)

// broken is markup whose call cannot be made.
const broken = "<tool_call>{\"name\": \"get_weather\"} oops </tool_call>"

// locked is a screen for a sink that the timer calls too.
type locked struct {
	mu sync.Mutex
	screen
}

func (l *locked) event(e middleware.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.screen.event(e)
}

func (l *locked) seen() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// TestStreamFlows: text that cannot begin a call is passed on at once, and what may
// begin one not longer than 4 KiB or two seconds.
func TestStreamFlows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pieces []string
		wait   time.Duration
		shown  []string // after each piece
	}{
		"plain":                {[]string{"It ", "is ", "noon."}, 0, []string{"It ", "It is ", "It is noon."}},
		"code":                 {[]string{"if a <", " b { x(", "`<tool_call>`"}, 0, []string{"", "if a < b { x(", "if a < b { x(`<tool_call>`"}},
		"the start of a tag":   {[]string{"So <tool", "box> ", "x"}, 0, []string{"", "So <toolbox> ", "So <toolbox> x"}},
		"a tag, then prose":    {[]string{"So ", "<tool_call>", " is a tag"}, 0, []string{"So ", "So ", "So <tool_call> is a tag"}},
		"4 KiB":                {[]string{"<tool_call>{\"name\": \"", strings.Repeat("x", 4<<10), "y"}, 0, []string{"", "<tool_call>{\"name\": \"" + strings.Repeat("x", 4<<10), "<tool_call>{\"name\": \"" + strings.Repeat("x", 4<<10) + "y"}},
		"behind a broken call": {[]string{broken, strings.Repeat("x", 4<<10), "y"}, 0, []string{"", broken + strings.Repeat("x", 4<<10), broken + strings.Repeat("x", 4<<10) + "y"}},
		"two seconds":          {[]string{"<tool_call>{\"na", "me\": \""}, 2 * time.Second, []string{"", "<tool_call>{\"name\": \""}},
		"a bare call":          {[]string{"{\"na", "me\":", " \"get_weather\", \"arguments\": {", strings.Repeat(" ", 9<<10)}, 0, []string{"", "", "", ""}},
		"a slow bare call":     {[]string{"{\"na", "me\":", " \"get_weather\", \"arguments\": {", strings.Repeat(" ", 9<<10)}, 1500 * time.Millisecond, []string{"", "", "{\"name\":", "{\"name\":"}},
		"a call in a block":    {[]string{"```js", "on\n{", "\"name\": \"get_weather\", \"arguments\": {", strings.Repeat(" ", 9<<10)}, 0, []string{"", "", "", ""}},
		"a call is held":       {[]string{"B", "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"", strings.Repeat("x", 9<<10)}, 2 * time.Second, []string{"B", "B", "B"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var shown locked
				req := request()
				req.Sink = shown.event
				_, err := rescue.New(rescue.Options{MaxAttempts: 1, OnExhausted: middleware.Pass})(func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
					for i, p := range c.pieces {
						if i > 0 {
							time.Sleep(c.wait) // of the test's own clock
						}
						require.NoError(t, req.Sink(middleware.Event{Kind: middleware.EventText, Text: p}))
						require.Equal(t, c.shown[i], shown.seen(), i)
					}
					return &middleware.Response{Message: middleware.Assistant(strings.Join(c.pieces, ""))}, nil
				})(context.Background(), req)
				require.NoError(t, err)
				require.Equal(t, strings.Join(c.pieces, ""), shown.seen())
			})
		})
	}
}

// TestHeldTime: what may begin a call is passed on after two seconds although no
// further piece arrives, and what follows a call that cannot be made is not held
// again. An error of the sink ends the step.
func TestHeldTime(t *testing.T) {
	t.Parallel()
	const open = "So <tool_call>{\"na"
	sunk := errors.New("the client has gone")
	for name, c := range map[string]struct {
		first string
		shown string // at once
		more  string
		sink  error
		held  bool // to the end
	}{
		"the start of a call": {first: open, shown: "", more: "me\": \"x\", and no call"},
		"a broken call":       {first: broken, shown: "", more: " and more"},
		"a call":              {first: "A <tool_call>{\"name\": \"get_weather\", ", shown: "", more: "\"arguments\": {}}</tool_call>", held: true},
		"a failing sink":      {first: open, sink: sunk},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var shown locked
				req := request()
				req.Sink = func(e middleware.Event) error {
					if c.sink != nil {
						return c.sink
					}
					return shown.event(e)
				}
				_, err := rescue.New(rescue.Options{MaxAttempts: 1, OnExhausted: middleware.Pass})(func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
					require.NoError(t, req.Sink(middleware.Event{Kind: middleware.EventText, Text: c.first}))
					time.Sleep(2*time.Second - time.Nanosecond) // of the test's own clock
					synctest.Wait()
					require.Equal(t, c.shown, shown.seen())
					time.Sleep(time.Nanosecond) // of the test's own clock
					synctest.Wait()
					switch {
					case c.sink != nil:
						return &middleware.Response{Message: middleware.Assistant(c.first)}, nil
					case c.held:
						require.Equal(t, c.shown, shown.seen())
					default:
						require.Equal(t, c.first, shown.seen())
					}
					require.NoError(t, req.Sink(middleware.Event{Kind: middleware.EventText, Text: c.more}))
					if !c.held {
						require.Equal(t, c.first+c.more, shown.seen())
					}
					return &middleware.Response{Message: middleware.Assistant(c.first + c.more)}, nil
				})(context.Background(), req)
				require.ErrorIs(t, err, c.sink)
				if c.held {
					require.Equal(t, "A", strings.TrimSpace(shown.seen()))
				}
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
