package codec_test

import (
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// script is a stream with fixed content.
type script struct {
	codec.Stream
	write error
	got   string
}

func (s *script) Write(p []byte) (int, error) { s.got += string(p); return len(p), s.write }
func (s *script) Close() (*middleware.Response, error) {
	return &middleware.Response{Model: s.got}, nil
}

func TestDecode(t *testing.T) {
	t.Parallel()
	resp, err := codec.Decode(&script{}, []byte("body"))
	require.NoError(t, err)
	require.Equal(t, "body", resp.Model)
	resp, err = codec.Decode(&script{write: codec.ErrShape}, nil)
	require.ErrorIs(t, err, codec.ErrShape)
	require.Nil(t, resp)
	require.ErrorIs(t, codec.ErrIncomplete, io.ErrUnexpectedEOF)
}

func TestModelError(t *testing.T) {
	t.Parallel()
	h := http.Header{"Retry-After": {"3"}}
	e := codec.ModelError(429, h, codec.Failure{Code: "slow\ndown", Message: " Too \n many "})
	require.Equal(t, 429, e.StatusCode)
	require.Equal(t, "slow down", e.Code)
	require.Equal(t, 3*time.Second, e.RetryAfter)
	require.EqualError(t, e.Err, "wire: Too many")
	require.NotErrorIs(t, e, middleware.ErrInvalidToolCall)

	e = codec.ModelError(400, nil, codec.Failure{Message: "it wrote SECRET", Refused: true, Output: "SECRET"})
	require.ErrorIs(t, e, middleware.ErrInvalidToolCall)
	require.Equal(t, "SECRET", e.Output)
	require.NotContains(t, e.Error(), "SECRET", "the message of a refusal quotes the arguments")

	e = codec.ModelError(500, nil, codec.Failure{})
	require.NoError(t, e.Err)
	require.Zero(t, e.RetryAfter)
}

// The provider's words are cut at 300 bytes, its code at 100, between
// characters and on one line.
func TestModelErrorClips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 200).Draw(t, "n")
		message := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "é", "✓", "😀", " ", "\n"}), n, n).Draw(t, "message"), "")
		e := codec.ModelError(500, nil, codec.Failure{Code: message, Message: message})
		joined := strings.Join(strings.Fields(message), " ")
		check := func(got string, n int) {
			require.True(t, utf8.ValidString(got))
			if len(joined) <= n {
				require.Equal(t, joined, got)
				return
			}
			cut, ok := strings.CutSuffix(got, "…")
			require.True(t, ok)
			require.LessOrEqual(t, len(got), n)
			require.Greater(t, len(got), n-utf8.UTFMax)
			require.True(t, strings.HasPrefix(joined, cut))
		}
		check(e.Code, 100)
		if message != "" {
			require.Error(t, e.Err)
			check(strings.TrimPrefix(e.Err.Error(), "wire: "), 300)
		}
	})
}

