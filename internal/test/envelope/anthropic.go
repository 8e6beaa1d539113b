package envelope

import "strconv"

// anthropicBlock is a content block, of which clients read no more than a call has.
type anthropicBlock struct {
	Type  text `json:"type"`
	Name  text `json:"name"`
	Input text `json:"input"`
}

// anthropicMessage is a message with its blocks.
type anthropicMessage struct {
	Content []anthropicBlock `json:"content"`
}

// calls returns the blocks that are calls.
func (m anthropicMessage) calls() (out []Call) {
	for _, b := range m.Content {
		if b.Type == "tool_use" {
			out = append(out, Call{string(b.Name), string(b.Input)})
		}
	}
	return out
}

// anthropicEvent has what the events of all types hold.
type anthropicEvent struct {
	Type    text             `json:"type"`
	Index   text             `json:"index"`
	Content []anthropicBlock `json:"content"` // of an answer that is not a stream
	Message anthropicMessage `json:"message"`
	Block   anthropicBlock   `json:"content_block"`
	Delta   struct {
		PartialJSON text `json:"partial_json"`
	} `json:"delta"`
}

// anthropicWhole reads an answer that is not a stream.
func anthropicWhole(events []event) []Call {
	return whole(events, anthropicMessage.calls)
}

// anthropicStyle is how a client puts the blocks of a stream together.
type anthropicStyle struct {
	names bool // an event is what its `event:` line says, not its type
	stops bool // a call is complete at its content_block_stop; otherwise at the end
	find  func(blocks []anthropicBuilding, index text) int
}

// anthropicStyles are the ways of clients, read from their sources:
// anthropic-python and anthropic-node append at the start of a block and find it
// by its place; anthropic-sdk-go gives a delta to the last block; the Vercel AI
// SDK keeps blocks by their index and runs a call at its stop; LangChain merges by
// index.
var anthropicStyles = map[string]anthropicStyle{
	"by index":           {find: blockByIndex},
	"by index, at stops": {find: blockByIndex, stops: true},
	"by place":           {find: blockByPlace},
	"by place, of names": {find: blockByPlace, names: true},
	"last":               {find: func(blocks []anthropicBuilding, _ text) int { return len(blocks) - 1 }},
}

// anthropicBuilding is a block of a stream as a client has it so far.
type anthropicBuilding struct {
	index text // as its start says
	block anthropicBlock
	json  text // the partial JSON so far; it replaces the input
	ended bool
}

// blockByIndex returns the last block that started with that index, -1 for none.
func blockByIndex(blocks []anthropicBuilding, index text) int {
	for i := len(blocks) - 1; i >= 0; i-- {
		if blocks[i].index == index {
			return i
		}
	}
	return -1
}

// blockByPlace counts from the end where the index is negative, as JavaScript's
// at and Python's lists do.
func blockByPlace(blocks []anthropicBuilding, index text) int {
	i, err := strconv.Atoi(string(index))
	if i < 0 {
		i += len(blocks)
	}
	if err != nil || i < 0 || i >= len(blocks) {
		return -1
	}
	return i
}

// anthropicDeltas reads a stream in that style. Deltas take the place of the input that
// is in the start of a block, as all clients have it: the provider sends {} there.
func anthropicDeltas(events []event, style anthropicStyle) (calls []Call) {
	var blocks []anthropicBuilding
	for _, e := range events {
		v, ok := decode[anthropicEvent](e.data)
		if !ok {
			continue
		}
		kind := string(v.Type)
		if style.names {
			kind = e.name
		}
		switch kind {
		case "message_start":
			calls = append(calls, v.Message.calls()...)
		case "content_block_start":
			blocks = append(blocks, anthropicBuilding{index: v.Index, block: v.Block})
		case "content_block_delta":
			if i := style.find(blocks, v.Index); i >= 0 {
				blocks[i].json += v.Delta.PartialJSON
			}
		case "content_block_stop":
			if i := style.find(blocks, v.Index); i >= 0 {
				blocks[i].ended = true
			}
		}
	}
	for _, b := range blocks {
		if b.block.Type != "tool_use" || style.stops && !b.ended {
			continue
		}
		if b.json != "" {
			b.block.Input = b.json
		}
		calls = append(calls, anthropicMessage{[]anthropicBlock{b.block}}.calls()...)
	}
	return calls
}
