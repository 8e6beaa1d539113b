package report_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
)

// drawn writes segments as text: [changed], {n:fault}, both, (omitted).
func drawn(segs []report.Segment) string {
	var b strings.Builder
	for _, s := range segs {
		text := s.Text
		if s.Omitted > 0 {
			text = fmt.Sprintf("(%d)", s.Omitted)
		}
		if s.Fault > 0 {
			n := ""
			if s.First {
				n = fmt.Sprint(s.Fault)
			}
			text = "{" + n + ":" + text + "}"
		}
		if s.Changed {
			text = "[" + text + "]"
		}
		b.WriteString(text)
	}
	return b.String()
}

func at(code, pointer string) []middleware.Issue {
	return []middleware.Issue{{Code: code, Pointer: pointer}}
}

func TestMark(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sent, ran string
		issues    []middleware.Issue
		before    string
		after     string
	}{
		"equal":           {`{"a":1}`, `{"a":1}`, nil, `{"a":1}`, `{"a":1}`},
		"value":           {`{"a":"1","b":2}`, `{"a":1,"b":2}`, at("type", "/a"), `{{1:"a":}[{:"1"}],"b":2}`, `{"a":[1],"b":2}`},
		"removed":         {`{"a":null,"b":2}`, `{"b":2}`, nil, `{["a":null],"b":2}`, `{"b":2}`},
		"added":           {`{}`, `{"a":1}`, nil, `{}`, `{["a":1]}`},
		"renamed":         {`{"path":"x"}`, `{"file_path":"x"}`, at("required", "/file_path"), `{["path":"x"]{1:}}`, `{["file_path":"x"]}`},
		"deep":            {`{"a":[{"b":"x"},{"b":1}]}`, `{"a":[{"b":"x"},{"b":"1"}]}`, at("type", "/a/1/b"), `{"a":[{"b":"x"},{{1:"b":}[{:1}]}]}`, `{"a":[{"b":"x"},{"b":["1"]}]}`},
		"list":            {`{"a":[1,null,2]}`, `{"a":[1,2]}`, nil, `{"a":[1,[null,]2]}`, `{"a":[1,2]}`},
		"part of a text":  {`{"a":"one\n"}`, `{"a":"one"}`, nil, `{"a":"one[\n]"}`, `{"a":"one"}`},
		"not JSON":        {`{'a': 1}`, `{"a": 1}`, at("syntax", ""), `{[{1:'}][a']: 1}`, `{["a"]: 1}`},
		"cut off":         {`{"a":[1`, `{"a":[1]}`, at("syntax", ""), `{"a":[{1:1}`, `{"a":[1[]}]`},
		"cut off after é": {`{"a":"é`, `{"a":"é`, at("syntax", ""), `{"a":"{1:é}`, `{"a":"é`},
		"all of it":       {`[1]`, `[1]`, at("not_object", ""), `[1]`, `[1]`},
		"order":           {`{"a":1,"b":2}`, `{"b":2,"a":1}`, nil, `{"[a":1,"b":2]}`, `{"[b":2,"a":1]}`},
		"two faults":      {`{"a":{"b":1}}`, `{"a":{"b":1}}`, []middleware.Issue{{Code: "x", Pointer: "/a"}, {Code: "y", Pointer: "/a/b"}}, `{{1:"a":{}{2:"b":1}{:}}}`, `{"a":{"b":1}}`},
		"unseen":          {"{\"a\":\"\u202e\x00\xff\"}", "{\"a\":\"\u202e\x00\xff\"}", nil, `{"a":"\u202e\u0000�"}`, `{"a":"\u202e\u0000�"}`},
		"empty":           {``, `{}`, nil, ``, `[{}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := report.Mark(c.sent, c.ran, c.issues)
			require.Equal(t, c.before, drawn(before))
			require.Equal(t, c.after, drawn(after))
		})
	}
}

// Long texts are cut around what is marked, so that a page does not hold a megabyte.
func TestMarkLong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 400_000)
	sent, ran := `{"a":"`+long+`","b":"1","c":"`+long+`"}`, `{"a":"`+long+`","b":1,"c":"`+long+`"}`
	for _, text := range []string{sent[:len(sent)-2], sent, strings.Repeat("x", 1<<20)} {
		before, after := report.Mark(text, ran, at("type", "/b"))
		n := 0
		for _, s := range append(before, after...) {
			n += len(s.Text)
		}
		require.Less(t, n, 10_000)
	}
	short, _ := report.Mark(sent[len(sent)/2:], sent[len(sent)/2:], nil)
	require.Contains(t, drawn(short), "é(")
}

// TestMarkKeepsText: the pieces of a short text are the text, and equal texts have
// no change.
func TestMarkKeepsText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) string {
			if rapid.Bool().Draw(t, label+" is JSON") {
				v := rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c d"}), rapid.OneOf(
					rapid.Map(rapid.Int(), func(n int) any { return n }), rapid.Map(rapid.StringOf(rapid.RuneFrom([]rune("xyé☺"))), func(s string) any { return s }),
					rapid.Map(rapid.SliceOfN(rapid.IntRange(0, 3), 0, 4), func(s []int) any { return s }))).Draw(t, label)
				b, err := json.Marshal(v)
				require.NoError(t, err)
				return string(b)
			}
			return rapid.StringOfN(rapid.RuneFrom([]rune(`{}[]":,ab1é☺`)), 0, 30, -1).Draw(t, label)
		}
		a, b := draw("a"), draw("b")
		issues := at(rapid.SampledFrom([]string{"syntax", "type"}).Draw(t, "code"), rapid.SampledFrom([]string{"", "/a", "/b/0", "/x"}).Draw(t, "pointer"))
		before, after := report.Mark(a, b, issues)
		joined := func(segs []report.Segment) (text string, changed bool) {
			for _, s := range segs {
				text += s.Text
				changed = changed || s.Changed
			}
			return text, changed
		}
		gotA, changedA := joined(before)
		gotB, changedB := joined(after)
		require.Equal(t, a, gotA)
		require.Equal(t, b, gotB)
		require.Equal(t, a != b, changedA || changedB)
	})
}

