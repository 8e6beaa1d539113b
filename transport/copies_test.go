package transport_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/transport"
)

// Streams in which a client may find other arguments than the ones that another
// client finds: the client gets an error, or the ones that were validated in all places.
func TestStreamsOfTwoReadings(t *testing.T) {
	t.Parallel()
	const fine, evil = `{"n":1}`, `{"n":"evil"}`
	quoted := func(text string) string { return strings.ReplaceAll(text, `"`, `\"`) }
	// swap changes one of the places in which an answer of Responses has the
	// arguments: the delta, their end, the item, and the last event.
	swap := func(place int) string {
		parts := strings.SplitAfter(responses().stream("", fine), quoted(fine))
		require.Len(t, parts, 5)
		parts[place] = edited(t, parts[place], quoted(fine), quoted(evil))
		return strings.Join(parts, "")
	}
	early := func() string {
		return edited(t, responses().stream("", fine), `"output":[]}}`, `"output":[{"type":"function_call","id":"f","call_id":"c9","name":"add","arguments":"`+quoted(evil)+`"}]}}`)
	}
	bare := func(text, arguments string) string {
		s := responses().stream(text, arguments)
		for _, index := range []string{`"output_index":0,`, `"output_index":1,`} {
			s = strings.ReplaceAll(s, index, "")
		}
		return s
	}
	block := func(old, new string) string { return edited(t, anthropic().stream("", fine), old, new) }
	odd := strings.NewReplacer(`"model":"m"`, `"model":7`, `"status":"completed","model"`, `"status":7,"model"`)
	for name, c := range map[string]struct {
		speech speech
		sent   string
	}{
		"responses, whole":          {responses(), odd.Replace(responses().whole("", evil))},
		"anthropic, whole":          {anthropic(), odd.Replace(anthropic().whole("", evil))},
		"responses, deltas":         {responses(), swap(0)},
		"responses, arguments.done": {responses(), swap(1)},
		"responses, item.done":      {responses(), swap(2)},
		"responses, completed":      {responses(), swap(3)},
		"responses, created":        {responses(), early()},
		"responses, no index":       {responses(), bare("", evil)},
		"responses, model":          {responses(), strings.ReplaceAll(responses().stream("", evil), `"model":"m"`, `"model":7`)},
		"anthropic, message_start":  {anthropic(), block(`"content":[]`, `"content":[{"type":"tool_use","id":"c9","name":"add","input":`+evil+`}]`)},
		"anthropic, input":          {anthropic(), block(`"input":{}`, `"input":`+evil)},
		"anthropic, index":          {anthropic(), strings.ReplaceAll(anthropic().stream("", evil), `"index":1`, `"index":4`)},
		"anthropic, model":          {anthropic(), strings.ReplaceAll(anthropic().stream("", evil), `"model":"m"`, `"model":7`)},
		"anthropic, whole start":    {anthropic(), namedEvent("message_start", `{"type":"message_start","message":{"id":"x","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"c9","name":"add","input":%s}],"usage":{"input_tokens":1,"output_tokens":1}}}`, evil) + namedEvent("message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}`) + namedEvent("message_stop", `{"type":"message_stop"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := serve(t, answer(http.StatusOK, c.sent, "Content-Type", c.speech.kind))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.URL+c.speech.path, strings.NewReader(c.speech.request(true)))
			require.NoError(t, err)
			raise := argsvalidate.New(argsvalidate.Options{MaxAttempts: 1})
			resp, err := hooked(t, transport.New(transport.Options{}, raise))(req)
			require.NoError(t, err)
			body, _ := io.ReadAll(resp.Body)
			require.NoError(t, resp.Body.Close())
			require.NotContains(t, string(body), "evil")
			if !strings.Contains(string(body), "error") {
				require.Equal(t, []string{fine}, arguments(c.speech.decode(t, string(body))))
			}
		})
	}
	t.Run("no index, valid", func(t *testing.T) {
		t.Parallel()
		_, body := responses().talk(t, transport.New(transport.Options{}, validate()), true, bare("", fine))
		responses().requireSame(t, responses().stream("", fine), body)
	})
	t.Run("no index, asked again", func(t *testing.T) {
		t.Parallel()
		for shown, want := range map[string]string{"": "two", "one ": "one two"} {
			got, body := responses().talk(t, transport.New(transport.Options{}, validate()), true, bare(shown, evil), bare("two", fine))
			require.Equal(t, []string{fine}, arguments(got))
			require.Equal(t, want, text(got))
			require.NotContains(t, body, "evil")
		}
	})
}
