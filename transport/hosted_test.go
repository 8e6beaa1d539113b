package transport_test

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/transport"
)

// numbered are events of Responses with their numbers.
func numbered(events ...string) (out []string) {
	for i, e := range events {
		typ, members, _ := strings.Cut(e, " ")
		out = append(out, namedEvent(typ, `{"type":%q,"sequence_number":%d,%s}`, typ, i, members))
	}
	return out
}

// hosted are streams with events of tools that the provider runs, before any text.
func hosted() map[string]struct {
	speech
	events []string
} {
	const (
		created = `response.created "response":{"id":"x","object":"response","status":"in_progress","model":"m","output":[]}`
		going   = `response.in_progress "response":{"id":"x","object":"response","status":"in_progress","model":"m","output":[]}`
		search  = `{"id":"ws1","type":"web_search_call","status":"completed","action":{"type":"search","query":"rain"}}`
		image   = `{"id":"ig1","type":"image_generation_call","status":"completed","result":"AAAA"}`
		code    = `{"id":"ci1","type":"code_interpreter_call","status":"completed","code":"1+1","container_id":"k","outputs":null}`
	)
	end := func(items ...string) string {
		return `response.completed "response":{"id":"x","object":"response","status":"completed","model":"m","output":[` + strings.Join(items, ",") + `],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}`
	}
	call := func(index int, arguments string) (item string, events []string) {
		item = fmt.Sprintf(`{"id":"fc1","type":"function_call","status":"completed","call_id":"c1","name":"add","arguments":%q}`, arguments)
		return item, []string{
			fmt.Sprintf(`response.output_item.added "output_index":%d,"item":{"id":"fc1","type":"function_call","status":"in_progress","call_id":"c1","name":"add","arguments":""}`, index),
			fmt.Sprintf(`response.function_call_arguments.done "item_id":"fc1","output_index":%d,"arguments":%q`, index, arguments),
			fmt.Sprintf(`response.output_item.done "output_index":%d,"item":%s`, index, item)}
	}
	searching := []string{created, going,
		`response.output_item.added "output_index":0,"item":{"id":"ws1","type":"web_search_call","status":"in_progress"}`,
		`response.web_search_call.in_progress "item_id":"ws1","output_index":0`,
		`response.web_search_call.searching "item_id":"ws1","output_index":0`,
		`response.web_search_call.completed "item_id":"ws1","output_index":0`,
		`response.output_item.done "output_index":0,"item":` + search}
	drawing := []string{created, going,
		`response.output_item.added "output_index":0,"item":{"id":"ig1","type":"image_generation_call","status":"in_progress"}`,
		`response.image_generation_call.in_progress "item_id":"ig1","output_index":0`,
		`response.image_generation_call.partial_image "item_id":"ig1","output_index":0,"partial_image_index":0,"partial_image_b64":"AA"`,
		`response.image_generation_call.partial_image "item_id":"ig1","output_index":0,"partial_image_index":1,"partial_image_b64":"AAA"`,
		`response.output_item.done "output_index":0,"item":` + image}
	coding := []string{created, going,
		`response.output_item.added "output_index":0,"item":{"id":"ci1","type":"code_interpreter_call","status":"in_progress","code":"","container_id":"k","outputs":null}`,
		`response.code_interpreter_call.in_progress "item_id":"ci1","output_index":0`,
		`response.code_interpreter_call_code.delta "item_id":"ci1","output_index":0,"delta":"1+"`,
		`response.code_interpreter_call_code.delta "item_id":"ci1","output_index":0,"delta":"1"`,
		`response.code_interpreter_call_code.done "item_id":"ci1","output_index":0,"code":"1+1"`,
		`response.output_item.done "output_index":0,"item":` + code}
	join := func(all ...[]string) (out []string) {
		for _, a := range all {
			out = append(out, a...)
		}
		return numbered(out...)
	}
	valid, called := call(1, `{"n":1}`)
	beside := slices.Concat(drawing[:5], called[:1], drawing[5:], called[1:])
	invalid, broken := call(1, `{}`)
	type stream = struct {
		speech
		events []string
	}
	block := func(n int, start string, deltas ...string) (out []string) {
		out = append(out, namedEvent("content_block_start", `{"type":"content_block_start","index":%d,"content_block":%s}`, n, start))
		for _, d := range deltas {
			out = append(out, namedEvent("content_block_delta", `{"type":"content_block_delta","index":%d,"delta":%s}`, n, d))
		}
		return append(out, namedEvent("content_block_stop", `{"type":"content_block_stop","index":%d}`, n))
	}
	claude := func(blocks ...[]string) (out []string) {
		out = append(out, namedEvent("message_start", `{"type":"message_start","message":{"id":"x","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}`))
		for _, b := range blocks {
			out = append(out, b...)
		}
		return append(out, namedEvent("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}`), namedEvent("message_stop", `{"type":"message_stop"}`))
	}
	use := block(0, `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`, `{"type":"input_json_delta","partial_json":"{\"query\":"}`, `{"type":"input_json_delta","partial_json":"\"rain\"}"}`)
	found := block(1, `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`)
	client := func(arguments string) []string {
		return block(2, `{"type":"tool_use","id":"c1","name":"add","input":{}}`, fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, arguments))
	}
	return map[string]stream{
		"responses, a search":                     {responses(), join(searching, []string{end(search)})},
		"responses, an image":                     {responses(), join(drawing, []string{end(image)})},
		"responses, an image beside a call":       {responses(), join(beside, []string{end(image, valid)})},
		"responses, code":                         {responses(), join(coding, []string{end(code)})},
		"responses, a search and a call":          {responses(), join(searching, called, []string{end(search, valid)})},
		"responses, an image and a call":          {responses(), join(drawing, called, []string{end(image, valid)})},
		"responses, an image and an invalid call": {responses(), join(drawing, broken, []string{end(image, invalid)})},
		"anthropic, a search":                     {anthropic(), claude(use, found)},
		"anthropic, a search and a call":          {anthropic(), claude(use, found, client(`{"n":1}`))},
		"anthropic, a search and an invalid call": {anthropic(), claude(use, found, client(`{}`))},
	}
}

// Events of tools that the provider runs pass when they arrive, and none of them is lost, also
// if the answer has no text and if the request offers tools. The first events pass with them.
func TestEventsOfServerTools(t *testing.T) {
	t.Parallel()
	// isOf reports whether an event is about a tool that the provider runs, and returns what it
	// has besides its numbers.
	kinds := regexp.MustCompile(`"(web_search|image_generation|code_interpreter)_call|response\.(web_search|image_generation|code_interpreter)_call|srvtoolu_1|"partial_json":"(\{\\"query|\\"rain)`)
	numbers := regexp.MustCompile(`,"(sequence_number|output_index|index)":\d+`)
	about := func(events []string) (out []string) {
		for _, e := range events {
			if kinds.MatchString(e) && !strings.Contains(e, "response.completed") {
				out = append(out, numbers.ReplaceAllString(e, ""))
			}
		}
		return out
	}
	for name, c := range hosted() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				first := played{kind: c.kind, pieces: c.events, pauses: []time.Duration{time.Second}}
				again := played{kind: c.kind, pieces: eventsOf(c.stream("two", `{"n":2}`))}
				start := time.Now()
				resp, err := transport.New(transport.Options{KeepAlive: transport.Off}, validate()).Hook(c.streamRequest(t), play(first, again))
				require.NoError(t, err)
				got, at := "", map[string]time.Duration{}
				buf := make([]byte, 64<<10)
				for err == nil {
					var n int
					n, err = resp.Body.Read(buf)
					got += string(buf[:n])
					for _, e := range eventsOf(string(buf[:n])) {
						at[e] = time.Since(start)
					}
				}
				require.ErrorIs(t, err, io.EOF)
				require.Equal(t, about(c.events), about(eventsOf(got)))
				shows := slices.IndexFunc(c.events, func(e string) bool { return kinds.MatchString(e) })
				call := slices.IndexFunc(c.events, func(e string) bool { return strings.Contains(e, "function_call") })
				for i, e := range c.events {
					if call >= 0 && i >= call {
						break
					}
					if i <= shows || len(about([]string{e})) > 0 {
						require.Equal(t, time.Duration(max(i, shows)+1)*time.Second, at[e], e)
					}
				}
			})
		})
		if strings.Contains(name, "invalid") {
			continue // an answer that is re-asked is not shown
		}
		t.Run(name+", held", func(t *testing.T) {
			t.Parallel()
			got, body := c.talk(t, transport.New(transport.Options{Hold: true}, validate()), true, strings.Join(c.events, ""))
			require.Equal(t, about(c.events), about(eventsOf(body)))
			require.Equal(t, strings.Count(strings.Join(c.events, ""), "event: response.in_progress"), strings.Count(body, "event: response.in_progress"))
			require.Equal(t, c.decode(t, strings.Join(c.events, "")).Message.ToolCalls, got.Message.ToolCalls)
		})
		t.Run(name+", after a re-ask", func(t *testing.T) {
			t.Parallel()
			for _, text := range []string{"", "one "} {
				_, body := c.talk(t, transport.New(transport.Options{}, validate()), true, c.stream(text, `{}`), strings.Join(c.events, ""))
				require.Equal(t, about(c.events), about(eventsOf(body)))
				if text == "" { // the client has nothing of the first answer
					require.Equal(t, strings.Count(strings.Join(c.events, ""), "event: response.in_progress"), strings.Count(body, "event: response.in_progress"))
				}
			}
		})
	}
}
