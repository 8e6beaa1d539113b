package codec_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/wire/internal/codec"
)

// reading is what a Buffer returns for a body.
type reading struct {
	Events []codec.Event
	Text   string
	Safe   int
	Whole  bool
	Shape  bool // the end was ErrShape
}

// read feeds pieces; an event that holds the word HOLD is held.
func read(t require.TestingT, byLine bool, pieces ...string) reading {
	b := codec.NewBuffer(byLine)
	var r reading
	each := func(e codec.Event) (bool, error) {
		r.Events = append(r.Events, e)
		return strings.Contains(e.Data, "HOLD"), nil
	}
	fed := 0
	for _, p := range pieces {
		if err := b.Feed([]byte(p), each); err != nil {
			require.ErrorIs(t, err, codec.ErrShape)
			r.Text, r.Safe, r.Shape = strings.Join(pieces, ""), b.Safe(), true
			return r
		}
		fed += len(p)
		require.LessOrEqual(t, r.Safe, b.Safe(), "what is safe stays so")
		r.Safe = b.Safe()
		require.LessOrEqual(t, r.Safe, fed)
	}
	err := b.End(each)
	r.Shape = errors.Is(err, codec.ErrShape)
	require.Equal(t, r.Shape, err != nil)
	r.Text, r.Safe, r.Whole = b.Text(), b.Safe(), b.IsWhole()
	n := len(r.Events)
	require.Equal(t, err, b.End(each))
	require.Len(t, r.Events, n, "a second end brings nothing")
	return r
}

// chop cuts body into pieces of n bytes.
func chop(body string, n int) []string {
	var out []string
	for len(body) > n {
		out, body = append(out, body[:n]), body[n:]
	}
	return append(out, body)
}

// event is what a test expects of an event: its name, data and own bytes.
type event struct{ name, data, bytes string }

func eventsOf(r reading) []event {
	var out []event
	for _, e := range r.Events {
		out = append(out, event{e.Name, e.Data, r.Text[e.Start:e.End]})
	}
	return out
}

const bom = "\ufeff"

