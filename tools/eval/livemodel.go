package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// server is a llama-server. Its native completion takes the prompt as it is
// and no grammar, so the model can write invalid calls.
type server struct {
	url   string
	model string // the name of its file
}

func newServer(ctx context.Context, url string) (*server, error) {
	s := &server{url: strings.TrimSuffix(url, "/")}
	var props struct {
		Model string `json:"model_path"`
	}
	if err := s.do(ctx, "/props", nil, &props); err != nil {
		return nil, fmt.Errorf("no model at %s (start one: llama-server -m MODEL.gguf -c 4096 -np 1): %w", url, err)
	}
	s.model = path.Base(props.Model)
	return s, nil
}

// do sends a body as JSON, or nothing, and decodes the answer.
func (s *server) do(ctx context.Context, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		return fmt.Errorf("%s: %s: %s", path, resp.Status, said)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// maxAnswer is the most tokens of an answer. The calls of the recordings that
// are asked for are shorter.
const maxAnswer = 120

// callStart is the beginning of every answer: the model must call a tool.
const callStart = "<tool_call>\n{\"name\": \""

// call asks the model once, at temperature 0. It is a middleware.ModelCall.
func (s *server) call(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
	text, err := prompt(req)
	if err != nil {
		return nil, err
	}
	body := map[string]any{
		"prompt": text, "n_predict": maxAnswer, "temperature": 0, "seed": 1, "cache_prompt": true,
		"stop": []string{"</tool_call>", "<|im_end|>", "<tool_response>"},
	}
	var answer struct {
		Content string `json:"content"`
		Read    int64  `json:"tokens_evaluated"`
		Written int64  `json:"tokens_predicted"`
	}
	if err := s.do(ctx, "/completion", body, &answer); err != nil {
		return nil, err
	}
	resp := &middleware.Response{
		Message:      middleware.Assistant("", written(answer.Content)),
		FinishReason: middleware.FinishToolCalls,
		Usage:        middleware.Usage{InputTokens: answer.Read, OutputTokens: answer.Written},
	}
	if answer.Written >= maxAnswer {
		resp.FinishReason = middleware.FinishLength
	}
	return resp, nil
}

// written reads a call as it follows callStart. In text that is not JSON the
// arguments are all between their key and the last brace.
func written(text string) middleware.ToolCall {
	var c struct {
		Name      string
		Arguments json.RawMessage
	}
	if json.Unmarshal([]byte(`{"name": "`+text), &c) == nil {
		return middleware.ToolCall{ID: "c2", Name: c.Name, Arguments: string(c.Arguments)}
	}
	name, rest, _ := strings.Cut(text, `"`)
	_, arguments, _ := strings.Cut(rest, `"arguments":`)
	arguments = strings.TrimSuffix(strings.TrimSpace(arguments), "}")
	return middleware.ToolCall{ID: "c2", Name: name, Arguments: strings.TrimSpace(arguments)}
}

// shots are two worked examples with tools of their own.
const shots = `<|im_start|>system
You answer by calling tools. Write each call as <tool_call>
{"name": NAME, "arguments": {PARAMETER: VALUE}}
</tool_call><|im_end|>
<|im_start|>user
Tools:
get_time: the time in a city
- city (string, required)
How late is it in Rome?<|im_end|>
<|im_start|>assistant
<tool_call>
{"name": "get_time", "arguments": {"city": "Rome"}}
</tool_call><|im_end|>
<|im_start|>user
Tools:
convert_money: exchange an amount
- amount (number, required)
- source (string, required)
- targets (array of string, required)
- rounded (boolean)
How much are 12.5 euros in dollars and yen?<|im_end|>
<|im_start|>assistant
<tool_call>
{"name": "convert_money", "arguments": {"amount": 12.5, "source": "EUR", "targets": ["USD", "JPY"]}}
</tool_call><|im_end|>
`

// prompt writes a request as ChatML, tools in the first user message.
func prompt(req *middleware.Request) (string, error) {
	tools, err := signatures(req.Tools)
	if err != nil {
		return "", err
	}
	tools = "Tools:\n" + tools
	var b strings.Builder
	b.WriteString(shots)
	for _, m := range req.Messages {
		switch m.Role {
		case middleware.RoleAssistant:
			fmt.Fprintf(&b, "<|im_start|>assistant\n%s%s\", \"arguments\": %s}\n</tool_call><|im_end|>\n",
				callStart, m.ToolCalls[0].Name, m.ToolCalls[0].Arguments)
		case middleware.RoleTool:
			fmt.Fprintf(&b, "<|im_start|>user\n<tool_response>\n%s\n</tool_response><|im_end|>\n", m.Text())
		default:
			fmt.Fprintf(&b, "<|im_start|>user\n%s%s<|im_end|>\n", tools, m.Text())
			tools = ""
		}
	}
	return b.String() + "<|im_start|>assistant\n" + callStart, nil
}

// signatures writes tools as lines: small models copy a JSON Schema.
func signatures(tools []middleware.Tool) (string, error) {
	var b strings.Builder
	for _, t := range tools {
		var schema struct {
			Properties map[string]struct {
				Type, Description string
				Enum              []any
				Items             struct{ Type string }
			}
			Required []string
		}
		if err := json.Unmarshal(t.Parameters, &schema); err != nil {
			return "", fmt.Errorf("%s: %w", t.Name, err)
		}
		fmt.Fprintf(&b, "%s: %s\n", t.Name, t.Description)
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			p := schema.Properties[name]
			words := p.Type
			if p.Items.Type != "" {
				words += " of " + p.Items.Type
			}
			if len(p.Enum) > 0 {
				words += fmt.Sprintf(", one of %q", p.Enum)
			}
			if slices.Contains(schema.Required, name) {
				words += ", required"
			}
			fmt.Fprintf(&b, "- %s (%s): %s\n", name, words, p.Description)
		}
	}
	return b.String(), nil
}