// Whatever texts are compared: what is shown of them is bounded, can be seen, and has a
// change exactly if they differ.
func FuzzMark(f *testing.F) {
	f.Add(`{"a":[1,{"b":"é"}]}`, `{"a":[1,{"b":"e"}]}`, "/a/1/b")
	f.Add(`{'a'`, "{\"a\xff\"}", "")
	f.Add(`{"a":1,"a":2}`, `{"a":2}`, "/a/b/c")
	f.Fuzz(func(t *testing.T, a, b, pointer string) {
		before, after := report.Mark(a, b, append(at("syntax", ""), at("type", pointer)...))
		changed, shown := false, 0
		for _, s := range append(before, after...) {
			changed = changed || s.Changed
			shown += len(s.Text)
			require.True(t, utf8.ValidString(s.Text))
			require.NotContains(t, s.Text, "\x00")
		}
		require.Equal(t, a != b, changed)
		require.LessOrEqual(t, shown, 6*(len(a)+len(b))+200)
	})
}

// The time for marks grows with the texts, and not with their product: one key many times
// against an object of many keys.
func TestMarkOfRepeatedKeys(t *testing.T) {
	t.Parallel()
	repeated := "{" + strings.Repeat(`"a":{},`, 30_000) + `"a":{}}`
	var many strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&many, `"k%d":0,`, i)
	}
	start := time.Now()
	_, after := report.Mark(repeated, `{"a":{`+many.String()+`"z":0}}`, nil)
	require.Less(t, time.Since(start), 3*time.Second)
	require.True(t, slices.ContainsFunc(after, func(s report.Segment) bool { return s.Changed }))
}
