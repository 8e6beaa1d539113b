package simulate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/test/strict"
)

// format is a wire format: how clients ask in it, and how they read the answers.
type format struct {
	strict.Format
	stream, whole string // the paths
	request       string // a body, with %q for the prompt and %t for whether it streams
	read          func(a *answer, event, data string)
}

// schema is the schema of the one tool, read_file.
const schema = `{"type":"object","properties":{"file_path":{"type":"string"},"lines":{"type":"integer"}},"required":["file_path"],"additionalProperties":false}`

var formats = []format{
	{strict.Chat, "/v1/chat/completions", "/v1/chat/completions",
		`{"model":"m","stream":%[2]t,"messages":[{"role":"user","content":%[1]q}],"tools":[{"type":"function","function":{"name":"read_file","parameters":` + schema + `}}]}`, readChat},
	{strict.Anthropic, "/v1/messages", "/v1/messages",
		`{"model":"m","max_tokens":99,"stream":%[2]t,"messages":[{"role":"user","content":%[1]q}],"tools":[{"name":"read_file","input_schema":` + schema + `}]}`, readMessages},
	{strict.Responses, "/v1/responses", "/v1/responses",
		`{"model":"m","stream":%[2]t,"store":false,"input":[{"role":"user","content":%[1]q}],"tools":[{"type":"function","name":"read_file","parameters":` + schema + `}]}`, readResponses},
	{strict.Gemini, "/v1beta/models/m:streamGenerateContent?alt=sse", "/v1beta/models/m:generateContent",
		`{"contents":[{"role":"user","parts":[{"text":%[1]q}]}],"tools":[{"functionDeclarations":[{"name":"read_file","parametersJsonSchema":` + schema + `}]}]}`, readGemini},
	{strict.Ollama, "/api/chat", "/api/chat",
		`{"model":"m","stream":%[2]t,"messages":[{"role":"user","content":%[1]q}],"tools":[{"type":"function","function":{"name":"read_file","parameters":` + schema + `}}]}`, readOllama},
}

// body returns a request.
func (f format) body(prompt string, stream bool) string {
	if f.Name == strict.Gemini.Name {
		return fmt.Sprintf(f.request, prompt)
	}
	return fmt.Sprintf(f.request, prompt, stream)
}

// answer is what a client reads from a response.
type answer struct {
	text     string
	calls    []strict.Call
	finished bool   // the answer said that it is complete
	failed   bool   // it is an error in the form of its format
	broken   string // why it cannot be read
	open     map[int]*strict.Call
}

// valid reports whether a call obeys the schema. It decides that by itself, so that it does not
// repeat an error of the gateway's evaluator.
func valid(c strict.Call) bool {
	var members map[string]json.RawMessage
	if c.Name != "read_file" || json.Unmarshal([]byte(c.Arguments), &members) != nil {
		return false
	}
	var path string
	var lines int64
	for k, v := range members {
		switch {
		case k == "file_path" && string(v) != "null" && json.Unmarshal(v, &path) == nil:
		case k == "lines" && string(v) != "null" && json.Unmarshal(v, &lines) == nil:
		default:
			return false
		}
	}
	return members["file_path"] != nil
}

// equal reports whether two lists of calls are the same, but for the spelling of their arguments.
func equal(a, b []strict.Call) bool {
	return slices.EqualFunc(a, b, func(x, y strict.Call) bool {
		return x.Name == y.Name && canonical(x.Arguments) == canonical(y.Arguments)
	})
}

