package mcp

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/internal/text"
)

// convert reads a result as the SDK does.
func convert(t testing.TB, o Options, result string) (*sdk.CallToolResult, string, bool, any) {
	t.Helper()
	res := new(sdk.CallToolResult)
	require.NoError(t, json.Unmarshal([]byte(result), res))
	r := newServer(o.withDefaults()).result(res)
	return res, r.Text, r.IsError, r.Value
}

func TestResults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		result string
		text   string
		fails  bool
	}{
		"texts":                {result: `{"content":[{"type":"text","text":"a"},{"type":"text","text":""},{"type":"text","text":"b"}]}`, text: "a\n\nb"},
		"nothing":              {result: `{"content":[]}`},
		"no content":           {result: `{}`},
		"an error":             {result: `{"isError":true,"content":[{"type":"text","text":"no"}]}`, text: "no", fails: true},
		"a silent error":       {result: `{"isError":true}`, text: "The tool failed and did not say why.", fails: true},
		"an image":             {result: `{"content":[{"type":"image","mimeType":"image/png","data":"AAEC"}]}`, text: "[image: image/png, 3 bytes]"},
		"audio":                {result: `{"content":[{"type":"audio","mimeType":"audio/wav","data":""}]}`, text: "[audio: audio/wav, 0 bytes]"},
		"a link":               {result: `{"content":[{"type":"resource_link","uri":"file:///a","name":"a","description":"the a"}]}`, text: "[resource: a, file:///a, the a]"},
		"a resource":           {result: `{"content":[{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"hello"}}]}`, text: "[resource: file:///a, text/plain]\nhello"},
		"a blob":               {result: `{"content":[{"type":"resource","resource":{"uri":"file:///a","blob":"AAEC"}}]}`, text: "[resource: file:///a, 3 bytes]"},
		"resource, structured": {result: `{"content":[{"type":"resource","resource":{"uri":"u","text":"x"}}],"structuredContent":1}`, text: "[resource: u]\nx"},
		"blob, structured":     {result: `{"content":[{"type":"resource","resource":{"uri":"u","blob":"AA=="}}],"structuredContent":1}`, text: "[resource: u, 1 bytes]\n1"},
		"no resource":          {result: `{"content":[{"type":"resource"}],"structuredContent":1}`, text: "1"},
		"sampling content":     {result: `{"content":[{"type":"tool_use","id":"1","name":"x","input":{}}]}`, text: "[content that is not for tools]"},
		"structured alone":     {result: `{"structuredContent":{"b":"<&>","a":1.5}}`, text: `{"a":1.5,"b":"<&>"}`},
		"structured too":       {result: `{"content":[{"type":"text","text":"{\"id\":9007199254740993}"}],"structuredContent":{"id":9007199254740993}}`, text: `{"id":9007199254740993}`},
		"beside an image":      {result: `{"content":[{"type":"image","mimeType":"image/png","data":""}],"structuredContent":[1]}`, text: "[image: image/png, 0 bytes]\n[1]"},
		"rounded":              {result: `{"structuredContent":{"id":[9007199254740993]}}`, text: "{\"id\":[9007199254740992]}\n[Whole numbers from 2^53 on may have been rounded.]"},
		"a request":            {result: `{"resultType":"input_required","inputRequests":{}}`, text: "The tool asks for input that nobody here can give.", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, text, fails, value := convert(t, Options{}, c.result)
			require.Equal(t, c.text, text)
			require.Equal(t, c.fails, fails)
			require.Same(t, res, value)
		})
	}
}

// A long text is cut between characters, and the model is told.
func TestResultsAreCut(t *testing.T) {
	t.Parallel()
	long := `{"content":[{"type":"text","text":"ab"},{"type":"text","text":"` + strings.Repeat("é", 10) + `"}]}`
	_, text, _, _ := convert(t, Options{MaxResult: 8}, long)
	require.Equal(t, "ab\néé\n[Cut here: the result has 23 bytes.]", text)
	_, text, _, _ = convert(t, Options{MaxResult: 23}, long)
	require.NotContains(t, text, "Cut")
	_, text, _, _ = convert(t, Options{}, `{"content":[{"type":"text","text":"`+strings.Repeat("x", 1<<20)+`"}]}`)
	require.Len(t, text, 65_536+len("\n[Cut here: the result has 1048576 bytes.]"))
}

