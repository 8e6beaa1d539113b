package rescue_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
)

// TestEmptyRequired: a required text that is empty is asked about once, and is meant
// if it comes again. An empty text elsewhere is not asked about.
func TestEmptyRequired(t *testing.T) {
	t.Parallel()
	const empty = `{"name": "send", "arguments": {"to": "", "body": ""}}`
	req := &middleware.Request{Tools: []middleware.Tool{tool("send", `{"type": "object", "properties": {"to": {"type": "string"}, "body": {"type": "string"}}, "required": ["to"]}`)}}
	for name, c := range map[string]struct {
		texts []string
		asked int
		call  string
	}{
		"corrected":    {[]string{empty, `{"name": "send", "arguments": {"to": "Ann"}}`}, 2, `send{"to": "Ann"}`},
		"meant":        {[]string{empty, empty}, 2, `send{"to": "", "body": ""}`},
		"not required": {[]string{`{"name": "send", "arguments": {"to": "Ann", "body": ""}}`}, 1, `send{"to": "Ann", "body": ""}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked []*middleware.Request
			resp, err := rescue.New(rescue.Options{})(answers(&asked, c.texts...))(context.Background(), req)
			require.NoError(t, err)
			require.Len(t, asked, c.asked)
			require.Equal(t, []string{c.call}, calls(resp.Message))
			if c.asked > 1 {
				require.Equal(t, "empty_value", resp.Report.Attempts[0].Issues[0].Code)
				require.Contains(t, resp.Report.Attempts[0].Replies[0].Text(), "to is empty")
			}
		})
	}
}

// TestReaskedCall: the call of a second attempt counts.
func TestReaskedCall(t *testing.T) {
	t.Parallel()
	var asked []*middleware.Request
	resp, err := rescue.New(rescue.Options{})(answers(&asked, `<tool_call>{"name": "get_w`, `<tool_call>{"name": "get_time"}</tool_call>`))(context.Background(), request())
	require.NoError(t, err)
	require.Equal(t, []string{"get_time{}"}, calls(resp.Message))
	require.Len(t, resp.Report.Attempts, 2)
	require.Equal(t, 1, resp.Report.Final)
	require.Equal(t, 1, resp.Report.Rescued())
}
