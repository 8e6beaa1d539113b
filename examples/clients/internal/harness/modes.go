package harness

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/examples/clients/internal/fake"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// exhausted: a model that never learns, and a stack that passes the last message on.
func exhausted(t *testing.T, p Path) {
	var script []fake.Answer
	for _, id := range []string{"call_1", "call_2", "call_3"} { // Anthropic wants ids that differ in all of a request
		script = append(script, say(fake.Call{ID: id, Name: tool, Arguments: `{"days":1}`}))
	}
	server := fake.New(p.Wire, script...)
	defer server.Close()
	got := askWith(t, p, server, argsvalidate.Options{OnExhausted: middleware.Pass})
	require.Equal(t, 3, len(requests(t, p, server, 0)))
	same(t, p, script[2].Calls, got.calls)
}

// raise: the same with the zero value, which raises.
func raise(t *testing.T, p Path) {
	server := fake.New(p.Wire, args(`{"days":1}`), args(`{"days":2}`))
	defer server.Close()
	ctx, call := transport.Watch(t.Context())
	var out bytes.Buffer
	err := p.Run(ctx, &out, server.URL, key, argsvalidate.Options{MaxAttempts: 2})
	require.True(t, p.Deaf || err != nil) // a deaf client hears of an error only before the stream begins
	require.Empty(t, server.Refused())
	require.Empty(t, read(out.String()).calls)
	require.Equal(t, 2, len(requests(t, p, server, 0)), "the client asked again")
	status, resp := p.Failed(err)
	switch {
	case p.Deaf:
	case p.Stream && status != http.StatusBadRequest: // it had begun: the error is an event in it
		require.ErrorContains(t, err, "get_weather: city is missing (2 attempts)")
	case resp != nil:
		require.ErrorIs(t, p.Cause(err), argsvalidate.ErrExhausted)
		fallthrough
	default:
		require.Equal(t, http.StatusBadRequest, status, "%T %v", err, err)
	}

	require.ErrorIs(t, call.Err(), argsvalidate.ErrExhausted)
	var failed *argsvalidate.Error
	require.ErrorAs(t, call.Err(), &failed)
	require.Len(t, failed.Verdicts, 1)
	require.Len(t, call.Report().Attempts, 2)
	require.Equal(t, middleware.Invalid, call.Report().Status)
}

// noCalls: an answer in words goes through, after a wait that the service
// asked for.
func noCalls(t *testing.T, p Path) {
	server := fake.New(p.Wire, fake.Answer{Busy: true}, fake.Answer{Text: "It rains in Oslo."})
	defer server.Close()
	got := ask(t, p, server)
	require.Equal(t, "It rains in Oslo.", got.text)
	require.Empty(t, got.calls)
	require.Equal(t, 2, len(requests(t, p, server, 1)))
}

// busy: a service that is busy for good costs the four attempts of package retry,
// and not their product with the client's own.
func busy(t *testing.T, p Path) {
	server := fake.New(p.Wire, fake.Answer{Busy: true})
	defer server.Close()
	err := p.Run(t.Context(), io.Discard, server.URL, key, argsvalidate.Options{})
	require.Error(t, err)
	require.Empty(t, server.Refused(), "the service refused a request")
	require.Equal(t, 4, len(server.Requests()))
}

// live: text is shown while the model still writes its calls, and a mistake in
// them is corrected all the same.
func live(t *testing.T, p Path) {
	out := &pipe{first: make(chan struct{}), want: "I will look."}
	late := make(chan struct{}, 2)
	gate := func() {
		select {
		case <-out.first:
		case <-time.After(10 * time.Second):
			late <- struct{}{}
		}
	}
	server := fake.NewGated(p.Wire, gate, fake.Answer{Text: "I will look.", Calls: args(`{"town":"Oslo"}`).Calls}, good)
	defer server.Close()
	require.NoError(t, p.Run(t.Context(), out, server.URL, key, argsvalidate.Options{}))
	require.Empty(t, late, "text was held back")
	require.Empty(t, server.Refused())
	got := read(out.b.String())
	same(t, p, good.Calls, got.calls)
	require.Equal(t, 2, len(requests(t, p, server, 0)))
}
