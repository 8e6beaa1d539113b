package gemini_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// scalars are what a mutation puts in the place of a value.
var scalars = []string{`null`, `"x"`, `""`, `7`, `-1.5e3`, `true`, `{}`, `[]`, `[{}]`, `{"functionCall":{"name":"m"}}`, `{"text":"m"}`}

// mutateValue changes a JSON text in one place and leaves it JSON: a value is
// replaced by another one, taken out, or put in a second time.
func mutateValue(t *rapid.T, text string) string {
	doc, err := rawjson.Parse(text, rawjson.Limits{Bytes: -1, Depth: -1})
	if err != nil {
		return text
	}
	all := []rawjson.Value{doc.Root()}
	for i := 0; i < len(all); i++ {
		for c := range all[i].Each() {
			all = append(all, c)
		}
	}
	v := all[rapid.IntRange(0, len(all)-1).Draw(t, "value")]
	start, end := v.Span()
	var edits []rawjson.Edit
	switch rapid.IntRange(0, 4).Draw(t, "how") {
	case 0:
		edits = append(edits, rawjson.Edit{Start: start, End: end, Text: rapid.SampledFrom(scalars).Draw(t, "scalar")})
	case 1:
		edits = append(edits, rawjson.Edit{Start: start, End: end, Text: rapid.SampledFrom(all).Draw(t, "other").Raw()})
	case 2:
		edits = v.Parent().Cut(func(c rawjson.Value) bool { from, _ := c.Span(); return from == start })
	case 3: // a second time
		member := v.Raw()
		if v.IsMember() {
			member = rawjson.Quote(v.Key()) + ":" + rapid.SampledFrom(append(scalars, v.Raw())).Draw(t, "again")
		}
		if v.Parent().Exists() {
			edits = append(edits, rawjson.Edit{Start: end, End: end, Text: "," + member})
		}
	default: // under another name
		if from, to := v.KeySpan(); v.IsMember() {
			name := rapid.SampledFrom([]string{"text", "function_call", "functionCall", "parts", "args", "willContinue", "error", "x"}).Draw(t, "name")
			edits = append(edits, rawjson.Edit{Start: from, End: to, Text: rawjson.Quote(name)})
		}
	}
	out, err := rawjson.Apply(text, edits)
	if err != nil {
		return text
	}
	return out
}

// Bodies that are JSON but not quite of the format: no panic, no loss.
func TestMutants(t *testing.T) {
	t.Parallel()
	t.Run("requests", rapid.MakeCheck(func(t *rapid.T) {
		body := rapid.SampledFrom([]string{plainRequest, fullRequest, snakeRequest}).Draw(t, "body")
		for range rapid.IntRange(1, 3).Draw(t, "mutations") {
			body = mutateValue(t, body)
		}
		requireRequestLaws(t, body)
	}))
	t.Run("answers", rapid.MakeCheck(func(t *rapid.T) {
		body := rapid.SampledFrom([]string{callAnswer, callStream, arrayStream, laterStream, partialStream}).Draw(t, "body")
		for range rapid.IntRange(1, 3).Draw(t, "mutations") {
			body = mutateAnswer(t, body)
		}
		requireAnswerLaws(t, body, rapid.IntRange(0, 300).Draw(t, "cut"))
	}))
}

// mutateAnswer mutates one event of a stream.
func mutateAnswer(t *rapid.T, body string) string {
	if !strings.HasPrefix(body, "data: ") {
		return mutateValue(t, body)
	}
	events := strings.SplitAfter(body, "\r\n\r\n")
	i := rapid.IntRange(0, len(events)-1).Draw(t, "event")
	if data, ok := strings.CutPrefix(events[i], "data: "); ok {
		events[i] = "data: " + mutateValue(t, strings.TrimSpace(data)) + "\r\n\r\n"
	}
	return strings.Join(events, "")
}
