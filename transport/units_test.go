package transport_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/internal/envelope"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire"
)

// TestUnits: each event of a chat stream that leaves the Transport, whatever came,
// is free of words for calls, or is in the one spelling that the codec writes.
func TestUnits(t *testing.T) {
	t.Parallel()
	tr, free, ours := strictTransport(), 0, 0
	for _, f := range envelope.Formats() {
		if f.Name != "chat" {
			continue
		}
		rapid.Check(t, func(rt *rapid.T) {
			for range exchangesPerCheck {
				x := f.Hostile(envelope.Uniform(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "seed")...), true)
				left := x.Through(tr.Hook)
				if !strings.HasPrefix(left, "data:") && !strings.Contains(left, "\ndata:") { // one object
					left = "data: " + left + "\n\n"
				}
				for unit := range strings.SplitAfterSeq(strings.ReplaceAll(left, "\r\n\r\n", "\n\n"), "\n\n") {
					if !wire.OpenAIChat().MayHoldCall([]byte(unit)) {
						free++
						continue
					}
					ours++
					if why := canonical(unit); why != "" {
						rt.Fatalf("%s: %q\nsent %q\nand %q\nleft %q", why, unit, x.First, x.Body, left)
					}
				}
			}
		})
	}
	t.Logf("%d units free of calls, %d written", free, ours)
}

// canonical returns why unit, which has a word for calls, is not of the one spelling.
func canonical(unit string) string {
	data, ok := strings.CutPrefix(strings.TrimLeft(unit, "\r\n"), "data: ")
	data, ok2 := strings.CutSuffix(data, "\n\n")
	if !ok || !ok2 || strings.ContainsAny(data, "\r\n") {
		return "framing"
	}
	doc, err := rawjson.Parse(data, rawjson.Limits{Bytes: -1, Depth: -1, Values: -1, Number: -1, Exponent: -1})
	if err != nil || !json.Valid([]byte(data)) {
		return fmt.Sprint("not JSON ", err)
	}
	if strings.HasPrefix(data, `{"error":`) { // of the Transport: only its text has words
		return keysOutside(doc.Root(), "", func(string) bool { return false })
	}
	return keysOutside(doc.Root(), "", func(at string) bool {
		switch at {
		case "/choices/delta/tool_calls", "/choices/delta/function_call", "/choices/message/tool_calls", "/choices/message/function_call":
			return true
		}
		return false
	})
}

func keysOutside(v rawjson.Value, at string, may func(at string) bool) string {
	seen := map[string]bool{}
	for m := range v.Each() {
		path := at
		if m.IsMember() {
			path += "/" + m.Key()
			fold := strings.ToLower(m.Key())
			if seen[fold] {
				return "twice: " + path
			}
			seen[fold] = true
			if m.Key() == "__proto__" || wire.OpenAIChat().MayHoldCall([]byte(m.Key())) && !may(path) {
				return "a key: " + path
			}
		}
		switch m.Key() {
		case "", "choices", "delta", "message", "tool_calls", "function_call", "function", "custom":
		default: // what is not known to the codec
			if m.Kind() != rawjson.String && wire.OpenAIChat().MayHoldCall([]byte(m.Raw())) {
				return "unknown: " + path
			}
			continue
		}
		if m.Kind() == rawjson.Object || m.Kind() == rawjson.Array {
			if why := keysOutside(m, path, may); why != "" {
				return why
			}
		}
	}
	return ""
}
