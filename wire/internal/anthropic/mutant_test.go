package anthropic_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Bodies of nearly the right shape find what bytes at random do not: members
// of the wrong kind, gone, or there twice; events out of order.
func TestMutatedRequests(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SampledFrom(requests).Draw(t, "body")
		for range rapid.IntRange(1, 4).Draw(t, "mutations") {
			body = mutateValue(t, body)
		}
		requireRequestLaws(t, body)
	})
}

func TestMutatedAnswers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SampledFrom(answers).Draw(t, "body")
		for range rapid.IntRange(1, 4).Draw(t, "mutations") {
			if strings.HasPrefix(body, "{") {
				body = mutateValue(t, body)
			} else {
				body = mutateEvents(t, body)
			}
		}
		requireAnswerLaws(t, body, rapid.IntRange(0, len(body)).Draw(t, "cut"))
	})
}

var values = []string{`null`, `true`, `1`, `-1`, `1e999`, `""`, `"text"`, `"tool_use"`, `"tool_result"`, `"thinking"`, `"user"`, `[]`, `{}`, `{"type":"text","text":""}`, `[{}]`}

// mutateValue changes one value of a JSON text.
func mutateValue(t *rapid.T, text string) string {
	doc, err := rawjson.Parse(text, rawjson.Limits{})
	if err != nil {
		return text
	}
	all := valuesBelow(doc.Root(), nil)
	if len(all) == 0 {
		return text
	}
	v := rapid.SampledFrom(all).Draw(t, "value")
	start, end := v.Span()
	switch rapid.IntRange(0, 3).Draw(t, "how") {
	case 0:
		return text[:start] + rapid.SampledFrom(values).Draw(t, "new") + text[end:]
	case 1:
		out, err := rawjson.Apply(text, v.Parent().Cut(func(c rawjson.Value) bool { return c == v }))
		if err != nil {
			t.Fatal(err)
		}
		return out
	case 2:
		w := rapid.SampledFrom(all).Draw(t, "other")
		return text[:start] + w.Raw() + text[end:]
	}
	if v.IsMember() {
		return text[:end] + "," + rawjson.Quote(v.Key()) + ":" + rapid.SampledFrom(values).Draw(t, "twice") + text[end:]
	}
	return text[:end] + "," + v.Raw() + text[end:]
}

// valuesBelow appends all values below v.
func valuesBelow(v rawjson.Value, all []rawjson.Value) []rawjson.Value {
	for c := range v.Each() {
		all = valuesBelow(c, append(all, c))
	}
	return all
}

// mutateEvents changes one event of a stream, or moves it.
func mutateEvents(t *rapid.T, body string) string {
	events := strings.SplitAfter(body, "\n\n")
	i := rapid.IntRange(0, len(events)-1).Draw(t, "event")
	j := rapid.IntRange(0, len(events)-1).Draw(t, "other")
	switch rapid.IntRange(0, 4).Draw(t, "what") {
	case 0:
		events[i] = ""
	case 1:
		events[i] += events[j]
	case 2:
		events[i], events[j] = events[j], events[i]
	case 3:
		events[i] = strings.TrimRight(events[i], "\n")
	default:
		if head, data, ok := strings.Cut(events[i], "data: "); ok {
			events[i] = head + "data: " + mutateValue(t, strings.TrimSpace(data)) + "\n\n"
		}
	}
	return strings.Join(events, "")
}
