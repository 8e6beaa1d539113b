package responses_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/codectest"
	"github.com/toolmend/toolmend/wire/internal/responses"
)

type object = map[string]any

// player reads a stream as a client does that joins items from their pieces, and reports two
// copies of a value that differ.
type player struct {
	next     float64 // sequence_number
	begun    int
	items    []*played
	finished object
}

type played struct {
	added, done object
	args        *strings.Builder
	texts       map[string]*strings.Builder
}

func play(body string) (*player, error) {
	p := &player{}
	for _, block := range strings.Split(strings.ReplaceAll(body, "\r\n", "\n"), "\n\n") {
		var name, data string
		for _, line := range strings.Split(block, "\n") {
			if v, ok := strings.CutPrefix(line, "data:"); ok {
				data += strings.TrimSpace(v)
			}
			if v, ok := strings.CutPrefix(line, "event:"); ok {
				name = strings.TrimSpace(v)
			}
		}
		var e object
		if data == "" || data == "[DONE]" {
			continue
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return nil, err
		}
		if name != "" && name != e["type"] {
			return nil, fmt.Errorf("an event named %s of type %v", name, e["type"])
		}
		if err := p.event(e); err != nil {
			return nil, fmt.Errorf("%v: %w", e["type"], err)
		}
	}
	return p, p.end()
}

func (p *player) event(e object) error {
	if n, ok := e["sequence_number"].(float64); ok {
		if n != p.next {
			return fmt.Errorf("number %v where %v is next", n, p.next)
		}
		p.next++
	}
	if p.finished != nil {
		return fmt.Errorf("after the end")
	}
	typ := e["type"].(string)
	switch typ {
	case "response.created":
		p.begun++
	case "response.completed", "response.incomplete":
		p.finished = e["response"].(object)
		if status := p.finished["status"]; "response."+fmt.Sprint(status) != typ {
			return fmt.Errorf("with status %v", status)
		}
	case "response.output_item.added":
		if int(e["output_index"].(float64)) != len(p.items) {
			return fmt.Errorf("item %v where %d is next", e["output_index"], len(p.items))
		}
		p.items = append(p.items, &played{added: e["item"].(object), args: &strings.Builder{}, texts: map[string]*strings.Builder{}})
		return nil
	}
	index, ok := e["output_index"].(float64)
	if !ok {
		return nil
	}
	if int(index) >= len(p.items) {
		return fmt.Errorf("about item %v", index)
	}
	it := p.items[int(index)]
	if id, ok := e["item_id"]; ok && id != it.added["id"] {
		return fmt.Errorf("of item %v, which is %v", id, it.added["id"])
	}
	return it.event(typ, e)
}

func (it *played) event(typ string, e object) error {
	key := fmt.Sprint(strings.TrimSuffix(strings.TrimSuffix(typ, ".delta"), ".done"), e["content_index"], e["summary_index"])
	if it.texts[key] == nil {
		it.texts[key] = &strings.Builder{}
	}
	switch {
	case it.done != nil:
		return fmt.Errorf("after the item was done")
	case typ == "response.output_item.done":
		it.done = e["item"].(object)
		if it.added["id"] != it.done["id"] || it.added["type"] != it.done["type"] || it.added["name"] != it.done["name"] || it.added["call_id"] != it.done["call_id"] {
			return fmt.Errorf("is another item than was added: %v, %v", it.added, it.done)
		}
		for _, key := range []string{"arguments", "input"} {
			if want, ok := it.done[key].(string); ok && it.done["type"] != "mcp_call" && it.args.String() != want {
				return fmt.Errorf("pieces %q of %q", it.args, want)
			}
		}
	case strings.HasSuffix(typ, "arguments.delta") || strings.HasSuffix(typ, "input.delta"):
		it.args.WriteString(e["delta"].(string))
	case strings.HasSuffix(typ, "arguments.done") && e["arguments"] != it.args.String(), strings.HasSuffix(typ, "input.done") && e["input"] != it.args.String():
		return fmt.Errorf("pieces %q of %q", it.args, e)
	case strings.HasSuffix(typ, "text.delta"):
		it.texts[key].WriteString(e["delta"].(string))
	case strings.HasSuffix(typ, "text.done") && it.texts[key].String() != e["text"]:
		return fmt.Errorf("pieces %q of %q", it.texts[key], e["text"])
	}
	return nil
}

