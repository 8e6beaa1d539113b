package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire"
)

// A call that any client reads from an answer was read here, with the same name
// and arguments, or the answer is unreadable or one of its calls invalid; and no client reads one from what
// is safe to show.
func TestClientsReadTheSameCalls(t *testing.T) {
	t.Parallel()
	for name, c := range targets {
		for _, body := range []string{c.whole, c.stream} {
			if body == "" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for _, who := range clients(name) {
					require.Equal(t, [][2]string{{"pay", `{"amount":5}`}}, who.runs(name, body), "the client works")
				}
				rapid.Check(t, func(t *rapid.T) {
					body := body
					for range rapid.IntRange(1, 3).Draw(t, "mutations") {
						body = misshape(t, body)
					}
					agree(t, name, c.codec, body)
				})
			})
		}
	}
}

func agree(t *rapid.T, format string, c wire.Codec, body string) {
	s := c.NewStream(nil, nil)
	_, err := io.Copy(s, strings.NewReader(body))
	resp, closed := s.Close()
	shown := body[:s.Safe()]
	if err == nil && closed == nil {
		shown = body
	}
	var read [][2]string
	if resp != nil {
		calls := resp.Message.ToolCalls
		for _, choice := range resp.Others { // which are known to be unchecked
			calls = append(calls, choice.ToolCalls...)
		}
		for _, call := range calls {
			if doc, err := rawjson.Parse(call.Arguments, rawjson.Limits{}); err != nil || len(doc.Duplicates()) > 0 || doc.Root().Kind() != rawjson.Object {
				return // the answer is invalid
			}
			var object any
			_ = json.Unmarshal([]byte(call.Arguments), &object)
			plain, _ := json.Marshal(object)
			read = append(read, [2]string{call.Name, string(plain)})
		}
	}
	for i, who := range clients(format) {
		for _, run := range who.runs(format, shown) {
			if !slices.Contains(read, run) {
				t.Fatalf("client %d runs %v, read were %v (%v)\n%q", i, run, read, errors.Join(err, closed), body)
			}
		}
	}
}

// misshape changes one thing about an answer: a member, or the bytes between.
func misshape(t *rapid.T, body string) string {
	if !strings.HasPrefix(body, "{") && rapid.IntRange(0, 2).Draw(t, "what") == 0 {
		from := []string{"\n", "\n\n", "data: ", "data: {", `,"`, "{", "event: "}
		old := rapid.SampledFrom(from).Draw(t, "old")
		parts := strings.Split(body, old)
		i := rapid.IntRange(0, len(parts)-1).Draw(t, "at")
		by := rapid.SampledFrom([]string{"\r", "\r\r", "\r\n", "\n", ": x\r" + old, old + "\r", "\r" + old, "foo\n\n" + old, "event: x\r" + old, "\ufeff" + old,
			": x\r\r\n" + old, old + "\ndata: "}).Draw(t, "by")
		return strings.Join(parts[:i], old) + by + strings.Join(parts[i:], old)
	}
	var texts []string // the JSON in it
	for _, line := range strings.FieldsFunc(body, func(c rune) bool { return c == '\n' || c == '\r' }) {
		if _, err := rawjson.Parse(strings.TrimPrefix(line, "data: "), rawjson.Limits{}); err == nil {
			texts = append(texts, strings.TrimPrefix(line, "data: "))
		}
	}
	if len(texts) == 0 {
		return body
	}
	text := rapid.SampledFrom(texts).Draw(t, "text")
	return strings.Replace(body, text, misshapeMember(t, text), 1)
}

func misshapeMember(t *rapid.T, text string) string {
	doc, _ := rawjson.Parse(text, rawjson.Limits{})
	var members []rawjson.Value
	var walk func(v rawjson.Value)
	walk = func(v rawjson.Value) {
		for m := range v.Each() {
			if m.IsMember() {
				members = append(members, m)
			}
			walk(m)
		}
	}
	walk(doc.Root())
	if len(members) == 0 {
		return text
	}
	m := rapid.SampledFrom(members).Draw(t, "member")
	start, _ := m.KeySpan()
	_, end := m.Span()
	key, raw := m.Key(), m.Raw()
	other := strings.NewReplacer("5", "99999", "pay", "steal", `"c"`, `"d"`).Replace(raw)
	odd := rapid.SampledFrom([]string{other, raw, "null", "5", `"x"`, "[]", "{}", `"0"`, "-1", "[" + raw + "]", rawjson.Quote(raw), `{"0":` + raw + `}`}).Draw(t, "odd")
	again := key
	switch i := rapid.IntRange(0, max(0, len(key)-1)).Draw(t, "letter"); rapid.IntRange(0, 3).Draw(t, "key") {
	case 0:
		again = strings.ToUpper(key)
	case 1:
		again = key[:i] + strings.ToUpper(key[i:min(len(key), i+1)]) + key[min(len(key), i+1):]
	}
	quoted := rawjson.Quote(again)
	if rapid.Bool().Draw(t, "escaped") && again != "" {
		quoted = fmt.Sprintf(`"\u%04x%s`, again[0], quoted[2:])
	}
	now := text[start:end]
	switch rapid.IntRange(0, 4).Draw(t, "how") {
	case 0:
		now = quoted + ":" + raw
	case 1:
		now = rawjson.Quote(key) + ":" + odd
	case 2:
		now += "," + quoted + ":" + odd
	case 3:
		now = quoted + ":" + odd + "," + now
	default:
		now = `"x":1`
	}
	return text[:start] + now + text[end:]
}
