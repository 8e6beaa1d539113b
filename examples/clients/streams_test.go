// Package clients_test feeds recorded streams, after changes that a stack makes
// to them, to the readers of the official SDKs: each has to see what the codec
// says is in there.
package clients_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// recorded is where the recorded exchanges are, seen from here.
const recorded = "../../../shared/data/wire"

type exchange struct {
	ID, Request, Response, Format string
	Status                        int
	Features                      []string
}

// load returns the exchanges of a dialect with tool calls in the answer. They
// are read once.
func load(t *testing.T, dialect string) (streams, whole []exchange) {
	t.Helper()
	once, _ := loaded.LoadOrStore(dialect, sync.OnceValues(func() ([]exchange, []exchange) { return read(t, dialect) }))
	streams, whole = once.(func() ([]exchange, []exchange))()
	if streams == nil {
		t.Skip("no recorded exchanges at " + recorded)
	}
	return streams, whole
}

var loaded sync.Map

func read(t *testing.T, dialect string) (streams, whole []exchange) {
	t.Helper()
	file, err := os.Open(filepath.Join(recorded, dialect+".jsonl.gz"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	require.NoError(t, err)
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	lines := bufio.NewReader(unzipped)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 {
			require.ErrorContains(t, err, "EOF")
			return streams, whole
		}
		if !bytes.Contains(line, []byte(`"calls"`)) { // among the features
			continue
		}
		var x exchange
		require.NoError(t, json.Unmarshal(line, &x))
		if x.Status != 200 || !slices.Contains(x.Features, "calls") {
			continue
		}
		switch x.Format {
		case "sse":
			streams = append(streams, x)
		case "json":
			whole = append(whole, x)
		}
	}
}

// dialect is a format and the reader of its SDK.
type dialect struct {
	name  string
	file  string
	codec wire.Codec
	read  func(body []byte) (seen, error)
	least int // streams that are compared
}

var dialects = []dialect{
	{"chat", "openai-chat", wire.OpenAIChat(), readChat, 120},
	{"langchaingo", "openai-chat", wire.OpenAIChat(), readLangchaingo, 70},
	{"responses", "openai-responses", wire.OpenAIResponses(), readResponses, 50},
	{"anthropic", "anthropic-messages", wire.Anthropic(), readAnthropic, 40},
	{"gemini", "gemini-generate", wire.Gemini(), readGemini, 25},
}

// subject is one recorded stream that the SDK and the codec agree on.
type subject struct {
	exchange
	req  *middleware.Request
	resp *middleware.Response
	sdk  seen
}

// subjects returns the streams with calls for the client that the SDK itself
// can read; the others say nothing about a change.
func (d dialect) subjects(t *testing.T) []subject {
	t.Helper()
	streams, _ := load(t, d.file)
	once, _ := agreed.LoadOrStore(d.name, sync.OnceValue(func() []subject { return d.agree(t, streams) }))
	all := once.(func() []subject)()
	require.GreaterOrEqual(t, len(all), d.least, "streams to compare")
	t.Logf("%d of %d streams", len(all), len(streams))
	return all
}

var agreed sync.Map

func (d dialect) agree(t *testing.T, streams []exchange) (all []subject) {
	t.Helper()
	for _, x := range streams {
		req, err := d.codec.DecodeRequest([]byte(x.Request))
		require.NoError(t, err, x.ID)
		resp, err := d.codec.DecodeResponse(req, []byte(x.Response))
		if err != nil || len(resp.Message.ToolCalls) == 0 {
			continue
		}
		sdk, err := d.read([]byte(x.Response))
		if err != nil || len(sdk.Calls) != len(resp.Message.ToolCalls) {
			continue
		}
		all = append(all, subject{x, req, resp, sdk})
	}
	return all
}

// view returns what the codec sees in a stream, as an SDK would say it.
func (d dialect) view(t *testing.T, s subject, body []byte) seen {
	t.Helper()
	resp, err := d.codec.DecodeResponse(s.req, body)
	require.NoError(t, err, s.ID)
	return viewOf(resp)
}

func viewOf(resp *middleware.Response) seen {
	v := seen{Text: resp.Message.Text(), Finish: string(resp.FinishReason)}
	for _, c := range resp.Message.ToolCalls {
		v.Calls = append(v.Calls, call{c.ID, c.Name, c.Arguments})
	}
	return v
}

// check compares the SDK's view of body with the codec's, and returns it.
func (d dialect) check(t *testing.T, s subject, body []byte) seen {
	t.Helper()
	got, err := d.read(body)
	require.NoError(t, err, "%s\n%s", s.ID, body)
	want := d.view(t, s, body)
	require.Equal(t, want.Text, got.Text, s.ID)
	sameCalls(t, s.ID, want.Calls, got.Calls)
	return got
}

// sameCalls compares calls; an SDK that reads arguments into Go values writes
// them in its own way, and does not know ids that are not on the wire.
func sameCalls(t *testing.T, id string, want, got []call) {
	t.Helper()
	require.Len(t, got, len(want), id)
	for i, w := range want {
		if !strings.HasPrefix(w.ID, "toolmend_") || got[i].ID != "" {
			require.Equal(t, w.ID, got[i].ID, id)
		}
		require.Equal(t, w.Name, got[i].Name, id)
		if w.Arguments == "" || !json.Valid([]byte(w.Arguments)) {
			continue // the SDK puts {} or nothing in its place
		}
		require.JSONEq(t, w.Arguments, got[i].Arguments, id)
	}
}

// each runs check on every stream of every dialect.
func each(t *testing.T, check func(t *testing.T, d dialect, s subject)) {
	t.Parallel()
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			for _, s := range d.subjects(t) {
				check(t, d, s)
			}
		})
	}
}