// end compares the items with the items of the last event.
func (p *player) end() error {
	if p.begun != 1 || p.finished == nil {
		return fmt.Errorf("begun %d times, finished %v", p.begun, p.finished != nil)
	}
	at := 0
	output, _ := p.finished["output"].([]any)
	for _, o := range output {
		o := o.(object)
		for ; at < len(p.items) && p.items[at].added["type"] != o["type"]; at++ {
			if p.items[at].added["type"] != "reasoning" {
				return fmt.Errorf("a %v is missing at the end", p.items[at].added["type"])
			}
		}
		if at == len(p.items) {
			return fmt.Errorf("a %v that never came", o["type"])
		}
		done := p.items[at].done
		at++
		for _, key := range []string{"id", "type", "call_id", "name", "arguments", "input", "content"} {
			if done != nil && o["type"] != "reasoning" && fmt.Sprint(done[key]) != fmt.Sprint(o[key]) {
				return fmt.Errorf("the %s of a %v differs at the end: %v, %v", key, o["type"], done[key], o[key])
			}
		}
	}
	for _, it := range p.items[at:] {
		if it.added["type"] != "reasoning" {
			return fmt.Errorf("a %v is missing at the end", it.added["type"])
		}
	}
	return nil
}

// What is written is as well formed as what was recorded: all copies agree,
// items and events are numbered without a gap.
func TestWrittenStreamsAreWellFormed(t *testing.T) {
	t.Parallel()
	f := responses.Format{}
	fresh := middleware.ToolCall{ID: "call_extra", Name: "extra", Arguments: `{"a":"é"}`}
	edits := map[string]func(m *middleware.Message){
		"renamed": func(m *middleware.Message) {
			for i := range m.ToolCalls {
				m.ToolCalls[i].Name, m.ToolCalls[i].Arguments, m.ToolCalls[i].ID = "other", `{"x": 1}`, fmt.Sprint("call_", i)
			}
		},
		"emptied":   func(m *middleware.Message) { m.ToolCalls = nil },
		"added":     func(m *middleware.Message) { m.ToolCalls = append(m.ToolCalls, fresh) },
		"put first": func(m *middleware.Message) { m.ToolCalls = slices.Insert(m.ToolCalls, 0, fresh) },
		"turned":    func(m *middleware.Message) { slices.Reverse(m.ToolCalls) },
		"retold": func(m *middleware.Message) {
			for i := range m.Parts {
				if m.Parts[i].Kind == middleware.PartText {
					m.Parts[i].Text = "other\ntext"
				}
			}
		},
		"afresh": func(m *middleware.Message) {
			m.Native = nil
			for i := range m.Parts {
				if m.Parts[i].Kind == middleware.PartText {
					m.Parts[i].Native = nil
				}
			}
			for i := range m.ToolCalls {
				m.ToolCalls[i].Native = nil
			}
		},
	}
	played := 0
	for _, x := range codectest.Load(t, "openai-responses") {
		if !x.Streamed() {
			continue
		}
		if _, err := play(x.Response); err != nil {
			t.Logf("recorded so: %s: %v", x.ID, err)
			continue
		}
		played++
		resp, err := codec.Decode(f.NewStream(nil, nil), []byte(x.Response))
		require.NoError(t, err, x.ID)
		for name, edit := range edits {
			changed := resp.Clone()
			edit(&changed.Message)
			body, err := f.EncodeResponse(changed)
			require.NoError(t, err, "%s %s", x.ID, name)
			p, err := play(string(body))
			require.NoError(t, err, "%s %s\n%s", x.ID, name, body)
			got, err := codec.Decode(f.NewStream(nil, nil), body)
			require.NoError(t, err, "%s %s", x.ID, name)
			require.Equal(t, changed.Message.Text(), got.Message.Text(), "%s %s", x.ID, name)
			require.Len(t, got.Message.ToolCalls, len(changed.Message.ToolCalls), "%s %s", x.ID, name)
			for i, c := range got.Message.ToolCalls {
				c.Native = changed.Message.ToolCalls[i].Native
				require.True(t, codec.SameCall(c, changed.Message.ToolCalls[i]), "%s %s", x.ID, name)
			}
			require.NotNil(t, p.finished["usage"])
		}
	}
	t.Logf("%d streams", played)
	require.Greater(t, played, 190)
}
