package anthropic

import (
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// newEvent returns a fresh event.
func newEvent(kind string, members ...member) string {
	data := codec.Object(append([]member{kv("type", quote(kind))}, members...)...)
	return "event: " + kind + "\ndata: " + codec.OneLine(data) + "\n\n"
}

func blockEvent(kind string, index int, members ...member) string {
	return newEvent(kind, append([]member{kv("index", codec.Count(int64(index)))}, members...)...)
}

func blockDelta(index int, kind, key, raw string) string {
	return blockEvent("content_block_delta", index, kv("delta", codec.Object(kv("type", quote(kind)), kv(key, raw))))
}

// putFresh writes the events of a block that did not come with the answer: its
// start without what deltas bring, and those.
func putFresh(out *strings.Builder, it item, n int) error {
	raw, err := it.whole()
	if err != nil {
		return err
	}
	v, err := codec.ParseObject(raw)
	if err != nil {
		return codec.Unencodablef("a block that is none")
	}
	start := codec.NewPatch(v)
	deltas := brought(v, it, n, start)
	if raw, err = start.Text(); err != nil {
		return err
	}
	out.WriteString(blockEvent("content_block_start", n, kv("content_block", raw)))
	for _, d := range deltas {
		out.WriteString(d)
	}
	out.WriteString(blockEvent("content_block_stop", n))
	return nil
}

// whole returns it as a block of an answer. What the model wrote for its
// arguments comes in deltas, whatever it is.
func (it item) whole() (string, error) {
	if it.call == nil {
		return it.answered()
	}
	if !utf8.ValidString(it.call.Arguments) {
		return "", codec.Unencodablef("arguments that are not UTF-8")
	}
	raw, _, err := it.history()
	return raw, err
}

// brought takes out of a block what deltas bring, and returns those.
func brought(v rawjson.Value, it item, n int, start *codec.Patch) []string {
	var deltas []string
	take := func(key, kind string) {
		if s := v.Get(key).Str(); s != "" {
			start.Set(key, `""`)
			deltas = append(deltas, blockDelta(n, kind, key, quote(s)))
		}
	}
	switch kind := v.Get("type").Str(); kind {
	case "text":
		if citations := v.Get("citations"); citations.Kind() == rawjson.Array && !citations.Empty() {
			start.Set("citations", "[]")
			for c := range citations.Each() {
				deltas = append(deltas, blockDelta(n, "citations_delta", "citation", c.Raw()))
			}
		}
		take("text", "text_delta")
	case "thinking":
		take("thinking", "thinking_delta")
		take("signature", "signature_delta")
	case "tool_use", "server_tool_use", "mcp_tool_use":
		input := v.Get("input").Raw()
		if it.call != nil {
			input = it.call.Arguments
		}
		start.Set("input", "{}")
		if input != "" {
			deltas = append(deltas, blockDelta(n, "input_json_delta", "partial_json", quote(input)))
		}
	}
	return deltas
}

// asStream writes an answer that came whole as a stream.
func (a *answer) asStream(resp *middleware.Response, items []item) (string, error) {
	start, err := edited(a.root, kv("content", "[]"), kv("stop_reason", "null"), kv("model", quote(resp.Model)))
	if err != nil {
		return "", err
	}
	rest, err := a.asEvents(resp, items, 0, figures{})
	return newEvent("message_start", kv("message", start)) + rest, err
}

// asEvents writes an answer that came whole as the rest of a stream.
func (a *answer) asEvents(resp *middleware.Response, items []item, first int, so figures) (string, error) {
	var out strings.Builder
	for n, it := range items {
		if err := putFresh(&out, it, first+n); err != nil {
			return "", err
		}
	}
	member := func(key string) member { return kv(key, a.root.Get(key).Raw()) }
	usage := a.root.Get("usage")
	edits, err := so.over(usage).edits(usage, resp.Usage)
	if err != nil {
		return "", err
	}
	figures, err := codec.Within(usage, edits)
	if err != nil {
		return "", err
	}
	delta := codec.Object(kv("stop_reason", stopText(a.stopNow(resp))), member("stop_sequence"), member("stop_details"), member("container"))
	out.WriteString(newEvent("message_delta", kv("delta", delta), kv("usage", figures), member("context_management")))
	out.WriteString(newEvent("message_stop"))
	return out.String(), nil
}