func TestUntouchedStreams(t *testing.T) {
	each(t, func(t *testing.T, d dialect, s subject) {
		body, err := d.codec.EncodeResponse(s.resp)
		require.NoError(t, err, s.ID)
		got := d.check(t, s, body)
		sameCalls(t, s.ID, s.sdk.Calls, got.Calls)
		require.Equal(t, s.sdk.Text, got.Text, s.ID)
	})
}

const mended = `{"mended": true, "n": [1, 2.50]}`

func TestArgumentsMendedInStreams(t *testing.T) {
	each(t, func(t *testing.T, d dialect, s subject) {
		resp := s.resp.Clone()
		for i := range resp.Message.ToolCalls {
			resp.Message.ToolCalls[i].Arguments = mended
		}
		body, err := d.codec.EncodeResponse(resp)
		require.NoError(t, err, s.ID)
		got := d.check(t, s, body)
		want := viewOf(resp)
		sameCalls(t, s.ID, want.Calls, got.Calls)
		require.Equal(t, s.sdk.Text, got.Text, s.ID)
		if s.sdk.Finish != "" { // some servers send a last chunk without one
			require.Equal(t, s.sdk.Finish, got.Finish, s.ID)
		}
	})
}

func TestCallDroppedFromStreams(t *testing.T) {
	each(t, func(t *testing.T, d dialect, s subject) {
		resp := s.resp.Clone()
		resp.Message.ToolCalls = resp.Message.ToolCalls[1:]
		body, err := d.codec.EncodeResponse(resp)
		require.NoError(t, err, s.ID)
		got := d.check(t, s, body)
		sameCalls(t, s.ID, viewOf(resp).Calls, got.Calls)
		require.Equal(t, s.sdk.Text, got.Text, s.ID)
	})
}

func TestCallAddedToStreams(t *testing.T) {
	each(t, func(t *testing.T, d dialect, s subject) {
		resp := s.resp.Clone()
		resp.Message.ToolCalls = append(resp.Message.ToolCalls, middleware.ToolCall{ID: "call_added", Name: "added", Arguments: mended})
		body, err := d.codec.EncodeResponse(resp)
		require.NoError(t, err, s.ID)
		got := d.check(t, s, body)
		sameCalls(t, s.ID, viewOf(resp).Calls, got.Calls)
		require.Equal(t, s.sdk.Text, got.Text, s.ID)
	})
}

// TestStreamsKeptAlive puts keep-alives wherever one may stand.
func TestStreamsKeptAlive(t *testing.T) {
	each(t, func(t *testing.T, d dialect, s subject) {
		stream := d.codec.NewStream(s.req, nil)
		body := stream.KeepAlive()
		for rest := s.Response; rest != ""; {
			n := min(len(rest), len(s.Response)/4+1)
			_, err := stream.Write([]byte(rest[:n]))
			require.NoError(t, err, s.ID)
			rest = rest[n:]
			body = append(append(body, stream.KeepAlive()...), stream.Take()...)
		}
		body = append(body, stream.KeepAlive()...)
		resp, err := stream.Close()
		require.NoError(t, err, s.ID)
		tail, err := stream.Rest(resp)
		require.NoError(t, err, s.ID)
		body = append(body, tail...)
		got := d.check(t, s, body)
		sameCalls(t, s.ID, viewOf(s.resp).Calls, got.Calls)
		require.Equal(t, s.sdk.Text, got.Text, s.ID)
		if s.sdk.Finish != "" { // some servers send a last chunk without one
			require.Equal(t, s.sdk.Finish, got.Finish, s.ID)
		}
	})
}

// TestStreamsSpliced shows the beginning of each stream, and then what came
// after a re-ask: the next recorded answer, streamed or not.
func TestStreamsSpliced(t *testing.T) {
	t.Parallel()
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			all := d.subjects(t)
			n := 0
			for i, s := range all {
				n += d.splice(t, s, all[(i+1)%len(all)].Response)
			}
			t.Logf("%d begun", n)
			if d.name != "gemini" { // none of the recorded streams with calls begins with text
				require.Positive(t, n)
			}
		})
		t.Run(d.name+"/whole", func(t *testing.T) {
			t.Parallel()
			_, whole := load(t, d.file)
			for i, s := range d.subjects(t) {
				d.splice(t, s, whole[i%len(whole)].Response)
			}
		})
	}
}

// splice returns how many streams had begun when the later answer came: 1 or 0.
func (d dialect) splice(t *testing.T, s subject, later string) int {
	t.Helper()
	next, err := d.codec.DecodeResponse(s.req, []byte(later))
	require.NoError(t, err, s.ID)
	stream := d.codec.NewStream(s.req, nil)
	_, err = stream.Write([]byte(s.Response))
	require.NoError(t, err, s.ID)
	shown := stream.Take()
	first, err := stream.Close()
	require.NoError(t, err, s.ID)
	rest, err := stream.Rest(next)
	require.NoError(t, err, s.ID)
	if len(shown) == 0 { // nothing was shown: the later answer as it is
		require.Equal(t, viewOf(next), d.view(t, s, rest), s.ID)
		return 0
	}
	body := append(bytes.Clone(shown), rest...)
	got := d.check(t, s, body)
	want := viewOf(next)
	sameCalls(t, s.ID, want.Calls, got.Calls)
	require.True(t, strings.HasSuffix(got.Text, want.Text), "%s: %q does not end with %q", s.ID, got.Text, want.Text)
	begun := strings.TrimSuffix(got.Text, want.Text)
	require.True(t, strings.HasPrefix(first.Message.Text(), begun), "%s: %q is not from the first answer", s.ID, begun)
	return 1
}