// What would be a burden to keep is not kept.
func TestSideValueIsBounded(t *testing.T) {
	t.Parallel()
	image := `{"content":[{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("AAAA", 1000) + `"}]}`
	meta := `{"_meta":{"x":"` + strings.Repeat("x", 4000) + `"}}`
	for _, result := range []string{image, meta} {
		_, _, _, value := convert(t, Options{MaxValue: 3500}, result)
		require.Nil(t, value)
		_, _, _, value = convert(t, Options{MaxValue: 5000}, result)
		require.NotNil(t, value)
	}
	_, _, _, value := convert(t, Options{MaxValue: Off}, `{}`)
	require.Nil(t, value)
}

// Whatever a server sends as a result, what the model gets is bounded text.
func FuzzResult(f *testing.F) {
	for _, s := range []string{`{}`, `null`, `{"content":[{"type":"resource","resource":null}]}`, `{"content":[{"type":"tool_result","content":[{"type":"text"}]}],"structuredContent":1e300}`,
		`{"content":[{"type":"text","text":"\ud800é"}],"isError":true}`, `{"content":[{"type":"resource_link","uri":"x","size":-1}],"structuredContent":[[[]]]}`} {
		f.Add([]byte(s), 5)
	}
	f.Fuzz(func(t *testing.T, result []byte, limit int) {
		res := new(sdk.CallToolResult)
		if json.Unmarshal(result, res) != nil {
			return
		}
		limit = 1 + max(limit, -limit, 0)%1000
		r := newServer(Options{MaxResult: limit}.withDefaults()).result(res)
		require.True(t, utf8.ValidString(r.Text) || !utf8.Valid(result))
		require.LessOrEqual(t, len(r.Text), limit+60)
		require.True(t, r.IsError || !res.IsError)
	})
}

// A name is one that every provider takes, is what it was where it can be, and
// is nobody else's.
func TestToolNames(t *testing.T) {
	t.Parallel()
	prefixes := rapid.StringMatching(`([a-zA-Z_][a-zA-Z0-9_-]{0,31})?`)
	some := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z0-9_./-]{1,70}`), rapid.StringMatching(`[ab]_[0-9a-f]{8}`), rapid.StringMatching(`[a-b]?[./_]b`))
	rapid.Check(t, func(t *rapid.T) {
		prefix, a, b := prefixes.Draw(t, "prefix"), some.Draw(t, "a"), some.Draw(t, "b")
		if rapid.Bool().Draw(t, "b is what a became") {
			b = strings.TrimPrefix(toolName(prefix, a), prefix)
		}
		got := toolName(prefix, a)
		require.Regexp(t, `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`, got)
		require.True(t, strings.HasPrefix(got, prefix))
		require.Equal(t, got, toolName(prefix, a))
		if a != b {
			require.NotEqual(t, got, toolName(prefix, b))
		}
	})
}

func TestToolNameKeepsGoodNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"read_file":             "read_file",
		"Read-File2":            "Read-File2",
		"_x":                    "_x",
		strings.Repeat("a", 64): strings.Repeat("a", 64),
		strings.Repeat("a", 65): strings.Repeat("a", 55) + "_635361c4",
		"files/read":            "files_read_",
		"2read":                 "_2read_",
		"-x":                    "_-x_",
		"läs":                   "l_s_",
		"read_0123abcd":         "read_0123abcd_",
	} {
		require.True(t, strings.HasPrefix(toolName("", name), want), "%s: %s", name, toolName("", name))
	}
	require.Equal(t, "p_2", toolName("p_", "2"))
}

// Texts are cut to their bound, whole characters only.
func TestClip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, n := rapid.String().Draw(t, "s"), rapid.IntRange(0, 30).Draw(t, "n")
		for _, got := range []string{text.Clip(s, n), plain(s, n), line(s, n), head(s, n)} {
			require.LessOrEqual(t, len(got), n)
			require.True(t, utf8.ValidString(got))
		}
		require.True(t, strings.HasPrefix(s, strings.TrimSuffix(text.Clip(s, n), "…")))
	})
}
