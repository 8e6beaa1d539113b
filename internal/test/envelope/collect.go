package envelope

import (
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
			out := map[string]collector{}
			for name, style := range chatStyles {
				out[name] = func(events []event) []Call { return chatDeltas(events, style) }
			}
			return out
		}
		return map[string]collector{"first choice": chatWhole}
	case "anthropic":
		if stream {
			out := map[string]collector{}
			for name, style := range anthropicStyles {
				out[name] = func(events []event) []Call { return anthropicDeltas(events, style) }
			}
			return out
		}
		return map[string]collector{"content": anthropicWhole}
	case "responses":
		if stream {
			return map[string]collector{"items": responsesItems, "responses": responsesOutputs, "arguments": responsesArguments, "deltas": responsesDeltas, "deltas by place": responsesPlaces}
		}
		return map[string]collector{"output": responsesUnary}
	case "gemini":
		return map[string]collector{"parts": geminiParts}
	}
	return map[string]collector{"messages": ollamaMessages}
}

// whole reads an answer that is not a stream. What a typed client cannot decode counts as
// far as it was decoded: some programs do not look at the error.
func whole[T any](events []event, calls func(T) []Call) []Call {
	if len(events) == 0 {
		return nil
	}
	v, _ := decode[T](events[0].data)
	return calls(v)
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
	calls[i].add(name, arguments)
	return calls
}

// add adds a piece. A later name counts; null says nothing.
func (b *building) add(name, arguments text) {
	if name != "" && name != "null" {
		b.call.Name = string(name)
	}
	if arguments != "null" {
		b.call.Arguments += string(arguments)
	}
}

// built returns the calls that were put together, in the order in which they began.
func built(calls []building) (out []Call) {
	for _, b := range calls {
		out = append(out, b.call)
	}
	return out
}

// function is the name and the arguments of a call, in the words of two formats.
type function struct {
	Name      text `json:"name"`
	Arguments text `json:"arguments"`
}

// responsesItemJSON is an item of the output.
type responsesItemJSON struct {
	ID        text `json:"id"`
	Type      text `json:"type"`
	Name      text `json:"name"`
	Arguments text `json:"arguments"`
}

// responsesBody is a response object.
type responsesBody struct {
	Output []responsesItemJSON `json:"output"`
}

// calls returns the items that are calls of functions.
func (r responsesBody) calls() (out []Call) {
	for _, item := range r.Output {
		if item.Type == "function_call" {
			out = append(out, Call{string(item.Name), string(item.Arguments)})
		}
	}
	return out
}

// responsesEvent has what the events of all types hold. A client looks at the copies of
// a call that it needs: hence the several collectors below.
type responsesEvent struct {
	Type          text              `json:"type"`
	Item          responsesItemJSON `json:"item"`
	ItemID        text              `json:"item_id"`
	Arguments     text              `json:"arguments"`
	Delta         text              `json:"delta"`
	Response      responsesBody     `json:"response"`
	responsesBody                   // of an answer that is not a stream
}

// responsesUnary reads an answer that is not a stream.
func responsesUnary(events []event) []Call {
	return whole(events, responsesBody.calls)
}

// eachResponsesEvent calls f for each event that a client can read.
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

// responsesPlaces is responsesDeltas for a client that goes by the output_index.
func responsesPlaces(events []event) []Call {
	for i, e := range events {
		n := parse(e.data)
		if index := n.get(`"output_index"`); index != nil {
			n.members = append(n.members, member{`"item_id"`, index})
			if item := n.get(`"item"`); item != nil && item.open == '{' {
				item.members = append(item.members, member{`"id"`, index})
			}
		}
		events[i].data = n.String()
	}
	return responsesDeltas(events)
}

// responsesPieces joins arguments. A program runs them once the call or the
// answer has ended.
func responsesPieces(events []event, kind text, piece func(responsesEvent) text) []Call {
	var calls []building
	ended, done := false, map[text]bool{}
	names := map[text]text{}
	eachResponsesEvent(events, func(v responsesEvent) {
		ended = ended || v.Type == "response.completed"
		if v.Type == "response.output_item.done" {
			done[v.Item.ID] = true
		}
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
	return built(slices.DeleteFunc(calls, func(b building) bool { return !ended && !done[b.key] }))
}

// geminiBody is an answer, or a chunk of one.
type geminiBody struct {
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
}

// geminiParts reads the first candidate of each chunk.
func geminiParts(events []event) (calls []Call) {
	for _, e := range events {
		v, ok := decode[geminiBody](e.data)
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

// ollamaBody is an answer, or a line of one.
type ollamaBody struct {
	Message struct {
		ToolCalls []struct {
			Function function `json:"function"`
		} `json:"tool_calls"`
	} `json:"message"`
}

// ollamaMessages takes the calls of every line: those come whole.
func ollamaMessages(events []event) (calls []Call) {
	for _, e := range events {
		v, ok := decode[ollamaBody](e.data)
		if !ok {
			continue
		}
		for _, c := range v.Message.ToolCalls {
			calls = append(calls, Call{string(c.Function.Name), string(c.Function.Arguments)})
		}
	}
	return calls
}
