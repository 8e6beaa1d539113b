package strict_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/strict"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

var codecs = map[string]wire.Codec{
	"Messages": wire.Anthropic(), "Chat": wire.OpenAIChat(), "Responses": wire.OpenAIResponses(), "Gemini": wire.Gemini(), "Ollama": wire.Ollama(),
}

// good is a history of each format with one answer, whose calls have results. A, B and C
// stand for the thinking of answer 0, its call and the result of that.
var good = map[string]string{
	"Messages":  `{"thinking":{"type":"enabled"},"messages":[{"role":"user","content":"Go."},{"role":"assistant","content":[A,B]},{"role":"user","content":[C,{"type":"text","text":"On."}]}]}`,
	"Chat":      `{"messages":[{"role":"user","content":"Go."},{"role":"assistant","content":null,A,"tool_calls":[B]},C]}`,
	"Responses": `{"store":false,"input":[{"role":"user","content":"Go."},A,B,C]}`,
	"Gemini":    `{"contents":[{"role":"user","parts":[{"text":"Go."}]},{"role":"model","parts":[A,B]},{"role":"user","parts":[C]}]}`,
	"Ollama":    `{"messages":[{"role":"user","content":"Go."},{"role":"assistant","content":"",A,"tool_calls":[B]},C]}`,
}

var pieces = map[string][3]string{
	"Messages": {`{"type":"thinking","thinking":"Thought 0.","signature":"mark0000"}`,
		`{"type":"tool_use","id":"toolu_n0_0","name":"f","input":{}}`, `{"type":"tool_result","tool_use_id":"toolu_n0_0","content":"ok"}`},
	"Chat": {`"reasoning_content":"Thought 0."`, `{"id":"call_n0_0","type":"function","function":{"name":"f","arguments":"{}"}}`,
		`{"role":"tool","tool_call_id":"call_n0_0","content":"ok"}`},
	"Responses": {`{"type":"reasoning","id":"rs_n0_0","summary":[],"encrypted_content":"mark0000"}`,
		`{"type":"function_call","id":"fc_n0_0","call_id":"call_n0_0","name":"f","arguments":"{}"}`, `{"type":"function_call_output","call_id":"call_n0_0","output":"ok"}`},
	"Gemini": {`{"text":"Thought 0.","thought":true}`, `{"functionCall":{"id":"call_n0_0","name":"f","args":{}},"thoughtSignature":"mark0000"}`,
		`{"functionResponse":{"id":"call_n0_0","name":"f","response":{"r":1}}}`},
	"Ollama": {`"thinking":"Thought 0."`, `{"id":"call_n0_0","function":{"name":"f","arguments":{}}}`, `{"role":"tool","tool_name":"f","tool_call_id":"call_n0_0","content":"ok"}`},
}

// searching and running are uses of server tools.
const (
	searching = `{"type":"server_tool_use","id":"srvtoolu_n0_0","name":"web_search","input":{}}`
	running   = `{"type":"server_tool_use","id":"srvtoolu_n0_0","name":"bash_code_execution","input":{}}`
)

// result returns the result of a server tool's use.
func result(use string) string {
	kind := map[string]string{searching: "web_search", running: "bash_code_execution"}[use]
	return `{"type":"` + kind + `_tool_result","tool_use_id":"srvtoolu_n0_0","content":[]}`
}

// history returns the good history of a format with one piece replaced.
func history(format string, change ...string) string {
	p := pieces[format]
	h := strings.NewReplacer("A", p[0], "B", p[1], "C", p[2]).Replace(strings.Replace(good[format], change[0], change[1], 1))
	return strings.Replace(h, change[2], change[3], 1)
}

