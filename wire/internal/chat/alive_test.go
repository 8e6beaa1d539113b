package chat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/wire/internal/chat"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// The keep-alive is a chunk without content as soon as the client has the first chunk, which
// is sent alone if it has only the role.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	const (
		head  = `data: {"id":"x","object":"chat.completion.chunk","created":7,"model":"m","service_tier":"default","choices":[{"index":0,"delta":`
		tail  = `,"finish_reason":null}]}` + "\n\n"
		empty = `data: {"id":"x","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":null}]}` + "\n\n"
		role  = head + `{"role":"assistant","content":"","refusal":null}` + tail
		hi    = head + `{"role":"assistant","content":"hi"}` + tail
		call  = head + `{"role":"assistant","tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":""}}]}` + tail
	)
	for name, c := range map[string]struct {
		stream string
		take   bool
		want   string
	}{
		"nothing yet":              {"", false, codec.Comment},
		"a role":                   {role, false, role + empty},
		"a comment, then a role":   {": wait\n\n" + role, false, ": wait\n\n" + role + empty},
		"a chunk without a choice": {`data: {"id":"x","choices":[]}` + "\n\n", true, codec.Comment},
		"a role that was taken":    {role, true, empty},
		"text":                     {hi, false, codec.Comment},
		"text that was taken":      {hi, true, empty},
		"a call":                   {call, true, codec.Comment},
		"a role and a call":        {role + call, false, role + empty},
		"no stream":                {`{"choices":[]}`, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := codec.NewCursor(chat.Format{}, chat.Format{}.NewStream(nil, nil))
			_, err := s.Write([]byte(c.stream))
			require.NoError(t, err)
			if c.take {
				s.Take()
			}
			require.Equal(t, c.want, string(s.KeepAlive()))
		})
	}
}
