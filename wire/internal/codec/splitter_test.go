package codec_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// toy is a format in which a unit names its own release:
//
//	{"do": "show", "text": "a"}
type toy struct {
	codec.Splitter
	read  []string // the fates, or the texts, of what was read
	shown int      // of those, at the last Snapshot
}

var toyTree = codec.Tree{"do": nil, "text": nil, "type": nil, "args": codec.AsSent, "in": {"a": nil}}

func newToy(tools bool) *toy {
	s, req := &toy{}, &middleware.Request{}
	if tools {
		req.Tools = make([]middleware.Tool, 1)
	}
	s.Splitter = codec.NewSplitter(toyFormat{}, s, toyTree, true, req, nil)
	s.Lists = true
	return s
}

var errToy = errors.New("broken")

func (s *toy) Release(u *codec.Unit) (codec.Release, error) {
	switch u.Value.Get("do").Str() {
	case "show":
		return codec.ReleaseNow, nil
	case "wait":
		return codec.ReleaseAfterText, nil
	case "hold":
		return codec.ReleaseHold, nil
	case "refuse":
		return codec.ReleaseHold, errToy
	}
	return codec.ReleaseWithPrevious, nil
}

func (s *toy) Read(u *codec.Unit) error {
	if s.Buf.IsWhole() {
		text := s.Text()
		if !s.Unchanged() {
			text = toyTree.Write(u.Value)
		}
		s.read = append(s.read, text)
		return nil
	}
	s.read = append(s.read, u.Value.Get("do").Str()+u.Value.Get("text").Str())
	if text := u.Value.Get("text"); text.Exists() {
		s.Repeats(u, func(text string) error { s.read = append(s.read, "again "+text); return nil }, text, u.Value.Get("pad"), u.Value.Get("n"))
	}
	if u.Value.Get("do").Str() == "break" {
		return errToy
	}
	return nil
}

func (s *toy) Snapshot() { s.shown = len(s.read) }

func (s *toy) Response() (codec.Written, error) { return &toyAnswer{}, nil }

func (*toy) Fail(int, int, string, string) []byte { return nil }

type toyFormat struct{ codec.Format }

func (toyFormat) Dialect() string { return "toy" }

type toyAnswer struct{ codec.Answered }

func (toyAnswer) Whole(*middleware.Response) (string, error)                 { return "", nil }
func (toyAnswer) Stream(*middleware.Response, *codec.Client) (string, error) { return "", nil }

// events returns a stream of the units.
func events(units ...string) string { return "data: " + strings.Join(units, "\n\ndata: ") + "\n\n" }

const (
	head  = `{"do":"pass"}`
	text  = `{"do":"show","text":"a"}`
	think = `{"do":"wait"}`
	held  = `{"do":"hold"}`
)

// What is shown ends in front of the first unit that is held, and of what waits.
func TestUnitsShow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		tools bool
		units []string
		shown int // units
	}{
		{"text", false, []string{head, text, text}, 3},
		{"a head alone", false, []string{head}, 1},
		{"a head alone, with tools", true, []string{head}, 0},
		{"a head and text, with tools", true, []string{head, text}, 2},
		{"a call", true, []string{head, text, held, text}, 2},
		{"a call at once", true, []string{head, held}, 0},
		{"reasoning waits", true, []string{head, think, think}, 0},
		{"reasoning waits behind text", true, []string{text, think, head}, 1},
		{"reasoning, then text", true, []string{head, think, text, head}, 4},
		{"reasoning, then a call", true, []string{head, think, held, text}, 0},
		{"text, reasoning, a call", true, []string{text, think, held, text}, 1},
		{"reasoning without tools", false, []string{head, think, held}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body := events(c.units...)
			for _, n := range []int{1, 7, len(body)} {
				s := newToy(c.tools)
				for _, p := range chop(body, n) {
					_, err := s.Write([]byte(p))
					require.NoError(t, err)
				}
				out, safe, _ := s.Output()
				want := ""
				if c.shown > 0 {
					want = events(c.units[:c.shown]...)
				}
				require.Equal(t, want, out[:safe])
				require.True(t, s.Unchanged())
				_, err := s.Close()
				require.NoError(t, err)
				if c.shown < len(c.units) {
					has, err := s.Replay(safe)
					require.NoError(t, err)
					require.Same(t, s, has)
					require.Equal(t, c.shown, s.shown, "Mark is called when what was read is what is shown")
				}
			}
		})
	}
}