var bodies = []struct {
	name   string
	byLine bool
	body   string
	whole  bool
	want   []event
}{
	{"nothing", true, "", true, nil},
	{"space", true, " \r\n", true, []event{{"", "", " \r\n"}}},

	{"sse", false, "data: {\"a\":1}\n\ndata:{\"b\":2}\n\n", false, []event{{"", `{"a":1}`, "data: {\"a\":1}\n\n"}, {"", `{"b":2}`, "data:{\"b\":2}\n\n"}}},
	{"sse where lines may be", true, "data: {}\n\n", false, []event{{"", "{}", "data: {}\n\n"}}},
	{"sse with CRLF", false, "event: x\r\ndata: {}\r\n\r\ndata: [DONE]\r\n\r\n", false,
		[]event{{"x", "{}", "event: x\r\ndata: {}\r\n\r\n"}, {"", "[DONE]", "data: [DONE]\r\n\r\n"}}},
	{"sse, name after data", false, "data: 1\nevent: late\n\n", false, []event{{"late", "1", "data: 1\nevent: late\n\n"}}},
	{"sse, the last name counts", false, "event: a\nevent: b\ndata: 1\n\n", false, []event{{"b", "1", "event: a\nevent: b\ndata: 1\n\n"}}},
	{"sse with comments", false, ": WAIT\n\ndata: 1\n: more\n\n", false, []event{{"", "", ": WAIT\n\n"}, {"", "1", "data: 1\n: more\n\n"}}},
	{"sse with other fields", false, "id: 7\nretry: 10\ndata: 1\n\n", false, []event{{"", "1", "id: 7\nretry: 10\ndata: 1\n\n"}}},
	{"sse, data without a colon", false, "event: e\ndata\n\n", false, []event{{"e", "", "event: e\ndata\n\n"}}},
	{"sse with a byte order mark", false, bom + "data: 1\n\n", false, []event{{"", "1", bom + "data: 1\n\n"}}},
	{"sse after empty lines", false, "\n\ndata: 1\n\n", false, []event{{"", "", "\n"}, {"", "", "\n"}, {"", "1", "data: 1\n\n"}}},
	{"sse, only one space goes", false, "data:  1 \n\n", false, []event{{"", " 1 ", "data:  1 \n\n"}}},
	{"sse, unterminated", false, "data: 1\n\ndata: 2", false, []event{{"", "1", "data: 1\n\n"}, {"", "2", "data: 2"}}},
	{"sse, half terminated", false, "data: 1\n", false, []event{{"", "1", "data: 1\n"}}},
	{"sse, folded", false, "data: {\ndata: \"a\":1}\n\n", false, []event{{"", "{\n\"a\":1}", "data: {\ndata: \"a\":1}\n\n"}}},
	{"sse, folded around an id", false, "data: 1\r\nid: 3\r\ndata: 2\r\n\r\n", false, []event{{"", "1\n2", "data: 1\r\nid: 3\r\ndata: 2\r\n\r\n"}}},
	{"sse, empty data", false, "data:\n\n", false, []event{{"", "", "data:\n\n"}}},
	{"sse, an id first", false, "id: 1\ndata: 1\n\n", false, []event{{"", "1", "id: 1\ndata: 1\n\n"}}},
	{"sse, a carriage return too many", false, "data: 1\r\r\n\n", false, []event{{"", "1", "data: 1\r\r\n"}, {"", "", "\n"}}},
	{"sse with CR", false, "event: x\rdata: {}\r\rdata: 1\r\r", false, []event{{"x", "{}", "event: x\rdata: {}\r\r"}, {"", "1", "data: 1\r\r"}}},
	{"sse with CR, half terminated", false, "data: {}\r\rdata: 1\r", false, []event{{"", "{}", "data: {}\r\r"}, {"", "1", "data: 1\r"}}},
	{"sse with CR, folded", false, "data: {\rdata: }\r\r", false, []event{{"", "{\n}", "data: {\rdata: }\r\r"}}},
	{"sse with LF, then CR", false, "data: 1\n\r", false, []event{{"", "1", "data: 1\n\r"}}},
	{"sse after unknown lines", false, "foo\nbar: 1\n\ndata: 1\n\n", false, []event{{"", "", "foo\nbar: 1\n\n"}, {"", "1", "data: 1\n\n"}}},
	{"sse after a line with space", false, " data: 0\r\ndata: 1\r\n\r\n", false, []event{{"", "1", " data: 0\r\ndata: 1\r\n\r\n"}}},
	{"sse with a byte order mark and a comment", false, bom + ": c\ndata: HOLD\n\n", false, []event{{"", "HOLD", bom + ": c\ndata: HOLD\n\n"}}},

	{"lines", true, "{\"a\":1}\n{\"b\":2}\n", false, []event{{"", `{"a":1}`, "{\"a\":1}\n"}, {"", `{"b":2}`, "{\"b\":2}\n"}}},
	{"lines with CRLF", true, "{}\r\n{\"b\":2}\r\n", false, []event{{"", `{}`, "{}\r\n"}, {"", `{"b":2}`, "{\"b\":2}\r\n"}}},
	{"lines, unterminated", true, "{}\n{\"b\":2}", false, []event{{"", `{}`, "{}\n"}, {"", `{"b":2}`, `{"b":2}`}}},
	{"lines, cut off", true, "{}\n{\"b", false, []event{{"", `{}`, "{}\n"}, {"", `{"b`, `{"b`}}},
	{"lines with empty ones", true, "{}\n\n \n{ }\n\n", false, []event{{"", `{}`, "{}\n"}, {"", `{ }`, "\n \n{ }\n"}, {"", "", "\n"}}},
	{"lines after empty ones", true, "\n{}\n{}", false, []event{{"", `{}`, "\n{}\n"}, {"", `{}`, "{}"}}},
	{"lines with a byte order mark", true, bom + "{}\n{}", false, []event{{"", `{}`, bom + "{}\n"}, {"", `{}`, "{}"}}},
	{"lines, later ones no objects", true, "{}\nx\n", false, []event{{"", `{}`, "{}\n"}, {"", `x`, "x\n"}}},
	{"one line", true, ` {"a":1} `, false, []event{{"", `{"a":1}`, ` {"a":1} `}}},

	{"whole", false, " {\"a\":\n1}\n", true, []event{{"", "{\"a\":\n1}", " {\"a\":\n1}\n"}}},
	{"whole where lines may be", true, "{\n\"a\":1}\n", true, []event{{"", "{\n\"a\":1}", "{\n\"a\":1}\n"}}},
	{"whole after an empty line", true, "\n{\n}", true, []event{{"", "{\n}", "\n{\n}"}}},
	{"whole with a byte order mark", false, bom + "{}", true, []event{{"", "{}", bom + "{}"}}},
	{"whole, cut off", true, "{\"a\":", true, []event{{"", `{"a":`, `{"a":`}}},
	{"whole, no JSON", true, "<html>\n\n data: 1\n\n", true, []event{{"", "<html>\n\n data: 1", "<html>\n\n data: 1\n\n"}}},
	{"whole, the beginning of a field", false, "dat", true, []event{{"", "dat", "dat"}}},
	{"whole, half a byte order mark", false, "\xef\xbb", true, []event{{"", "\xef\xbb", "\xef\xbb"}}},

	{"array", false, `[{"a":"]"}, [1]` + "\n,{}]\n", false, []event{{"", `{"a":"]"}`, `[{"a":"]"}`}, {"", `[1]`, `, [1]`}, {"", `{}`, "\n,{}"}}},
	{"array, nested", false, `[{"a":{"b":[{}]}}]`, false, []event{{"", `{"a":{"b":[{}]}}`, `[{"a":{"b":[{}]}}`}}},
	{"array, quotes and escapes", false, `[{"a":"\\\"}{"}]`, false, []event{{"", `{"a":"\\\"}{"}`, `[{"a":"\\\"}{"}`}}},
	{"array, empty", false, "[]", false, nil},
	{"array, cut off", false, `[{"a":1},{"b"`, false, []event{{"", `{"a":1}`, `[{"a":1}`}}},
	{"array of scalars", false, `[1,"{}",null]`, false, nil},
	{"array closed too often", false, `[{}]]}[{}`, false, []event{{"", "{}", "[{}"}}},
}

