package logbatch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/logbatch"
)

// requireSame requires that both handlers write the same for a record, also below WithAttrs and WithGroup.
func requireSame(t require.TestingT, r slog.Record) {
	var want, got bytes.Buffer
	a, b := slog.Handler(slog.NewJSONHandler(&want, nil)), newHandler(&got)
	for range 3 {
		require.NoError(t, a.Handle(context.Background(), r))
		require.NoError(t, b.Handle(context.Background(), r))
		require.Equal(t, want.String(), got.String())
		a, b = a.WithGroup("g").WithAttrs([]slog.Attr{slog.Int("n", 1)}), b.WithGroup("g").WithAttrs([]slog.Attr{slog.Int("n", 1)})
	}
}

// newHandler returns a Handler that writes to another writer at once.
func newHandler(to io.Writer) slog.Handler {
	return logbatch.Handler{Handler: slog.NewJSONHandler(to, nil), To: to, Writer: logbatch.New(io.Discard)}
}

// at is a time with all digits.
var at = time.Date(2026, 11, 24, 19, 48, 34, 223628765, time.FixedZone("", 3600))

// plainAttrs are the attributes of the gateway's record about a model call that is valid as sent.
func plainAttrs() []slog.Attr {
	return []slog.Attr{slog.String("upstream", "127.0.0.1:46223"), slog.String("mode", "enforce"), slog.String("format", "openai-chat"),
		slog.String("model", "load"), slog.String("client", "Go-http-client/1.1"), slog.Int("http_status", 200), slog.String("status", "valid"), slog.Int("attempts", 1), slog.Int("calls", 1),
		slog.Float64("duration_ms", 7.103), slog.Float64("upstream_ms", 0.96), slog.Float64("overhead_ms", 6), slog.Int64("input_tokens", 412), slog.Int64("output_tokens", 388)}
}

func record(message string, attrs ...slog.Attr) slog.Record {
	r := slog.NewRecord(at, slog.LevelInfo, message, 0)
	r.AddAttrs(attrs...)
	return r
}

// TestJSON: the lines are those of slog's handler.
func TestJSON(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]slog.Record{
		"a model call":      record("model call", plainAttrs()...),
		"not read":          record("model call", append(plainAttrs(), slog.Bool("unread", true))...),
		"no attribute":      record("ready"),
		"texts":             record("m", slog.String("quote", `a"b`), slog.String("slash", `a\b/`), slog.String("line", "a\nb\tc\x00\x7f"), slog.String("html", "<a&b>"), slog.String("utf-8", "Zürich \u2028 \u202e\xff"), slog.String("empty", "")),
		"a text with bytes": record("m", slog.String("bytes", "\xff")),
		"a quote at last":   record("m", append(plainAttrs(), slog.String("q", `"`))...),
		"a message":         record("m\"\n<é>"),
		"a key":             record("m", slog.Int("a\"é", 1)),
		"no key":            record("m", slog.Attr{}, slog.Int("", 1)),
		"an empty group":    record("m", slog.Group("g"), slog.Group("", slog.Int("inline", 1)), slog.Group("g", slog.Int("in", 1))),
		"other kinds":       record("m", slog.Duration("d", time.Second), slog.Time("t", at), slog.Uint64("u", math.MaxUint64), slog.Any("error", errors.New("x")), slog.Any("nil", nil), slog.Any("value", lazy{})),
		"a map and a list":  record("m", slog.Any("repairs", map[string]int{"mend.types": 2, "a": 1}), slog.Any("healed", []string{"a<b"})),
		"numbers":           record("m", slog.Int64("least", math.MinInt64), slog.Float64("f", 1e-7), slog.Float64("g", 1e21), slog.Float64("h", -1.5e-6), slog.Float64("i", 123456789.125)),
		"zero":              record("m", slog.Float64("zero", 0), slog.Float64("minus", math.Copysign(0, -1))),
		"infinite":          record("m", slog.Float64("f", math.Inf(1)), slog.Float64("n", math.NaN())),
		"no time":           slog.NewRecord(time.Time{}, slog.LevelInfo, "m", 0),
		"a far time":        slog.NewRecord(time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC), slog.LevelInfo, "m", 0),
		"another level":     slog.NewRecord(at, slog.LevelWarn+3, "m", 0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireSame(t, r)
		})
	}
}

type lazy struct{}

func (lazy) LogValue() slog.Value { return slog.StringValue("later") }

// TestJSONProperty is TestJSON for all texts, numbers and times.
func TestJSONProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := slog.NewRecord(time.Unix(rapid.Int64Range(-1e11, 1e12).Draw(t, "second"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns")).UTC(),
			slog.Level(rapid.IntRange(-8, 12).Draw(t, "level")), rapid.String().Draw(t, "message"), 0)
		for i := range rapid.IntRange(0, 8).Draw(t, "attributes") {
			key := fmt.Sprint("k", i) + rapid.SampledFrom([]string{"", "é", `"`}).Draw(t, "key")
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				r.AddAttrs(slog.String(key, string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))))
			case 1:
				r.AddAttrs(slog.Int64(key, rapid.Int64().Draw(t, "int")))
			case 2:
				r.AddAttrs(slog.Float64(key, rapid.Float64().Draw(t, "float")))
			default:
				r.AddAttrs(slog.Bool(key, rapid.Bool().Draw(t, "bool")))
			}
		}
		requireSame(t, r)
	})
}

// TestJSONIsOneWrite: a record is one write, whose error is returned.
func TestJSONIsOneWrite(t *testing.T) {
	t.Parallel()
	to := &disk{}
	require.NoError(t, newHandler(to).Handle(t.Context(), record("model call", plainAttrs()...)))
	require.Len(t, to.batches(), 1)
	require.True(t, strings.HasSuffix(to.batches()[0], "}\n"))
	require.EqualError(t, newHandler(&disk{err: errors.New("full")}).Handle(t.Context(), record("m")), "full")
}

func BenchmarkJSON(b *testing.B) {
	for name, h := range map[string]slog.Handler{"slog": slog.NewJSONHandler(io.Discard, nil), "logbatch": newHandler(io.Discard)} {
		b.Run(name, func(b *testing.B) {
			r := record("model call", plainAttrs()...)
			b.ReportAllocs()
			for b.Loop() {
				_ = h.Handle(context.Background(), r)
			}
		})
	}
}