// Reasoning past a bound is held, with every unit after it.
func TestUnitsWaitingIsBounded(t *testing.T) {
	t.Parallel()
	s := newToy(true)
	long := events(`{"do":"wait","x":"` + strings.Repeat("x", 9<<20) + `"}`)
	for _, p := range []string{events(text), long, long, events(text)} {
		_, err := s.Write([]byte(p))
		require.NoError(t, err)
	}
	require.Equal(t, len(events(text)), s.Safe())
}

// Nothing from a unit on is shown that could not be read, and there is no answer.
func TestUnitsStopAtAnError(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{`{"do":"refuse"}`, `{"do":"break"}`} {
		s := newToy(false)
		_, err := s.Write([]byte(events(text, unit, text)))
		require.ErrorIs(t, err, errToy)
		require.Equal(t, len(events(text)), s.Safe())
		_, err = s.Write([]byte(events(text)))
		require.ErrorIs(t, err, errToy)
		for range 2 {
			_, err = s.Close()
			require.ErrorIs(t, err, errToy)
		}
	}
}

// A unit passes as it came only if it is strictly framed and free of calls. Any other
// one is written with what is known of it, or goes.
func TestUnitsAreWritten(t *testing.T) {
	t.Parallel()
	const call = `"tool_calls":[1]`
	for _, c := range []struct{ name, unit, want string }{
		{"free", "data: {\"x\": 1}\n\n", "data: {\"x\": 1}\n\n"},
		{"a name, an id and a comment", "event: a\nid: 1\n: c\ndata: {}\n\n", "event: a\nid: 1\n: c\ndata: {}\n\n"},
		{"a comment", ": hello\n\n", ": hello\n\n"},
		{"CRLF", "data: {}\r\n\r\n", "data: {}\r\n\r\n"},
		{"LF and CRLF", "data: {\"x\": 1}\n\r\n", "data: {\"x\":1}\n\n"},
		{"text that is not ASCII", "data: {\"x\":\"h\u00e9\\u4f60\"}\n\n", "data: {\"x\":\"h\u00e9\\u4f60\"}\n\n"},
		{"ends of lines in text", "data: {\"x\":\"a\u2028b\u2029c\u0085\"}\n\n", `data: {"x":"a\u2028b\u2029c\u0085"}` + "\n\n"},
		{"no space", "data:{\"x\": 1}\n\n", "data: {\"x\":1}\n\n"},
		{"a CR", "data: {}\r\r", "data: {}\n\n"},
		{"one inside", "data: {\"x\":\"\ufeff\"}\n\n", "data: {\"x\":\"\ufeff\"}\n\n"},
		{"white space in front", " data: {}\n\n", ""},
		{"another field", "data: {}\ndate: {}\n\n", "data: {}\n\n"},
		{"a bare object", "data: {}\n{" + call + "}\n\n", "data: {}\n\n"},
		{"a vertical tab", "data:\v{}\n\n", ""},
		{"folded", "data: {\ndata: }\n\n", "data: {}\n\n"},
		{"no JSON", "data: ping\n\n", ""},
		{"doubled", `data: {"x":1,"x":2}` + "\n\n", `data: {"x":2}` + "\n\n"},
		{"twins", `data: {"text":"a","Text":"b"}` + "\n\n", `data: {"text":"a"}` + "\n\n"},
		{"a twin first", `data: {"Text":"b","text":"a"}` + "\n\n", `data: {"text":"a"}` + "\n\n"},
		{"the Kelvin sign", `data: {"k":1,"` + "\u212a" + `":2}` + "\n\n", `data: {"k":1}` + "\n\n"},
		{"an escaped key", `data: {"\u0074ext":"a"}` + "\n\n", `data: {"text":"a"}` + "\n\n"},
		{"__proto__", `data: {"__proto__":{"a":1},"x":1}` + "\n\n", `data: {"x":1}` + "\n\n"},
		{"a call, unknown", `data: {` + call + `,"x":1}` + "\n\n", `data: {"x":1}` + "\n\n"},
		{"a call, escaped", `data: {"tool\u005fcalls":[1],"x":1}` + "\n\n", `data: {"x":1}` + "\n\n"},
		{"a call, in another case", `data: {"TOOL_CALLS":[1],"x":1}` + "\n\n", `data: {"x":1}` + "\n\n"},
		{"a call, a long s", "data: {\"tool_call\u017f\":[1],\"x\":1}\n\n", `data: {"x":1}` + "\n\n"},
		{"a call inside", `data: {"x":{"y":{` + call + `}},"z":1}` + "\n\n", `data: {"z":1}` + "\n\n"},
		{"a call in a known object", `data: {"in":{"a":1,` + call + `}}` + "\n\n", `data: {"in":{"a":1}}` + "\n\n"},
		{"text about calls", `data: {"text":"use \"tool_calls\"", "x": 1}` + "\n\n", `data: {"text":"use \"tool_calls\"","x":1}` + "\n\n"},
		{"parallel_tool_calls", `data: {"parallel_tool_calls": true}` + "\n\n", `data: {"parallel_tool_calls": true}` + "\n\n"},
		{"arguments as sent", `data: {"args":{"b":1,"b": 2},` + call + `}` + "\n\n", `data: {"args":{"b":1,"b": 2}}` + "\n\n"},
		{"bytes that are no text", "data: {\"text\":\"\xff\"}\n\n", "data: {\"text\":\"\ufffd\"}\n\n"},
		{"a name that is the type", "event: x_call_y\ndata: {\"type\":\"x_call_y\"}\n\n", "event: x_call_y\ndata: {\"type\":\"x_call_y\"}\n\n"},
		{"a name that is not", "event: x_call_y\ndata: {\"type\":\"z\"}\n\n", "data: {\"type\":\"z\"}\n\n"},
		{"a line", "{\"x\": 1}\n", "{\"x\": 1}\n"},
		{"a line with a call", `{"x":1,` + call + "}\n", "{\"x\":1}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			first, last := ": c\n\n", ": d\n\n"
			if strings.HasPrefix(c.unit, "{") {
				first, last = "{}\n", "{}\n"
			}
			s := newToy(false)
			_, err := s.Write([]byte(first + c.unit + last))
			require.NoError(t, err)
			out, safe, _ := s.Output()
			require.Equal(t, first+c.want+last, out[:safe])
			if s.Unchanged() {
				require.Equal(t, c.unit, c.want)
			}
		})
	}
}

