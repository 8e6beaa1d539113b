package transport_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
	"github.com/toolmend/toolmend/wire"
)

// exchange is one recorded request and its answer.
type exchange struct {
	ID, Path, Request, Response string
	Status                      int
	ContentType                 string `json:"content_type"`
}

// recordings reads the exchanges of a dialect, which stand beside the
// repository; where they do not, the test is skipped.
func recordings(t *testing.T, dialect string) []exchange {
	f, err := os.Open(filepath.Join("..", "..", "shared", "data", "wire", dialect+".jsonl.gz"))
	if os.IsNotExist(err) {
		t.Skip("the recorded exchanges are not here")
	}
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var all []exchange
	for r := bufio.NewReader(z); ; {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			var x exchange
			require.NoError(t, json.Unmarshal(line, &x))
			all = append(all, x)
		}
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
	}
}

// replay is a client's next that gives the recorded answer, in small pieces. The first request
// must be the recorded one, byte for byte.
func (x exchange) replay(t require.TestingT, calls *int) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		if *calls++; *calls == 1 { // no request is changed before it is refused
			body, err := io.ReadAll(req.Body)
			require.NoError(t, err, x.ID)
			require.Equal(t, x.Request, string(body), x.ID)
		}
		h := http.Header{}
		if x.ContentType != "" {
			h.Set("Content-Type", x.ContentType)
		}
		return &http.Response{StatusCode: x.Status, Header: h, ContentLength: -1, Request: req,
			Body: io.NopCloser(&pieces{x.Response, 97})}, nil
	}
}

// pieces reads a text in pieces of a size.
type pieces struct {
	text string
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	n := copy(b, p.text[:min(len(p.text), p.size)])
	p.text = p.text[n:]
	return n, nil
}

var dialects = []string{"openai-chat", "openai-responses", "anthropic-messages", "gemini-generate", "ollama-chat"}

// TestRecordedExchanges: what really went over the line reaches the client, as it was
// unless it may hold a call, and a forced re-ask is an answer that the format reads.
func TestRecordedExchanges(t *testing.T) {
	t.Parallel()
	for _, dialect := range dialects {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			ran := 0
			plain := transport.New(transport.Options{}, validateNothing(), around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
				ran++
				return next(ctx, req)
			}))
			deferred := transport.New(transport.Options{DeferMessages: true}, validateNothing())
			again, refused, healed := 0, 0, 0
			all := recordings(t, dialect)
			for i, x := range all {
				calls := 0
				var watched *transport.Call
				send := func(tr *transport.Transport) (*http.Response, string, error) {
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1", strings.NewReader(x.Request))
					require.NoError(t, err)
					req.URL.Path, req.URL.RawQuery, _ = strings.Cut(x.Path, "?")
					ctx, call := transport.Watch(t.Context())
					watched = call
					resp, err := tr.Hook(req.WithContext(ctx), x.replay(t, &calls))
					if err != nil {
						return nil, "", err
					}
					b, err := io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					return resp, string(b), err
				}
				resp, got, err := send(plain)
				if err == nil {
					require.Equal(t, x.Status, resp.StatusCode, x.ID)
					requireSameAnswer(t, x, got)
				} else {
					require.ErrorIs(t, err, io.ErrUnexpectedEOF, x.ID)
					t.Logf("%s: the recording breaks off", x.ID)
				}
				if x.Status == http.StatusBadRequest && calls == 2 { // package heal knows the refusal, and this provider gives it again
					healed++
				} else {
					require.Equal(t, 1, calls, x.ID)
				}
				if err == nil {
					calls = 0
					resp, same, err := send(deferred)
					require.NoError(t, err, x.ID)
					require.Equal(t, x.Status, resp.StatusCode, x.ID)
					require.Equal(t, got, same, x.ID)
				}
				calls = 0
				resp, got, err = send(transport.New(transport.Options{DeferMessages: i%2 == 0}, refuseOnce()))
				if calls != 2 {
					continue
				}
				again++
				if err != nil || resp.Header.Get("X-Toolmend-Error") != "" {
					if err == nil {
						err = transport.Cause(resp)
					}
					require.ErrorIs(t, err, wire.ErrUnencodable, x.ID)
					t.Logf("%s: %v", x.ID, err)
					refused++
					continue
				}
				err = decodes(x, got)
				if errors.Is(watched.Err(), middleware.ErrInvalidToolCall) { // both times
					if got != x.Response { // behind text that was shown
						var failed *middleware.ModelError
						require.ErrorAs(t, err, &failed, x.ID)
					}
					continue
				}
				require.NoError(t, err, "%s\n%s", x.ID, got)
			}
			t.Logf("%d exchanges, %d through the chain, %d asked again, %d of these refused; %d refusals of the provider that a change may heal", len(all), ran, again, refused, healed)
		})
	}
}