func TestBufferReads(t *testing.T) {
	t.Parallel()
	for _, c := range bodies {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := read(t, c.byLine, c.body)
			require.Equal(t, c.want, eventsOf(r))
			require.Equal(t, c.whole, r.Whole)
			require.Equal(t, c.body, r.Text)
			require.False(t, r.Shape)
			tiles(t, r)
			require.Equal(t, r, read(t, c.byLine, chop(c.body, 1)...), "byte by byte")
			for i := range len(c.body) + 1 {
				require.Equal(t, r, read(t, c.byLine, c.body[:i], c.body[i:]), "cut at %d", i)
			}
		})
	}
}

// tiles checks that the events follow each other without gaps, and that their data is at its
// recorded place. Folded data has no place in one piece.
func tiles(t require.TestingT, r reading) {
	at := 0
	for _, e := range r.Events {
		require.Equal(t, at, e.Start)
		require.Less(t, e.Start, e.End)
		at = e.End
		if strings.Contains(e.Data, "\n") && r.Text[e.DataStart:min(len(r.Text), e.DataStart+len(e.Data))] != e.Data {
			require.Greater(t, strings.Count(r.Text[e.Start:e.End], "data"), 1)
			continue
		}
		if e.Data != "" {
			require.Equal(t, e.Data, r.Text[e.DataStart:e.DataStart+len(e.Data)])
			require.LessOrEqual(t, e.Start, e.DataStart)
			require.LessOrEqual(t, e.DataStart+len(e.Data), e.End)
		}
	}
	require.LessOrEqual(t, at, len(r.Text))
}

func TestBufferIsArray(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{"[{}]": true, " \n[": true, "{}": false, "data: []\n\n": false} {
		b := codec.NewBuffer(false)
		require.NoError(t, b.Feed([]byte(body), func(codec.Event) (bool, error) { return false, nil }))
		require.Equal(t, want, b.IsArray(), body)
	}
}

// The bounds hold however the bytes come.
func TestBufferBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", codec.MaxEvent)
	for _, c := range []struct {
		name, body string
		byLine     bool
		events     int
		ok         bool
	}{
		{"an event", "data: 1\n\ndata: " + long + "\n\n", false, 1, false},
		{"an event that does not end", "data: 1\n\ndata: " + long, false, 1, false},
		{"a line", "{}\n" + long + "\n", true, 1, false},
		{"an element", `[{},{"` + long + `"}]`, false, 1, false},
		{"an event of the greatest size", "data: 1\n\ndata: " + long[8:] + "\n\n", false, 2, true},
		{"what is not a stream", `{"` + long + `": 1}`, false, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, n := range []int{1 << 20, len(c.body)} {
				b := codec.NewBuffer(c.byLine)
				events := 0
				each := func(codec.Event) (bool, error) { events++; return false, nil }
				var err error
				for _, p := range chop(c.body, n) {
					if err = b.Feed([]byte(p), each); err != nil {
						break
					}
				}
				if err == nil {
					err = b.End(each)
				}
				require.Equal(t, c.events, events, "in pieces of %d", n)
				if c.ok {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, codec.ErrShape)
					require.LessOrEqual(t, b.Safe(), len("data: 1\n\n"))
				}
			}
		})
	}
	t.Run("a body", func(t *testing.T) {
		t.Parallel()
		b := codec.NewBuffer(false)
		none := func(codec.Event) (bool, error) { return false, nil }
		piece := []byte("{" + strings.Repeat(" ", 1<<20))
		for range codec.MaxBody / len(piece) {
			require.NoError(t, b.Feed(piece, none))
		}
		require.ErrorIs(t, b.Feed(piece, none), codec.ErrShape)
	})
}

// Edits of an event's data are edits of the stream: read again, the event has
// the new data, and every other byte is where it was.
func TestRenumber(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"each event", "event: e\ndata: {\"n\": 1 }\n\n: c\ndata: {\"n\":2}\r\n\r\n", "event: e\ndata: {\"n\": 4 }\n\n: c\ndata: {\"n\":5}\r\n\r\n"},
		{"unterminated", "data: {\"n\":9}", "data: {\"n\":12}"},
		{"no number", "data: {\"n\":\"1\"}\n\ndata: {}\n\ndata: [DONE]\n\n: 1\n\n", "data: {\"n\":\"1\"}\n\ndata: {}\n\ndata: [DONE]\n\n: 1\n\n"},
		{"data of several lines", "data: {\ndata: \"n\": 1 }\n\ndata: {\"n\":2}\n\n", "data: {\ndata: \"n\": 1 }\n\ndata: {\"n\":5}\n\n"},
		{"behind a byte order mark", bom + "data: {\"n\":1}\n\n", bom + "data: {\"n\":4}\n\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := codec.Renumber(c.text, "n", 3)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			same, err := codec.Renumber(c.text, "n", 0)
			require.NoError(t, err)
			require.Equal(t, c.text, same)
		})
	}
}