// A byte order mark belongs to the beginning of a stream, and does not leave.
func TestUnitsBehindAMark(t *testing.T) {
	t.Parallel()
	s := newToy(false)
	_, err := s.Write([]byte("\ufeff" + events(text) + "\ufeff" + events(text)))
	require.NoError(t, err)
	out, safe, _ := s.Output()
	require.Equal(t, events(text), out[:safe])
	require.Equal(t, []string{"showa", ""}, s.read)
}

// The elements of a list are units too.
func TestUnitsOfAList(t *testing.T) {
	t.Parallel()
	s := newToy(false)
	_, err := s.Write([]byte("[{\"x\": 1}\n,\n{\"x\":2,\"tool_calls\":[]},\r\n{\"do\":\"hold\"}]"))
	require.NoError(t, err)
	out, safe, rest := s.Output()
	require.Equal(t, "[{\"x\": 1},\r\n{\"x\":2}", out[:safe])
	require.Equal(t, ",\r\n{\"do\":\"hold\"}]", rest)
}

// A whole answer is one unit.
func TestUnitsOfAWholeAnswer(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"{\n \"x\": 1 }":                           "{\n \"x\": 1 }",
		"{\n \"x\": 1, \"tool_calls\": [1] }":      `{"x":1}`,
		"{\n \"x\": 1, \"x\": 2, \"text\": \"a\"}": `{"x":2,"text":"a"}`,
	} {
		s := newToy(true)
		_, err := s.Write([]byte(body))
		require.NoError(t, err)
		require.Zero(t, s.Safe())
		_, err = s.Close()
		require.NoError(t, err)
		require.Equal(t, []string{want}, s.read)
	}
}

