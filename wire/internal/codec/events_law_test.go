package codec_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/wire/internal/codec"
)

// tokens are what bodies are made of.
var tokens = []string{"data: ", "data:", "data", "event: e", "id: 1", ": c", ":", "\n", "\n", "\n", "\r\n", "\r", " ", "{", "}", "{}", "[", "]", ",",
	`"`, `\`, `{"a":1}`, `{"HOLD":[]}`, "1", bom, "\xef", "\xff", "é"}

func drawBody(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(tokens), 0, 40).Draw(t, "body"), "")
}

func drawPieces(t *rapid.T, body string) []string {
	var out []string
	for body != "" {
		n := rapid.IntRange(1, min(len(body), 9)).Draw(t, "n")
		out, body = append(out, body[:n]), body[n:]
	}
	return out
}

// However a body is cut into pieces, the events are the same, with the same
// places, and the same bytes are safe.
func TestBufferPiecesDoNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body, byLine := drawBody(t), rapid.Bool().Draw(t, "byLine")
		want := read(t, byLine, body)
		require.Equal(t, want, read(t, byLine, drawPieces(t, body)...))
		require.Equal(t, body, want.Text)
		tiles(t, want)
		for _, e := range want.Events {
			if strings.Contains(e.Data, "HOLD") {
				require.LessOrEqual(t, want.Safe, e.Start)
				return
			}
		}
	})
}

// sent is an event as a server means it.
type sent struct {
	name  string
	data  []string
	other []string // further lines
}

func drawSent(t *rapid.T) sent {
	plain := rapid.StringMatching(`[a-z{}":, \\é]{0,8}`)
	return sent{
		name:  rapid.SampledFrom([]string{"", "done", "a b"}).Draw(t, "name"),
		data:  rapid.SliceOfN(plain, 0, 3).Draw(t, "data"),
		other: rapid.SliceOfN(rapid.SampledFrom([]string{": c", "id: 3", "retry: 1", ":"}), 0, 2).Draw(t, "other"),
	}
}

// An event stream is read as it was meant, whatever its line ends.
func TestBufferReadsWhatWasSent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		eol := rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "eol")
		var body strings.Builder
		body.WriteString(": first" + eol + eol)
		want := []event{{bytes: ": first" + eol + eol}}
		for _, s := range rapid.SliceOfN(rapid.Custom(drawSent), 0, 5).Draw(t, "events") {
			lines := s.other
			if s.name != "" {
				lines = append(lines, "event: "+s.name)
			}
			for _, d := range s.data {
				lines = append(lines, "data: "+d)
			}
			text := strings.Join(append(lines, "", ""), eol)
			if len(lines) == 0 {
				text = eol
			}
			body.WriteString(text)
			want = append(want, event{s.name, strings.Join(s.data, "\n"), text})
		}
		require.Equal(t, want, eventsOf(read(t, false, drawPieces(t, body.String())...)))
	})
}

func FuzzBuffer(f *testing.F) {
	for _, c := range bodies {
		f.Add(c.body, c.byLine, uint16(3))
	}
	f.Fuzz(func(t *testing.T, body string, byLine bool, n uint16) {
		want := read(t, byLine, body)
		tiles(t, want)
		require.Equal(t, body, want.Text)
		require.Equal(t, want, read(t, byLine, chop(body, int(n)+1)...))
		if len(body) < 200 {
			require.Equal(t, want, read(t, byLine, chop(body, 1)...))
		}
	})
}

// feed feeds an event of size bytes in pieces of n.
func feed(t testing.TB, c bulky, size, n int) time.Duration {
	body := []byte(c.head + strings.Repeat(c.unit, (size-len(c.head)-len(c.tail))/len(c.unit)) + c.tail)
	start := time.Now()
	b := codec.NewBuffer(true)
	none := func(codec.Event) (bool, error) { return false, nil }
	for at := 0; at < len(body); at += n {
		require.NoError(t, b.Feed(body[at:min(len(body), at+n)], none))
	}
	require.NoError(t, b.End(none))
	require.Len(t, b.Text(), len(body))
	return time.Since(start)
}

type bulky struct{ head, unit, tail string }

// bulk are long bodies of one event, of each way to be framed.
var bulk = map[string]bulky{
	"sse":           {"data: {\"a\":\"", "x", "\"}\n\n"},
	"sse, folded":   {"data: {\n", "data:\n", "data: }\n\n"},
	"sse, comments": {":\n", ":\n", "\n"},
	"line":          {"{\"a\":\"", "x", "\"}\n"},
	"empty lines":   {"{}\n", "\n", ""},
	"array":         {"[{\"a\":\"", "x", "\"}]"},
	"array, open":   {"[", "{", ""},
	"whole":         {"{\n", " ", "}"},
	"space":         {"", " ", ""},
	"space, then":   {"", "\n", "data: 1\n\n"},
}

// Work is linear in the body: 128 times as many pieces do not take 128 times
// as long, as they would if each made the Buffer look again at what came before.
func TestBufferWorkIsLinear(t *testing.T) { // not parallel: it measures
	for name, c := range bulk {
		t.Run(name, func(t *testing.T) {
			const size = 4 << 20
			few, many := feed(t, c, size, 16<<10), feed(t, c, size, 128)
			require.Less(t, many, 8*few+time.Second)
		})
	}
}

func BenchmarkBuffer(b *testing.B) {
	for name, c := range bulk {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(codec.MaxEvent)
			for b.Loop() {
				feed(b, c, codec.MaxEvent, 4<<10)
			}
		})
	}
}
