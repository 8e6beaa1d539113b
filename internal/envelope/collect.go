package envelope

import (
	"cmp"
	"slices"
	"strings"
)

// collector takes the calls out of the events of one answer.
type collector func([]event) []Call

// collectors returns the ways in which the clients of a format find its calls.
func collectors(format string, stream bool) map[string]collector {
	switch format {
	case "chat":
		if stream {
			return map[string]collector{"deltas": chatDeltas}
		}
		return map[string]collector{"first choice": chatWhole}
	case "anthropic":
		if stream {
			return map[string]collector{"accumulated": anthropicDeltas}
		}
		return map[string]collector{"content": anthropicWhole}
	case "responses":
		if stream {
			return map[string]collector{"items": responsesItems, "responses": responsesOutputs, "arguments": responsesArguments, "deltas": responsesDeltas}
		}
		return map[string]collector{"output": responsesUnary}
	case "gemini":
		return map[string]collector{"parts": geminiParts}
	}
	return map[string]collector{"messages": ollamaMessages}
}

// building is a call that comes in pieces.
type building struct {
	key  text
	call Call
}

// add finds the call of that key, or begins one, and adds a piece.
func add(calls []building, key text, name, arguments text) []building {
	i := slices.IndexFunc(calls, func(b building) bool { return b.key == key })
	if i < 0 {
		i, calls = len(calls), append(calls, building{key: key})
	}
	if name != "" && name != "null" {
		calls[i].call.Name = string(name)
	}
	if arguments != "null" {
		calls[i].call.Arguments += string(arguments)
	}
	return calls
}

func built(calls []building) (out []Call) {
	for _, b := range calls {
		out = append(out, b.call)
	}
	return out
}

type function struct {
	Name      text `json:"name"`
	Arguments text `json:"arguments"`
}

type chatMessage struct {
	ToolCalls []struct {
		Index    text     `json:"index"`
		Function function `json:"function"`
	} `json:"tool_calls"`
	FunctionCall *function `json:"function_call"`
}

type chatBody struct {
	Choices []struct {
		Message chatMessage `json:"message"`
		Delta   chatMessage `json:"delta"`
	} `json:"choices"`
}

// chatWhole reads the first choice of the list, as most programs do.
func chatWhole(events []event) (calls []Call) {
	body, ok := decode[chatBody](events[0].data)
	if !ok || len(body.Choices) == 0 {
		return nil
	}
	m := body.Choices[0].Message
	for _, c := range m.ToolCalls {
		calls = append(calls, Call{string(c.Function.Name), string(c.Function.Arguments)})
	}
	if f := m.FunctionCall; f != nil {
		calls = append(calls, Call{string(f.Name), string(f.Arguments)})
	}
	return calls
}

// chatDeltas reads the first choice of each chunk until [DONE]. A delta without
// an index has 0, as in a struct of Go.
func chatDeltas(events []event) []Call {
	var calls []building
	for _, e := range events {
		if e.data == "[DONE]" {
			break
		}
		body, ok := decode[chatBody](e.data)
		if !ok || len(body.Choices) == 0 {
			continue
		}
		d := body.Choices[0].Delta
		for _, c := range d.ToolCalls {
			calls = add(calls, cmp.Or(c.Index, "0"), c.Function.Name, c.Function.Arguments)
		}
		if f := d.FunctionCall; f != nil {
			calls = add(calls, "function_call", f.Name, f.Arguments)
		}
	}
	return built(calls)
}

type anthropicBlock struct {
	Type  text `json:"type"`
	Name  text `json:"name"`
	Input text `json:"input"`
}

type anthropicMessage struct {
	Content []anthropicBlock `json:"content"`
}

func (m anthropicMessage) calls() (out []Call) {
	for _, b := range m.Content {
		if b.Type == "tool_use" {
			out = append(out, Call{string(b.Name), string(b.Input)})
		}
	}
	return out
}

func anthropicWhole(events []event) []Call {
	m, _ := decode[anthropicMessage](events[0].data)
	return m.calls()
}