// requireSameAnswer requires that the client reads in got what the provider sent.
func requireSameAnswer(t *testing.T, x exchange, got string) {
	t.Helper()
	if x.Response == got {
		return
	}
	var read [2]*middleware.Response
	for _, c := range wire.Codecs() {
		if !c.Match(strings.SplitN(x.Path, "?", 2)[0], []byte(x.Request)) {
			continue
		}
		require.True(t, c.MayHoldCall([]byte(x.Response)) || strings.Contains(x.Response, "\r"), "%s: an answer without words for calls is passed as it came", x.ID)
		req, err := c.DecodeRequest([]byte(x.Request))
		require.NoError(t, err, x.ID)
		for i, body := range []string{x.Response, got} {
			var failed *middleware.ModelError
			if read[i], err = c.DecodeResponse(req, []byte(body)); i == 1 && read[0] == nil {
				require.ErrorAs(t, err, &failed, "%s\n%s", x.ID, body)
				return
			}
			if errors.As(err, &failed) {
				continue
			}
			require.NoError(t, err, "%s\n%s", x.ID, body)
			read[i].Message = bare(read[i].Message)
			read[i].Native, read[i].ID = nil, "" // a server may leave the id out: then a written answer has one
			for j := range read[i].Choices {
				read[i].Choices[j] = bare(read[i].Choices[j])
			}
		}
		break
	}
	require.Equal(t, read[0], read[1], "%s\n%s\n%s", x.ID, x.Response, got)
}

// bare returns m without what its format keeps of it.
func bare(m middleware.Message) middleware.Message {
	m = m.Clone()
	m.Native = nil
	for i := range m.Parts {
		m.Parts[i].Native = nil
	}
	for i := range m.ToolCalls {
		m.ToolCalls[i].Native = nil
	}
	return m
}

// validateNothing is a chain that looks at everything and changes nothing.
func validateNothing() middleware.Middleware {
	return around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		var tally middleware.Tally
		return tally.Finish(tally.Call(ctx, next, req))
	})
}

// refuseOnce refuses the first call that it sees, and every later one is good.
func refuseOnce() middleware.Middleware {
	seen := 0
	return argsvalidate.New(argsvalidate.Options{
		UnknownTools: argsvalidate.PassUnknown, MaxAttempts: 2, OnExhausted: middleware.Pass,
		Rules: []argsvalidate.Rule{argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) {
			if seen++; seen == 1 {
				return []middleware.Issue{{Code: "rule", Message: "not yet"}}, nil
			}
			return nil, nil
		})},
	})
}

// decodes says whether the format of x reads body as an answer with the calls
// of x.
func decodes(x exchange, body string) error {
	for _, c := range wire.Codecs() {
		if !c.Match(strings.SplitN(x.Path, "?", 2)[0], []byte(x.Request)) {
			continue
		}
		req, err := c.DecodeRequest([]byte(x.Request))
		if err != nil {
			return err
		}
		_, err = c.DecodeResponse(req, []byte(body))
		return err
	}
	return wire.ErrShape
}