// A unit that differs from the one before only in its text, and in values without a meaning,
// is read without being parsed. Any other unit is parsed.
func TestUnitsRepeat(t *testing.T) {
	t.Parallel()
	unit := func(n, text, pad string) string {
		return `{"n":` + n + `,"do":"show","text":"` + text + `","pad":"` + pad + `"}`
	}
	s := newToy(true)
	_, err := s.Write([]byte(events(unit("1", "a", "x"), unit("2", "b", "yy"), unit("13", `c\n`, ""), unit("14", "d", ""), unit("-1", "e", ""),
		unit("1", "f", ""), unit("2", "tool_calls", ""), unit("3", "", ""), unit("4", "g", ""), unit("5", "h", `\"tool_calls`))))
	require.NoError(t, err)
	require.Equal(t, []string{"showa", "again b", "showc\n", "again d", "showe", "again f", "showtool_calls", "show", "again g", "showh"}, s.read)
	out, safe, _ := s.Output()
	require.Equal(t, len(out), safe)
	require.Contains(t, out, "tool_calls")
}

// However units come in pieces, and whichever repeat others, they are read alike and the
// same is shown.
func TestUnitsRepeatAlike(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"a", "b c", "tool_calls", `x\ny`, "\u00e9", "", `\ud83d`, "\ufeff", "_call_"})
		var units []string
		for range rapid.IntRange(1, 8).Draw(t, "units") {
			do := rapid.SampledFrom([]string{"show", "show", "show", "wait", "pass"}).Draw(t, "do")
			units = append(units, `{"do":"`+do+`","text":"`+piece.Draw(t, "text")+`","pad":"`+piece.Draw(t, "pad")+`"}`)
		}
		whole, apart := newToy(true), newToy(true)
		body := events(units...)
		_, err := whole.Write([]byte(body))
		require.NoError(t, err)
		for _, u := range units { // a comment between them: none repeats the one before
			_, err := apart.Write([]byte(events(u) + ":\n\n"))
			require.NoError(t, err)
		}
		joined := func(read []string) string { // the texts of units that repeat each other are read as one
			return strings.ReplaceAll(strings.Join(read, ""), "show", "")
		}
		for i, s := range whole.read {
			whole.read[i] = strings.TrimPrefix(s, "again ")
		}
		require.Equal(t, joined(apart.read), joined(whole.read))
		out, safe, _ := apart.Output()
		want := strings.TrimSuffix(strings.ReplaceAll(out[:safe], ":\n\n", ""), ":\n\n")
		out, safe, _ = whole.Output()
		require.Equal(t, want, out[:safe])
	})
}

