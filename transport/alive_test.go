package transport_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/test/casefile"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// odd is an event that no format can read, with words for calls.
const odd = `{"type":"tool_use_x","choices":1,"candidates":1,"message":1,"tool_calls":1,"functionCall":{}}` + "\n"

func TestKeepAlive(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection reset")
	again := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		resp, err := next(ctx, req)
		if err == nil || !errors.Is(err, broken) && !errors.Is(err, transport.ErrUnreadable) {
			return resp, err
		}
		time.Sleep(35 * time.Second)
		return next(ctx, req)
	})
	for name, s := range speeches() {
		odd := odd
		if name != "ollama" {
			odd = "data: " + odd + "\n"
		}
		good := eventsOf(s.stream("two", `{"n":2}`))
		bad := eventsOf(s.stream("", `{}`))
		for _, c := range []struct {
			name    string
			options transport.Options
			mw      middleware.Middleware
			answers []played
		}{
			{"slow call", transport.Options{}, validate(),
				[]played{{pieces: good, pauses: []time.Duration{0, 9 * time.Second}}}},
			{"a delta a second", transport.Options{}, validate(),
				[]played{{pieces: []string{s.stream("two", fmt.Sprintf(`{"n":2%s}`, strings.Repeat(" ", 400)))}, pauses: []time.Duration{time.Second}}}},
			{"slow re-ask", transport.Options{}, validate(),
				[]played{{pieces: bad}, {before: 30 * time.Second, pieces: good}}},
			{"slow re-ask answered as one object", transport.Options{}, validate(),
				[]played{{pieces: bad}, {before: 30 * time.Second, pieces: []string{s.whole("two", `{"n":2}`)}}}},
			{"slow re-ask after text", transport.Options{}, validate(),
				[]played{{pieces: eventsOf(s.stream("one ", `{}`))}, {before: 30 * time.Second, pieces: good}}},
			{"back-off after a broken answer", transport.Options{}, again,
				[]played{{pieces: bad[:1], pauses: []time.Duration{time.Second}, end: broken}, {pieces: good, pauses: []time.Duration{0, time.Second}}}},
			{"back-off after an unreadable answer", transport.Options{}, again,
				[]played{{pieces: append(bad[:1:1], odd), pauses: []time.Duration{time.Second, 20 * time.Second}}, {pieces: good}}},
			{"hold", transport.Options{Hold: true}, validate(),
				[]played{{pieces: good, pauses: []time.Duration{3 * time.Second}}}},
			{"silence of the provider", transport.Options{}, validate(),
				[]played{{pieces: good, pauses: []time.Duration{0, 45 * time.Second, 0}}}},
			{"nothing but headers", transport.Options{}, validate(),
				[]played{{pieces: good, pauses: []time.Duration{40 * time.Second, 0}}}},
			{"slow rule", transport.Options{}, around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
				resp, err := next(ctx, req)
				time.Sleep(30 * time.Second)
				return resp, err
			}), []played{{pieces: good}}},
			{"a shorter time", transport.Options{KeepAlive: time.Second}, validate(),
				[]played{{pieces: good, pauses: []time.Duration{0, 5 * time.Second}}}},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					for i := range c.answers {
						c.answers[i].kind = s.kind
					}
					if c.name == "a delta a second" {
						c.answers[0].pieces = chop(c.answers[0].pieces[0], 40)
					}
					begin := time.Now()
					resp, err := transport.New(c.options, c.mw).Hook(s.streamRequest(t), play(c.answers...))
					require.NoError(t, err)
					require.Equal(t, http.StatusOK, resp.StatusCode)
					body, silence, err := listen(resp.Body, begin)
					require.NoError(t, err, body)
					require.LessOrEqual(t, silence, longest, body)
					if k := c.options.KeepAlive; k > 0 {
						require.LessOrEqual(t, silence, k+time.Second, body)
					}
					got := s.decode(t, body)
					require.Len(t, got.Message.ToolCalls, 1, body)
					require.Contains(t, got.Message.ToolCalls[0].Arguments, `"n":2`)
					require.True(t, strings.HasSuffix(text(got), "two"), body)
					require.NoError(t, resp.Body.Close())
				})
			})
		}
	}
}

