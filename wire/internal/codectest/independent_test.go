package codectest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

type object = map[string]any

// serverHolds reports whether the provider keeps the conversation, so that the
// request holds only what is new.
func serverHolds(request string) bool {
	var o object
	_ = json.Unmarshal([]byte(request), &o)
	return o["conversation"] != nil
}

// bareInput reports whether the input of an OpenAI Responses request is a text,
// which becomes a list when something is appended.
func bareInput(request string) bool {
	var o object
	_ = json.Unmarshal([]byte(request), &o)
	_, text := o["input"].(string)
	return text
}

// independent reads a re-ask with encoding/json and maps: every other member
// as before, history a prefix, then the turn, with a reply for each call where
// the dialect wants it.
func independent(dialect string, x Exchange, m middleware.Message, body string) error {
	var before, after object
	if err := json.Unmarshal([]byte(x.Request), &before); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(body), &after); err != nil {
		return err
	}
	key := map[string]string{"openai-responses": "input", "gemini-generate": "contents"}[dialect]
	if key == "" {
		key = "messages"
	}
	old, now := items(before[key]), items(after[key])
	delete(before, key)
	delete(after, key)
	if !reflect.DeepEqual(before, after) {
		return fmt.Errorf("members beside %s have changed", key)
	}
	if serverHolds(x.Request) {
		old = now[:0] // and it is not sent again
	}
	if len(now) < len(old) || !reflect.DeepEqual(old, now[:len(old)]) {
		return fmt.Errorf("the history is not the beginning of %s", key)
	}
	var want []string
	for _, c := range m.ToolCalls {
		want = append(want, c.ID)
	}
	got, err := replies(dialect, now[len(old):], serverHolds(x.Request))
	if err != nil {
		return err
	}
	if dialect == "gemini-generate" || dialect == "ollama-chat" {
		for i, id := range want {
			if codec.IsPlaceID(id) && got[min(i, len(got)-1)] == "" {
				want[i] = "" // a wire without ids
			}
		}
	}
	if !slices.Equal(want, got) {
		return fmt.Errorf("calls %q, replies %q", want, got)
	}
	return nil
}

// items returns a list of messages; a bare text is one.
func items(v any) []any {
	if s, ok := v.(string); ok {
		return []any{object{"role": "user", "content": s}}
	}
	list, _ := v.([]any)
	for i, item := range list {
		if o, ok := item.(object); ok && o["type"] == "message" && len(o) == 3 {
			delete(o, "type") // its absence means the same
		}
		list[i] = item
	}
	return list
}

// replies returns the ids of the calls that the turn answers, in order.
func replies(dialect string, turn []any, held bool) ([]string, error) {
	var ids []string
	get := func(o any, key string) any { m, _ := o.(object); return m[key] }
	text := func(v any) string { s, _ := v.(string); return s }
	switch dialect {
	case "openai-chat", "ollama-chat":
		for i, item := range turn {
			role := get(item, "role")
			if (i == 0) != (role == "assistant") || i > 0 && role != "tool" {
				return nil, fmt.Errorf("a message of role %v at %d of the turn", role, i)
			}
			if i > 0 {
				ids = append(ids, text(get(item, "tool_call_id")))
			}
		}
	case "anthropic-messages", "anthropic-elsewhere", "gemini-generate":
		if len(turn) != 2 {
			return nil, fmt.Errorf("a turn of %d messages", len(turn))
		}
		key, kind := "content", "tool_result"
		if dialect == "gemini-generate" {
			key, kind = "parts", "functionResponse"
		}
		if r := get(turn[0], "role"); r != "assistant" && r != "model" {
			return nil, fmt.Errorf("the turn begins with role %v", r)
		}
		blocks, _ := get(turn[1], key).([]any)
		for _, b := range blocks {
			switch r := get(b, kind); {
			case r != nil:
				ids = append(ids, text(get(r, "id")))
			case get(b, "type") == kind:
				ids = append(ids, text(get(b, "tool_use_id")))
			default:
				return nil, fmt.Errorf("a block that is no %s", kind)
			}
		}
	case "openai-responses":
		var calls []string
		for i, item := range turn {
			switch k := text(get(item, "type")); {
			case strings.HasSuffix(k, "_call_output"):
				ids = append(ids, text(get(item, "call_id")))
			case len(ids) > 0:
				return nil, fmt.Errorf("an item of type %s at %d, after the first output", k, i)
			case k == "function_call" || k == "custom_tool_call":
				calls = append(calls, text(get(item, "call_id")))
			}
		}
		if !held && !slices.Equal(calls, ids) {
			return nil, fmt.Errorf("calls %q, outputs %q", calls, ids)
		}
	}
	return ids, nil
}