// HasNoCallWord is false for each text in which MayHoldCall finds a word, quotation marks of
// keys aside.
func TestFree(t *testing.T) {
	t.Parallel()
	word := rapid.SampledFrom([]string{`"tool_calls"`, `"function_call"`, `"functionCall"`, `"tool_use"`, `"web_search_call"`, `"x_call_y"`, `"mcp_approval_request"`, "x"})
	rapid.Check(t, func(t *rapid.T) {
		text := word.Draw(t, "word")
		for i := 0; i < len(text); i++ {
			switch c := text[i]; rapid.IntRange(0, 5).Draw(t, "spelling") {
			case 0:
				if c != '"' {
					text = text[:i] + `\u00` + string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15]) + text[i+1:]
					i += 5
				}
			case 1:
				text = text[:i] + strings.ToUpper(text[i:i+1]) + text[i+1:]
			case 2:
				if c == 's' {
					text = text[:i] + "\u017f" + text[i+1:]
					i++
				}
			}
		}
		doc, err := rawjson.Parse("["+strings.TrimPrefix(strings.TrimSuffix("["+text+"]", "]"), "[")+"]", rawjson.Limits{})
		isWord := err == nil && doc.Root().Len() == 1 && text != "x" && text != "X" && !strings.EqualFold(text, `\u0078`)
		require.Equal(t, isWord, !codec.HasNoCallWord(text), text)
		require.True(t, codec.HasNoCallWord(text) || codec.MayHoldCall([]byte(text)), text)
	})
	for _, text := range []string{"", "call me", "recall", `"parallel_tool_calls":true`, `"usage":{"server_tool_use":1}`, "_use", "_app", `\u0020`} {
		require.True(t, codec.HasNoCallWord(text), text)
	}
}

// A text in pieces is decoded once: a surrogate pair may be divided between two.
func TestJoined(t *testing.T) {
	t.Parallel()
	var j codec.Joined
	for _, piece := range []string{`"a\ud83d"`, `"\ude00b"`, `{"n": "1"}`, `"\n"`} {
		doc, err := codec.Parse(piece)
		require.NoError(t, err)
		j.Add(doc.Root())
	}
	require.Equal(t, "a\U0001f600b{\"n\": \"1\"}\n", j.String())
}

// What is nested deeper than any reader follows is cut, not followed.
// Of keys that differ in case only, the one in lower case is written, wherever it is.
func TestTreeOneCase(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"n":1,"N":2}`: `{"n":1}`, `{"N":1,"n":2}`: `{"n":2}`, `{"N":1,"n":2,"N":3}`: `{"n":2}`, `{"N":1,"N":2}`: `{"N":2}`, `{"aB":1,"Ab":2}`: `{"Ab":2}`,
	} {
		v, err := codec.ParseObject(text)
		require.NoError(t, err)
		require.Equal(t, want, codec.Canonical(v), text)
	}
}

// A member that a format does not know is written unless its key is a word for calls.
func TestFreeMember(t *testing.T) {
	t.Parallel()
	for key, free := range map[string]bool{
		"a": true, "recall": true, "parallel_tool_calls": true, `a"b`: true,
		"tool_calls": false, "Tool_Calls": false, "x_call": false, "function_call": false, "fun\ufffdction_call": false, `"tool_calls`: false, "__proto__": false,
	} {
		v, err := codec.ParseObject(codec.Object(codec.Member{Key: key, Raw: "1"}))
		require.NoError(t, err)
		for m := range v.Each() {
			require.Equal(t, free, codec.FreeMember(m), key)
		}
	}
}

// A list in the place of a text may hide a call: it is written only if it holds none.
func TestTreeScalars(t *testing.T) {
	t.Parallel()
	tree := codec.Tree{"a": nil}.Scalars("id", "n")
	for value, want := range map[string]string{
		`"tool_calls"`: `"tool_calls"`, `1.0`: `1.0`, `["x"]`: `["x"]`, `{"b": [1]}`: `{"b":[1]}`,
		`[{"tool_calls":[1]}]`: "null", `{"type":"function_call"}`: "null", `["tool\u005fuse", "\"tool\u005fuse"]`: "null",
	} {
		v, err := codec.ParseObject(`{"id": ` + value + `, "a": ` + value + `}`)
		require.NoError(t, err)
		written, err := codec.ParseObject(tree.Write(v))
		require.NoError(t, err)
		require.Equal(t, want, written.Get("id").Raw(), value)
		require.NotEqual(t, "null", written.Get("a").Raw(), value)
	}
}

func TestTreeIsNotDeep(t *testing.T) {
	t.Parallel()
	v, err := codec.ParseObject(`{"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `,"text":"a"}`)
	require.NoError(t, err)
	out := toyTree.Write(v)
	require.Less(t, len(out), 10_000)
	require.True(t, strings.HasSuffix(out, `"text":"a"}`))
}