// What a keep-alive is in each format, and where it is sent: see the files of
// testdata/TestKeepAliveForms. Anthropic and Responses need the first event before.
func TestKeepAliveForms(t *testing.T) {
	t.Parallel()
	casefile.OneForEach(t, maps.Keys(speeches()))
	for name, s := range speeches() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				slow := played{kind: s.kind, pieces: eventsOf(casefile.Body(t, "sent")), pauses: []time.Duration{0, 0, 17 * time.Second, 0}}
				resp, err := transport.New(transport.Options{Hold: true}, validate()).Hook(s.streamRequest(t), play(slow))
				require.NoError(t, err)
				casefile.Expect(t, "received", read(t, resp))
			})
		})
	}
}

func TestKeepAliveOff(t *testing.T) {
	t.Parallel()
	for name, s := range speeches() {
		sent := s.stream("two", `{"n":2}`)
		slow := func() played {
			return played{kind: s.kind, pieces: eventsOf(sent), pauses: []time.Duration{0, 30 * time.Second}}
		}
		for _, c := range []struct {
			name    string
			options transport.Options
			answer  played
			status  int
			body    string
			took    time.Duration // at least
		}{
			{"turned off", transport.Options{KeepAlive: transport.Off}, slow(), 200, sent, 30 * time.Second},
			{"turned off, held", transport.Options{KeepAlive: transport.Off, Hold: true}, slow(), 200, sent, 30 * time.Second},
			{"fast", transport.Options{}, played{kind: s.kind, pieces: eventsOf(sent), pauses: []time.Duration{0, time.Second / 4}}, 200, sent, 0},
			{"before the headers", transport.Options{}, played{kind: s.kind, before: time.Minute, pieces: eventsOf(sent)}, 200, sent, time.Minute},
			{"an error after a minute", transport.Options{}, played{kind: "application/json", before: time.Minute, status: 429, pieces: []string{`{"error":{"message":"slow down"}}`}}, 429, `{"error":{"message":"slow down"}}`, time.Minute},
			{"the body of an error", transport.Options{}, played{kind: "application/json", status: 503, pieces: []string{`{"error":{"message":"busy"}}`}, pauses: []time.Duration{time.Minute}}, 503, `{"error":{"message":"busy"}}`, time.Minute},
			{"a whole answer", transport.Options{}, played{kind: "application/json", pieces: []string{s.whole("two", `{"n":2}`)}, pauses: []time.Duration{time.Minute}}, 200, s.whole("two", `{"n":2}`), time.Minute},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					begin := time.Now()
					resp, err := transport.New(c.options, validate()).Hook(s.streamRequest(t), play(c.answer))
					require.NoError(t, err)
					require.Equal(t, c.status, resp.StatusCode)
					s.requireSame(t, c.body, read(t, resp))
					require.GreaterOrEqual(t, time.Since(begin), c.took)
				})
			})
		}
		t.Run(name+"/no stream asked for", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				path, _, _ := strings.Cut(s.path, " ")
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://model.invalid"+path, strings.NewReader(s.request(false)))
				require.NoError(t, err)
				whole := s.whole("two", `{"n":2}`)
				resp, err := transport.New(transport.Options{}, validate()).Hook(req, play(played{kind: "application/json", pieces: chop(whole, 9), pauses: []time.Duration{9 * time.Second}}))
				require.NoError(t, err)
				require.Equal(t, whole, read(t, resp))
			})
		})
	}
}

// TestKeepAliveThenError: a keep-alive commits the status, so what the chain or
// the provider refuses afterwards is an event of the stream.
func TestKeepAliveThenError(t *testing.T) {
	t.Parallel()
	for name, s := range speeches() {
		for _, c := range []struct {
			name    string
			answers []played
		}{
			{"raised", []played{{pieces: eventsOf(s.stream("", `{}`)), pauses: []time.Duration{0, 9 * time.Second}}}},
			{"refused by the provider", []played{
				{pieces: eventsOf(s.stream("", `{}`)), pauses: []time.Duration{0, 9 * time.Second}},
				{status: 429, pieces: []string{string(s.codec.EncodeError(429, "rate_limit_exceeded", "slow down"))}},
			}},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					for i := range c.answers {
						c.answers[i].kind = s.kind
					}
					raise := argsvalidate.New(argsvalidate.Options{MaxAttempts: len(c.answers)})
					resp, err := transport.New(transport.Options{}, raise).Hook(s.streamRequest(t), play(c.answers...))
					require.NoError(t, err)
					require.Equal(t, http.StatusOK, resp.StatusCode)
					body, _, _ := listen(resp.Body, time.Now())
					require.NoError(t, resp.Body.Close())
					asked, err := s.codec.DecodeRequest([]byte(s.request(true)))
					require.NoError(t, err)
					_, err = s.codec.DecodeResponse(asked, []byte(body))
					var refusal *middleware.ModelError
					require.ErrorAs(t, err, &refusal, body)
				})
			})
		}
	}
}