func TestNoFailure(t *testing.T) {
	t.Parallel()
	nothing := func(rawjson.Value) (codec.Failure, bool) { return codec.Failure{}, false }
	for body, want := range map[string]string{
		"":                                "nothing, 0 bytes",
		" \n":                             "nothing, 2 bytes",
		"<html>SECRET":                    "HTML or XML, 12 bytes",
		` {"SECRET":1}`:                   "JSON of another form, 13 bytes",
		`["SECRET"]`:                      "JSON of another form, 10 bytes",
		"SECRET":                          "text, 6 bytes",
		strings.Repeat(" ", 600) + "late": "text, 604 bytes",
	} {
		e := codec.DecodeError(502, http.Header{"Retry-After": {"1"}}, []byte(body), nothing)
		require.Equal(t, 502, e.StatusCode)
		require.Equal(t, time.Second, e.RetryAfter)
		require.ErrorContains(t, e, want)
		require.NotContains(t, e.Error(), "SECRET")
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name, ms, after string
		want            time.Duration
	}{
		{"nothing", "", "", 0},
		{"seconds", "", "7", 7 * time.Second},
		{"parts of a second", "", "0.5", 500 * time.Millisecond},
		{"milliseconds come first", "250", "7", 250 * time.Millisecond},
		{"milliseconds that are none", "x", "7", 7 * time.Second},
		{"a date", "", "Fri, 02 Jan 2026 03:04:15 GMT", 10 * time.Second},
		{"a date that is past", "", "Fri, 02 Jan 2026 03:04:00 GMT", 0},
		{"negative", "", "-1", 0},
		{"negative milliseconds", "-1", "", 0},
		{"not finite", "", "Inf", 0},
		{"no number", "", "NaN", 0},
		{"a day less than twelve", "", "999999", 999999 * time.Second},
		{"a day more than eleven", "", "1000000", 1000000 * time.Second},
		{"ten years", "", "315360000", 315360000 * time.Second},
		{"longer than a Duration", "", "9223372037", math.MaxInt64},
		{"longer than an integer", "", "99999999999999999999", math.MaxInt64},
		{"longer than a float", "", strings.Repeat("9", 400), math.MaxInt64},
		{"longer than a Duration in milliseconds", "99999999999999", "", math.MaxInt64},
		{"a date that is far off", "", "Fri, 31 Dec 9999 23:59:59 GMT", math.MaxInt64},
		{"an exponent", "", "1e3", 0},
		{"digits as Go groups them", "", "1_000", 0},
		{"a hexadecimal number", "", "0x10", 0},
		{"a sign", "", "+7", 0},
		{"two points", "", "1.2.3", 0},
		{"a point alone", "", ".", 0},
		{"rubbish", "", "soon", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{}
			if c.ms != "" {
				h.Set("retry-after-ms", c.ms)
			}
			if c.after != "" {
				h.Set("Retry-After", c.after)
			}
			require.Equal(t, c.want, codec.RetryAfter(h, now))
		})
	}
	require.Zero(t, codec.RetryAfter(nil, now))
}

func TestText(t *testing.T) {
	t.Parallel()
	o := parse(t, `{"s":"a","n":1.0,"null":null,"b":true,"e":""}`)
	require.Equal(t, "a", codec.Text(o.Get("s")))
	require.Equal(t, "1.0", codec.Text(o.Get("n")))
	for _, key := range []string{"null", "b", "e", "absent"} {
		require.Empty(t, codec.Text(o.Get(key)), key)
	}
	require.Equal(t, "1.0", codec.FirstText(o.Get("null"), o.Get("e"), o.Get("n"), o.Get("s")))
	require.Empty(t, codec.FirstText())
}

// A refused call has cost something, and the report has its usage.
func TestWithUsage(t *testing.T) {
	t.Parallel()
	refused := codec.ModelError(400, nil, codec.Failure{Refused: true, Output: "x"})
	err := codec.WithUsage(refused, "m", middleware.Usage{InputTokens: 3, OutputTokens: 4})
	require.ErrorIs(t, err, middleware.ErrInvalidToolCall)
	var e *middleware.ModelError
	require.ErrorAs(t, err, &e)
	require.Equal(t, "x", e.Output)
	report := middleware.ReportOf(nil, err)
	require.Equal(t, middleware.Usage{InputTokens: 3, OutputTokens: 4}, report.Usage())
	require.Len(t, report.Attempts, 1)
	require.Equal(t, "m", report.Attempts[0].Model)
}

// A later value of a member counts, but for null; of two spellings the one in lower case.
func TestMembers(t *testing.T) {
	t.Parallel()
	var s codec.Members
	for _, m := range []codec.Member{{Key: "a", Raw: "1"}, {Key: "B", Raw: "2"}, {Key: "c", Raw: "null"}, {Key: "a", Raw: "null"}, {Key: "b", Raw: "3"}, {Key: "B", Raw: "4"}, {Key: "a", Raw: "5"}, {Key: "a", Raw: "null"}} {
		s.Put(m.Key, m.Raw)
	}
	require.Equal(t, `{"a":5,"b":3,"c":null}`, codec.Object(s.List...))
}