// The provider refuses what the real ones refuse, in their words.
func TestRefuse(t *testing.T) {
	t.Parallel()
	second := func(format string, of int) string { // another thinking, in front of the call
		return strings.NewReplacer("Thought 0", fmt.Sprint("Thought ", of), "mark0000", fmt.Sprintf("mark%04d", of), "rs_n0", fmt.Sprintf("rs_n%d", of)).Replace(pieces[format][0])
	}
	for name, c := range map[string]struct {
		format             string
		piece, instead     string // in the outline
		from, to           string // in the whole
		strictest, refused string
	}{
		"thinking of two answers":       {format: "Messages", piece: "A", instead: "A," + second("Messages", 1), refused: "messages.1.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified"},
		"text between the two":          {format: "Messages", piece: "A", instead: `A,{"type":"text","text":"t"},` + second("Messages", 1), refused: "cannot be modified"},
		"thinking of another answer":    {format: "Messages", piece: "A", instead: second("Messages", 1), refused: "cannot be modified"},
		"a changed thought":             {format: "Messages", from: "Thought 0.", to: "Thought 0", refused: "cannot be modified"},
		"a changed signature":           {format: "Messages", from: "mark0000", to: "mark000x", refused: "Invalid `signature` in `thinking` block"},
		"a signature of no answer":      {format: "Messages", from: "mark0000", to: "mark0009", refused: "Invalid `signature` in `thinking` block"},
		"no thinking":                   {format: "Messages", piece: "A,", refused: "Expected `thinking` or `redacted_thinking`, but found `tool_use`"},
		"no thinking, and none asked":   {format: "Messages", piece: "A,", from: "enabled", to: "disabled"},
		"no result":                     {format: "Messages", piece: "C,", refused: "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_n0_0"},
		"text in front of a result":     {format: "Messages", piece: "[C", instead: `[{"type":"text","text":"t"},C`, refused: "without `tool_result` blocks"},
		"an orphaned result":            {format: "Messages", from: `"tool_use_id":"toolu_n0_0"`, to: `"tool_use_id":"toolu_x"`, refused: "unexpected `tool_use_id` found in `tool_result` blocks: toolu_x"},
		"an id twice":                   {format: "Messages", piece: "B", instead: "B,B", refused: "`tool_use` ids must be unique"},
		"input that is a string":        {format: "Messages", from: `"input":{}`, to: `"input":"{}"`, refused: "Input should be a valid dictionary"},
		"empty text":                    {format: "Messages", piece: "A", instead: `A,{"type":"text","text":""}`, refused: "text content blocks must be non-empty"},
		"a server tool's result alone":  {format: "Messages", piece: "[A", instead: `[{"type":"web_search_tool_result","tool_use_id":"srvtoolu_n0_0","content":[]},A`, refused: "unexpected `tool_use_id` found in `web_search_tool_result` blocks: srvtoolu_n0_0. Each `web_search_tool_result` block must have a corresponding `server_tool_use` block before it."},
		"a server tool's use alone":     {format: "Messages", piece: `[A,B]},{"role":"user","content":[C,{"type":"text","text":"On."}]}`, instead: "[A," + searching + `,B]},{"role":"user","content":[C]},{"role":"assistant","content":[{"type":"text","text":"t"}]},{"role":"user","content":"On."}`, refused: "`web_search` tool use with id `srvtoolu_n0_0` was found without a corresponding `web_search_tool_result` block"},
		"a server tool that still runs": {format: "Messages", piece: `[A,B]},{"role":"user","content":[C,{"type":"text","text":"On."}]`, instead: "[A," + searching + `,B]},{"role":"user","content":[C]`},
		"words while it runs":           {format: "Messages", piece: "[A,B", instead: "[A," + searching + ",B", refused: "`web_search` tool use with id `srvtoolu_n0_0` was found without a corresponding `web_search_tool_result` block"},
		"its result, one answer later":  {format: "Messages", piece: `[A,B]},{"role":"user","content":[C,{"type":"text","text":"On."}]}`, instead: "[A," + searching + `,B]},{"role":"user","content":[C]},{"role":"assistant","content":[` + result(searching) + `,{"type":"text","text":"t"}]},{"role":"user","content":"On."}`},
		"code that runs nowhere":        {format: "Messages", piece: `[A,B]},{"role":"user","content":[C,{"type":"text","text":"On."}]`, instead: "[A," + running + `,B]},{"role":"user","content":[C]`, refused: "container_id is required when there are pending tool uses generated by code execution with tools."},
		"code that ran nowhere":         {format: "Messages", piece: "[A,B", instead: "[A," + running + "," + result(running) + ",B", refused: "container: code ran in a container that the request does not name"},
		"code that ran in a container":  {format: "Messages", piece: "[A,B", instead: "[A," + running + "," + result(running) + ",B", from: `"thinking":{`, to: `"container":"container_n0_0","thinking":{`},
		"an empty assistant message":    {format: "Messages", piece: "[A,B]", instead: "[]", refused: "all messages must have non-empty content except for the optional final assistant message"},
		"an assistant first":            {format: "Messages", piece: `{"role":"user","content":"Go."},`, refused: "first message must use the"},
		"nothing said":                  {format: "Chat", piece: `A,"tool_calls":[B]},C`, instead: `"name":"a"}`, refused: "Invalid value for 'content': expected a string, got null."},
		"no tool message":               {format: "Chat", piece: ",C", refused: "The following tool_call_ids did not have response messages: call_n0_0"},
		"an orphaned tool message":      {format: "Chat", from: `"tool_call_id":"call_n0_0"`, to: `"tool_call_id":"x"`, refused: "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'"},
		"reasoning of another answer":   {format: "Chat", from: "Thought 0", to: "Thought 1", refused: "The `reasoning_content` in the thinking mode must be passed back to the API."},
		"no reasoning, Moonshot":        {format: "Chat", piece: "A,", strictest: "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"},
		"arguments that are cut":        {format: "Chat", from: `"arguments":"{}"`, to: `"arguments":"{"`, strictest: "not a JSON object"},
		"an orphaned reasoning item":    {format: "Responses", piece: "A", instead: "A," + second("Responses", 1), refused: "Item 'rs_n0_0' of type 'reasoning' was provided without its required following item."},
		"reasoning in front of no item": {format: "Responses", piece: "A,B,C", instead: "A", refused: "without its required following item"},
		"a call without its reasoning":  {format: "Responses", piece: "A,", refused: "Item 'fc_n0_0' of type 'function_call' was provided without its required 'reasoning' item: 'rs_n0_0'."},
		"reasoning and ids stripped":    {format: "Responses", piece: "A,", from: `"id":"fc_n0_0",`},
		"a changed item":                {format: "Responses", from: "mark0000", to: "mark0001", refused: "Encrypted content item_id did not match the target item id."},
		"unsealed content":              {format: "Responses", from: "mark0000", to: "mark000x", refused: "The encrypted content for item rs_n0_0 could not be verified."},
		"reasoning that is not stored":  {format: "Responses", from: "mark0000", refused: "Items are not persisted when `store` is set to false"},
		"an item twice":                 {format: "Responses", piece: "A", instead: "A,A", refused: "Item 'rs_n0_0' of type 'reasoning' was provided without", strictest: ""},
		"a call twice":                  {format: "Responses", piece: "B", instead: "B,B", refused: "Duplicate item found with id fc_n0_0."},
		"an id of another kind":         {format: "Responses", from: `"id":"fc_n0_0"`, to: `"id":"call_n0_0"`, refused: "Expected an ID that begins with 'fc'."},
		"a call without output":         {format: "Responses", piece: ",C", refused: "No tool output found for function call call_n0_0."},
		"an orphaned output":            {format: "Responses", from: `output","call_id":"call_n0_0"`, to: `output","call_id":"x"`, refused: "No tool call found for function call output with call_id x."},
		"a response before":             {format: "Responses", piece: "A,B,C", instead: "C", from: `"store":false`, to: `"previous_response_id":"resp_n0_0"`},
		"another response before":       {format: "Responses", piece: "A,B,C", instead: "C", from: `"store":false`, to: `"previous_response_id":"resp_n1_0"`, refused: "No tool call found for function call output"},
		"a response that is gone":       {format: "Responses", piece: "A,B,C", instead: "C", from: `"store":false`, to: `"previous_response_id":"resp_n7_0"`, refused: "Previous response with id 'resp_n7_0' not found."},
		"references":                    {format: "Responses", piece: "A,B", instead: `{"type":"item_reference","id":"rs_n0_0"},{"type":"item_reference","id":"fc_n0_0"}`, from: `"store":false`, to: `"store":true`},
		"a reference without its thing": {format: "Responses", piece: "A,B", instead: `{"type":"item_reference","id":"fc_n0_0"}`, from: `"store":false`, to: `"store":true`, refused: "without its required 'reasoning' item"},
		"a reference to what is gone":   {format: "Responses", piece: "A", instead: `{"type":"item_reference","id":"rs_n0_0"}`, refused: "Item with id 'rs_n0_0' not found."},
		"no thought signature":          {format: "Gemini", from: `,"thoughtSignature":"mark0000"`, refused: "Function call is missing a thought_signature in functionCall parts."},
		"none in an older turn":         {format: "Gemini", piece: "[C]}", instead: `[C]},{"role":"model","parts":[{"text":"t"}]},{"role":"user","parts":[{"text":"On."}]}`, from: `,"thoughtSignature":"mark0000"`},
		"a signature of another answer": {format: "Gemini", from: "mark0000", to: "mark0001", refused: "Corrupted thought signature."},
		"a corrupted signature":         {format: "Gemini", from: "mark0000", to: "bWFyaw==", refused: "Corrupted thought signature."},
		"the documented signature":      {format: "Gemini", from: "mark0000", to: "skip_thought_signature_validator"},
		"a response too many":           {format: "Gemini", piece: "C", instead: "C,C", refused: "the number of function response parts is equal to the number of function call parts"},
		"no response":                   {format: "Gemini", piece: "C", instead: `{"text":"t"}`, refused: "the number of function response parts is equal"},
		"a response without a call":     {format: "Gemini", piece: "A,B", instead: "A", refused: "function response turn comes immediately after a function call turn"},
		"a call out of turn":            {format: "Gemini", piece: `{"role":"user","parts":[{"text":"Go."}]},`, refused: "function call turn comes immediately after a user turn"},
		"no parts":                      {format: "Gemini", piece: `[{"text":"Go."}]`, instead: "[]", refused: "contents.parts must not be empty"},
		"arguments as text":             {format: "Ollama", from: `"arguments":{}`, to: `"arguments":"{}"`, refused: "json: cannot unmarshal string into Go struct field"},
		"no result at all":              {format: "Ollama", piece: ",C", strictest: "no result for"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := history(c.format, c.piece, c.instead, c.from, c.to)
			require.True(t, json.Valid([]byte(h)), h)
			require.NotEqual(t, history(c.format, "", "", "", ""), h)
			for _, f := range strict.Formats() {
				if f.Name != c.format {
					continue
				}
				for _, strictest := range []bool{false, true} {
					want := c.refused
					if strictest && want == "" {
						want = c.strictest
					}
					got := f.Refuse([]byte(h), strict.Rules{Answers: 2, Strictest: strictest})
					require.Equal(t, want == "", got == "", got)
					require.Contains(t, got, want)
				}
			}
		})
	}
}