// TestKeepAliveClients: a client that reads slowly, or has gone, stops neither
// the timer nor the step. A goroutine that stays behind fails the bubble.
func TestKeepAliveClients(t *testing.T) {
	t.Parallel()
	for name, s := range speeches() {
		answer := func() played {
			return played{kind: s.kind, pieces: eventsOf(s.stream("two", `{"n":2}`)), pauses: []time.Duration{0, time.Hour, 0}}
		}
		t.Run(name+"/slow", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				resp, err := transport.New(transport.Options{Hold: true}, validate()).Hook(s.streamRequest(t), play(answer()))
				require.NoError(t, err)
				time.Sleep(30 * time.Minute)
				buf := make([]byte, 64<<10)
				n, err := resp.Body.Read(buf)
				require.NoError(t, err)
				require.Less(t, n, 1000, "one keep-alive waits, not one for each silence")
				body, silence, err := listen(resp.Body, time.Now())
				require.NoError(t, err)
				require.LessOrEqual(t, silence, longest)
				require.NoError(t, resp.Body.Close())
				require.Len(t, s.decode(t, string(buf[:n])+body).Message.ToolCalls, 1)
			})
		})
		t.Run(name+"/gone", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				resp, err := transport.New(transport.Options{Hold: true}, validate()).Hook(s.streamRequest(t), play(answer()))
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
			})
		})
		t.Run(name+"/its context has ended", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				resp, err := transport.New(transport.Options{Hold: true}, validate()).Hook(s.streamRequest(t).WithContext(ctx), play(answer()))
				require.NoError(t, err)
				_, silence, err := listen(resp.Body, time.Now())
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.LessOrEqual(t, silence, longest)
				require.NoError(t, resp.Body.Close())
			})
		})
	}
}

// waitingWriter is a client whose connection takes no more bytes until it is open.
type waitingWriter struct {
	*httptest.ResponseRecorder
	open chan struct{}
}

func (w waitingWriter) Write(p []byte) (int, error) {
	<-w.open
	return w.ResponseRecorder.Write(p)
}

// TestKeepAliveBehindAWrite: a keep-alive that is due does not wait for a write that waits for the
// client. In a bubble, time stands still while it does.
func TestKeepAliveBehindAWrite(t *testing.T) {
	t.Parallel()
	s := chat()
	synctest.Test(t, func(t *testing.T) {
		next := play(played{kind: s.kind, pieces: eventsOf(s.stream("two", `{"n":2}`)), pauses: []time.Duration{0}})
		h := transport.New(transport.Options{Base: doer(next)}, validate()).Handler(&url.URL{Scheme: "http", Host: "upstream.invalid"})
		w := waitingWriter{httptest.NewRecorder(), make(chan struct{})}
		var served sync.WaitGroup
		served.Go(func() { h.ServeHTTP(w, s.streamRequest(t)) })
		time.Sleep(time.Minute)
		close(w.open)
		served.Wait()
		require.Len(t, s.decode(t, w.Body.String()).Message.ToolCalls, 1)
	})
}

func TestOptionsValidate(t *testing.T) {
	t.Parallel()
	for k, ok := range map[time.Duration]bool{0: true, time.Second: true, transport.Off: true, -time.Second: false, -2: false} {
		o := transport.Options{KeepAlive: k}
		if ok {
			require.NoError(t, o.Validate(), k)
			require.NotPanics(t, func() { transport.New(o) })
		} else {
			require.ErrorContains(t, o.Validate(), "KeepAlive", k)
			require.Panics(t, func() { transport.New(o) })
		}
	}
}
