package wire_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// A provider may quote the key in a stream too, whose status was good.
func TestModelHidesTheKeyInAStream(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, p provider) {
		sent := string(p.codec.EncodeError(500, "auth", "Incorrect key "+key))
		if p.codec != wire.Ollama() {
			sent = "data: " + sent + "\n\n"
		}
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, sent) })
		_, err := p.codec.Model(wire.Endpoint{URL: url, Key: key})(t.Context(), question())
		var m *middleware.ModelError
		require.ErrorAs(t, err, &m)
		require.ErrorContains(t, err, "Incorrect key [key]")
		require.NotContains(t, err.Error(), key)
	})
}

// The time that the caller takes for a piece of text is not silence of the server.
func TestModelWaitsForASlowSink(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, p provider) {
		const silence = 500 * time.Millisecond // a loaded machine is silent for less
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, p.stream) })
		req := question()
		asked := t.Context()
		client := &http.Client{Transport: observer(func(r *http.Request) { asked = r.Context() })}
		req.Sink = func(middleware.Event) error {
			select {
			case <-asked.Done():
				return errors.New("the call has ended")
			case <-time.After(2 * silence):
				return nil
			}
		}
		resp, err := p.codec.Model(wire.Endpoint{URL: url, Client: client, Silence: silence})(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, "Hello", resp.Message.Text())
	})
}

// observer is a transport that looks at requests.
type observer func(*http.Request)

func (o observer) RoundTrip(r *http.Request) (*http.Response, error) {
	o(r)
	return http.DefaultTransport.RoundTrip(r)
}

// The headers belong to the caller: a client's transport that changes its own copy does not
// reach them, spellings are joined, and no packed answer is requested that is not unpacked.
func TestModelCopiesHeaders(t *testing.T) {
	t.Parallel()
	p := providers()["chat"]
	var got http.Header
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		fmt.Fprint(w, p.unary)
	})
	client := &http.Client{Transport: observer(func(r *http.Request) { r.Header["X-Own"][0] = "other" })}
	req := question()
	req.Header = http.Header{"X-Own": {"yes"}, "x-two": {"a"}, "X-Two": {"b"}, "Accept-Encoding": {"br"}}
	_, err := p.codec.Model(wire.Endpoint{URL: url, Client: client})(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, []string{"yes"}, req.Header["X-Own"])
	require.ElementsMatch(t, []string{"a", "b"}, got["X-Two"])
	require.Equal(t, "gzip", got.Get("Accept-Encoding"))
}