// anthropicDeltas accumulates as the SDKs do: the partial JSON of a block takes
// the place of its input.
func anthropicDeltas(events []event) (calls []Call) {
	var blocks []building
	inputs := map[text]text{}
	for _, e := range events {
		v, ok := decode[struct {
			Type    text             `json:"type"`
			Index   text             `json:"index"`
			Message anthropicMessage `json:"message"`
			Block   anthropicBlock   `json:"content_block"`
			Delta   struct {
				PartialJSON text `json:"partial_json"`
			} `json:"delta"`
		}](e.data)
		if !ok {
			continue
		}
		switch v.Type {
		case "message_start":
			calls = append(calls, v.Message.calls()...)
		case "content_block_start":
			if v.Block.Type == "tool_use" {
				blocks, inputs[v.Index] = add(blocks, v.Index, v.Block.Name, ""), v.Block.Input
			}
		case "content_block_delta":
			if _, open := inputs[v.Index]; open {
				blocks = add(blocks, v.Index, "", v.Delta.PartialJSON)
			}
		}
	}
	for _, b := range blocks {
		if b.call.Arguments == "" {
			b.call.Arguments = string(inputs[b.key])
		}
		calls = append(calls, b.call)
	}
	return calls
}

type responsesItemJSON struct {
	ID        text `json:"id"`
	Type      text `json:"type"`
	Name      text `json:"name"`
	Arguments text `json:"arguments"`
}

type responsesBody struct {
	Output []responsesItemJSON `json:"output"`
}

func (r responsesBody) calls() (out []Call) {
	for _, item := range r.Output {
		if item.Type == "function_call" {
			out = append(out, Call{string(item.Name), string(item.Arguments)})
		}
	}
	return out
}

type responsesEvent struct {
	Type      text              `json:"type"`
	Item      responsesItemJSON `json:"item"`
	ItemID    text              `json:"item_id"`
	Arguments text              `json:"arguments"`
	Delta     text              `json:"delta"`
	Response  responsesBody     `json:"response"`
}

func responsesUnary(events []event) []Call {
	r, _ := decode[responsesBody](events[0].data)
	return r.calls()
}

func eachResponsesEvent(events []event, f func(responsesEvent)) {
	for _, e := range events {
		if v, ok := decode[responsesEvent](e.data); ok {
			f(v)
		}
	}
}

// responsesItems takes the finished items.
func responsesItems(events []event) (calls []Call) {
	eachResponsesEvent(events, func(v responsesEvent) {
		if v.Type == "response.output_item.done" {
			calls = append(calls, responsesBody{[]responsesItemJSON{v.Item}}.calls()...)
		}
	})
	return calls
}

// responsesOutputs takes the output of every response object.
func responsesOutputs(events []event) (calls []Call) {
	eachResponsesEvent(events, func(v responsesEvent) { calls = append(calls, v.Response.calls()...) })
	return calls
}

// responsesArguments takes the finished arguments, with the name from the
// beginning of the item.
func responsesArguments(events []event) []Call {
	return responsesPieces(events, "response.function_call_arguments.done", func(v responsesEvent) text { return v.Arguments })
}

// responsesDeltas takes the deltas, with the name from the beginning of the item.
func responsesDeltas(events []event) []Call {
	return responsesPieces(events, "response.function_call_arguments.delta", func(v responsesEvent) text { return v.Delta })
}

func responsesPieces(events []event, kind text, piece func(responsesEvent) text) []Call {
	var calls []building
	names := map[text]text{}
	eachResponsesEvent(events, func(v responsesEvent) {
		switch {
		case v.Type == "response.output_item.added" && v.Item.Type == "function_call":
			names[v.Item.ID] = v.Item.Name
		case v.Type != kind:
		case strings.HasSuffix(string(kind), ".done"): // not a piece
			calls = slices.DeleteFunc(calls, func(b building) bool { return b.key == v.ItemID })
			fallthrough
		default:
			calls = add(calls, v.ItemID, names[v.ItemID], piece(v))
		}
	})
	return built(calls)
}

// geminiParts reads the first candidate of each chunk.
func geminiParts(events []event) (calls []Call) {
	for _, e := range events {
		v, ok := decode[struct {
			Candidates []struct {
				Content struct {
					Parts []struct {
						FunctionCall *struct {
							Name text `json:"name"`
							Args text `json:"args"`
						} `json:"functionCall"`
					} `json:"parts"`
				} `json:"content"`
			} `json:"candidates"`
		}](e.data)
		if !ok || len(v.Candidates) == 0 {
			continue
		}
		for _, p := range v.Candidates[0].Content.Parts {
			if f := p.FunctionCall; f != nil {
				calls = append(calls, Call{string(f.Name), string(f.Args)})
			}
		}
	}
	return calls
}

func ollamaMessages(events []event) (calls []Call) {
	for _, e := range events {
		v, ok := decode[struct {
			Message struct {
				ToolCalls []struct {
					Function function `json:"function"`
				} `json:"tool_calls"`
			} `json:"message"`
		}](e.data)
		if !ok {
			continue
		}
		for _, c := range v.Message.ToolCalls {
			calls = append(calls, Call{string(c.Function.Name), string(c.Function.Arguments)})
		}
	}
	return calls
}