func canonical(arguments string) string {
	var v any
	if json.Unmarshal([]byte(arguments), &v) != nil {
		return arguments
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// decode reads a whole body or a stream.
func (f format) decode(stream bool, body string) *answer {
	a := &answer{open: map[int]*strict.Call{}}
	switch {
	case !stream:
		f.read(a, "", body)
	case f.Name == strict.Ollama.Name:
		for line := range strings.Lines(body) {
			if strings.TrimSpace(line) != "" {
				f.read(a, "", line)
			}
		}
	default:
		for block := range strings.SplitSeq(strings.ReplaceAll(body, "\r\n", "\n"), "\n\n") {
			var event string
			var data []string
			for line := range strings.SplitSeq(block, "\n") {
				if v, ok := strings.CutPrefix(line, "data:"); ok {
					data = append(data, strings.TrimPrefix(v, " "))
				} else if v, ok := strings.CutPrefix(line, "event:"); ok {
					event = strings.TrimPrefix(v, " ")
				}
			}
			if data != nil {
				f.read(a, event, strings.Join(data, "\n"))
			}
		}
	}
	for _, i := range slices.Sorted(maps.Keys(a.open)) {
		a.calls = append(a.calls, *a.open[i])
	}
	return a
}

// into decodes data, or notes that it cannot be read.
func (a *answer) into(data string, v any) bool {
	if err := json.Unmarshal([]byte(data), v); err != nil {
		a.broken = err.Error()
		return false
	}
	return true
}

// call returns the call of an index that is being read.
func (a *answer) call(index int) *strict.Call {
	if a.open[index] == nil {
		a.open[index] = &strict.Call{}
	}
	return a.open[index]
}

func isThere(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" }

func readChat(a *answer, _, data string) {
	if data == "[DONE]" {
		a.finished = true
		return
	}
	type call struct {
		Index    int
		Function struct{ Name, Arguments string }
	}
	var v struct {
		Object  string
		Error   json.RawMessage
		Choices []struct {
			Finish         string `json:"finish_reason"`
			Message, Delta struct {
				Content   string
				ToolCalls []call `json:"tool_calls"`
			}
		}
	}
	if !a.into(data, &v) {
		return
	}
	a.failed = a.failed || isThere(v.Error)
	for _, c := range v.Choices {
		a.text += c.Message.Content + c.Delta.Content
		for i, t := range c.Message.ToolCalls {
			*a.call(i) = strict.Call{Name: t.Function.Name, Arguments: t.Function.Arguments}
		}
		for _, t := range c.Delta.ToolCalls {
			a.call(t.Index).Name += t.Function.Name
			a.call(t.Index).Arguments += t.Function.Arguments
		}
		a.finished = a.finished || v.Object == "chat.completion" || c.Finish != "" // [DONE] may be lost behind it
	}
}

func readMessages(a *answer, _, data string) {
	type block struct {
		Type, Text, Name string
		Input            json.RawMessage
	}
	var v struct {
		Type    string
		Error   json.RawMessage
		Content []block
		Index   int
		Block   block `json:"content_block"`
		Delta   struct {
			Type, Text string
			Partial    string `json:"partial_json"`
		}
	}
	if !a.into(data, &v) {
		return
	}
	switch v.Type {
	case "error":
		a.failed = isThere(v.Error)
	case "message", "message_stop":
		a.finished = true
	case "content_block_start":
		if a.text += v.Block.Text; v.Block.Type == "tool_use" {
			a.call(v.Index).Name = v.Block.Name
		}
	case "content_block_delta":
		if a.text += v.Delta.Text; v.Delta.Type == "input_json_delta" {
			a.call(v.Index).Arguments += v.Delta.Partial
		}
	}
	for i, b := range v.Content {
		if a.text += b.Text; b.Type == "tool_use" {
			*a.call(i) = strict.Call{Name: b.Name, Arguments: string(b.Input)}
		}
	}
}

func readResponses(a *answer, _, data string) {
	type item struct {
		Type, Name, Arguments string
		Content               []struct{ Text string }
	}
	type response struct {
		Object, Status string
		Error          json.RawMessage
		Output         []item
	}
	var v struct {
		Type     string
		Delta    json.RawMessage
		Response response
		Item     item
		Index    int `json:"output_index"`
		response
	}
	if !a.into(data, &v) {
		return
	}
	output := func(r response) {
		for i, it := range r.Output {
			if it.Type == "function_call" {
				*a.call(i) = strict.Call{Name: it.Name, Arguments: it.Arguments}
			}
			for _, c := range it.Content {
				a.text += c.Text
			}
		}
		a.finished = r.Status == "completed"
	}
	switch v.Type {
	case "": // whole
		a.failed = isThere(v.Error)
		output(v.response)
	case "response.failed", "error":
		a.failed = true
	case "response.completed":
		a.text = ""
		output(v.Response)
	case "response.output_text.delta":
		var s string
		_ = json.Unmarshal(v.Delta, &s)
		a.text += s
	case "response.output_item.done":
		if v.Item.Type == "function_call" {
			*a.call(v.Index) = strict.Call{Name: v.Item.Name, Arguments: v.Item.Arguments}
		}
	}
}

func readGemini(a *answer, _, data string) {
	var v struct {
		Error      json.RawMessage
		Candidates []struct {
			Content struct {
				Parts []struct {
					Text    string
					Thought bool
					Call    *struct {
						Name string
						Args json.RawMessage
					} `json:"functionCall"`
				}
			}
			FinishReason string
		}
	}
	if !a.into(data, &v) {
		return
	}
	a.failed = a.failed || isThere(v.Error)
	for _, c := range v.Candidates {
		for _, p := range c.Content.Parts {
			if p.Call != nil {
				*a.call(len(a.open)) = strict.Call{Name: p.Call.Name, Arguments: string(p.Call.Args)}
			} else if !p.Thought {
				a.text += p.Text
			}
		}
		a.finished = a.finished || c.FinishReason != ""
	}
}

func readOllama(a *answer, _, data string) {
	var v struct {
		Error   json.RawMessage
		Done    bool
		Message struct {
			Content   string
			ToolCalls []struct {
				Function struct {
					Name      string
					Arguments json.RawMessage
				}
			} `json:"tool_calls"`
		}
	}
	if !a.into(data, &v) {
		return
	}
	a.failed = a.failed || isThere(v.Error)
	a.text += v.Message.Content
	for _, t := range v.Message.ToolCalls {
		*a.call(len(a.open)) = strict.Call{Name: t.Function.Name, Arguments: string(t.Function.Arguments)}
	}
	a.finished = a.finished || v.Done
}
