package codectest

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/toolmend/toolmend/middleware"
)

// plain returns a copy of m without what the provider wrote: what a middleware
// sees of it.
func plain(m middleware.Message) middleware.Message {
	m = m.Clone()
	m.Native = nil
	for i := range m.Parts {
		m.Parts[i].Native = nil
	}
	for i := range m.ToolCalls {
		m.ToolCalls[i].Native = nil
	}
	if len(m.Parts) == 0 {
		m.Parts = nil
	}
	if len(m.ToolCalls) == 0 {
		m.ToolCalls = nil
	}
	return m
}

func plains(ms []middleware.Message) []middleware.Message {
	out := make([]middleware.Message, len(ms))
	for i, m := range ms {
		out[i] = plain(m)
	}
	return out
}

// same returns an error if got is not wanted in what a middleware sees.
func same(what string, want, got any) error {
	if reflect.DeepEqual(want, got) {
		return nil
	}
	return fmt.Errorf("%s differs:\n want %s\n  got %s", what, short(want), short(got))
}

func short(v any) string {
	b, _ := json.Marshal(v)
	if len(b) > 1500 {
		b = append(b[:1500], "…"...)
	}
	return string(b)
}

// sameBytes returns an error that shows where two texts part.
func sameBytes(what, want, got string) error {
	if want == got {
		return nil
	}
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	window := func(s string) string { return s[max(0, i-40):min(len(s), i+80)] }
	return fmt.Errorf("%s differs at byte %d of %d and %d:\n want %q\n  got %q", what, i, len(want), len(got), window(want), window(got))
}

// oneInsertion returns an error unless after is before with one thing put in.
func oneInsertion(before, after string) error {
	i := 0
	for i < len(before) && i < len(after) && before[i] == after[i] {
		i++
	}
	j := 0
	for j < len(before)-i && j < len(after)-i && before[len(before)-1-j] == after[len(after)-1-j] {
		j++
	}
	if i+j < len(before) {
		return fmt.Errorf("not one insertion: %d bytes of the original at %d are gone", len(before)-i-j, i)
	}
	return nil
}

// seen is what a middleware sees of an answer.
type seen struct {
	Message middleware.Message
	Choices []middleware.Message
	Finish  middleware.FinishReason
	Model   string
	Usage   middleware.Usage
}

func seenOf(r *middleware.Response) seen {
	return seen{plain(r.Message), plains(r.Choices), r.FinishReason, r.Model, r.Usage}
}