// A server with a chat template refuses two messages of one role in a row, and Mistral an
// assistant message without content.
func TestRefuseOfServers(t *testing.T) {
	t.Parallel()
	const user, nothing, said = `{"role":"user","content":"a"}`, `{"role":"assistant","content":""}`, `{"role":"assistant","content":"b"}`
	for name, c := range map[string]struct {
		format            strict.Format
		messages, refused string
	}{
		"two of the user":          {strict.Alternating, user + "," + user, "Conversation roles must alternate"},
		"two of the assistant":     {strict.Alternating, user + "," + said + "," + said + "," + user, "Conversation roles must alternate"},
		"in turns":                 {strict.Alternating, user + "," + said + "," + user, ""},
		"an empty message":         {strict.Mistral, user + "," + nothing + "," + user, "Assistant message must have either content or tool_calls, but not none."},
		"an empty message, OpenAI": {strict.Chat, user + "," + nothing + "," + user, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.format.Refuse([]byte(`{"messages":[`+c.messages+`]}`), strict.Rules{})
			require.Equal(t, c.refused == "", got == "", got)
			require.Contains(t, got, c.refused)
		})
	}
}

// A conversation has what was sent and answered, and refuses an item that it has.
func TestConversation(t *testing.T) {
	t.Parallel()
	const first, id = `{"conversation":ID,"input":"Go."}`, `{"id":"conv_1"}`
	output := `{"type":"function_call_output","call_id":"call_n0_0","output":"ok"}`
	for name, c := range map[string]struct{ input, refused string }{
		"the output":           {output, ""},
		"the message again":    {`{"role":"user","content":"Go."},` + output, "input[0]: the conversation has this item already"},
		"the call again":       {pieces["Responses"][1] + "," + output, "Duplicate item found with id fc_n0_0."},
		"no output":            {`{"role":"user","content":"On."}`, "No tool output found for function call call_n0_0."},
		"the output and words": {output + `,{"role":"user","content":"On."}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var conversation strict.Conversation
			body := []byte(strings.Replace(first, "ID", id, 1))
			require.Equal(t, "conv_1", strict.ConversationID(body))
			require.Equal(t, "conv_1", strict.ConversationID([]byte(strings.Replace(first, "ID", `"conv_1"`, 1))))
			require.Empty(t, strict.ConversationID([]byte(`{"input":"Go."}`)))
			require.Empty(t, conversation.Refuse(body, strict.Rules{}))
			conversation.Add(body, strict.Answer{Calls: []strict.Call{{Name: "f", Arguments: "{}"}}})
			got := conversation.Refuse([]byte(`{"conversation":"conv_1","input":[`+c.input+`]}`), strict.Rules{Answers: 1})
			require.Equal(t, c.refused == "", got == "", got)
			require.Contains(t, got, c.refused)
		})
	}
}

// What the provider says, Toolmend's codecs read, and the provider takes it back.
func TestAnswers(t *testing.T) {
	t.Parallel()
	a := strict.Answer{N: 0, Text: "Let me see.", Calls: []strict.Call{{Name: "read", Arguments: `{"path":"a \"quoted\" file"}`}, {Name: "read", Arguments: `{"path":"b"}`}}}
	for i, f := range append(strict.Formats(), strict.Mistral) {
		t.Run(fmt.Sprint(f.Name, i), func(t *testing.T) {
			t.Parallel()
			require.Empty(t, f.Refuse([]byte(history(f.Name, "", "", "", "")), strict.Rules{Answers: 1, Strictest: true}))
			codec := codecs[f.Name]
			s := codec.NewStream(&middleware.Request{}, nil)
			args := 0
			for _, frame := range f.Frames(a) {
				_, err := s.Write([]byte(frame.Text))
				require.NoError(t, err)
				if frame.Args {
					args++
				}
			}
			require.NotZero(t, args)
			streamed, err := s.Close()
			require.NoError(t, err)
			whole, err := codec.DecodeResponse(&middleware.Request{}, []byte(f.Whole(a)))
			require.NoError(t, err)
			for _, r := range []*middleware.Response{streamed, whole} {
				require.Equal(t, a.Text, r.Message.Text())
				require.Equal(t, middleware.PartReasoning, r.Message.Parts[0].Kind)
				require.NotZero(t, r.Usage.InputTokens)
				require.Len(t, r.Message.ToolCalls, len(a.Calls))
				for i, c := range a.Calls {
					require.Equal(t, c.Name, r.Message.ToolCalls[i].Name)
					require.JSONEq(t, c.Arguments, r.Message.ToolCalls[i].Arguments)
				}
			}
		})
	}
}

func TestExtends(t *testing.T) {
	t.Parallel()
	const client = `{"messages": [{"a":[1]} ], "x": 1}`
	for request, want := range map[string]bool{
		client: true,
		`{"messages": [{"a":[1]},{"b":2} ], "x": 1}`: true,
		`{"messages": [{"b":2},{"a":[1]} ], "x": 1}`: false,
		`{"messages": [{"a":[1]} ], "x": 1,"y":2}`:   false,
		`{"messages":[{"a":[1]},{"b":2} ], "x": 1}`:  false,
	} {
		require.Equal(t, want, strict.Chat.Extends([]byte(client), []byte(request)), request)
	}
	require.True(t, strict.Responses.Extends([]byte(`{"input":"Hi.","x":1}`), []byte(`{"input":[{"role":"user","content":"Hi."},{}],"x":1}`)))
	require.False(t, strict.Responses.Extends([]byte(`{"input":"Hi.","x":1}`), []byte(`{"input":"Hi.","x":2}`)))
}
