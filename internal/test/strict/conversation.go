package strict

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Conversation is a stored conversation of the Responses API, which requests name in
// conversation. OpenAI's guide on conversation state says that the input and the output of each
// response are added to it, so a request must send new items only. The zero value is an empty
// conversation. It must not be used concurrently.
type Conversation struct{ items []json.RawMessage }

// ConversationID returns the id of the conversation that a request names, "" for none.
func ConversationID(body []byte) string {
	var req struct{ Conversation json.RawMessage }
	var object struct{ ID string }
	if json.Unmarshal(body, &req) != nil {
		return ""
	}
	if json.Unmarshal(req.Conversation, &object) != nil {
		_ = json.Unmarshal(req.Conversation, &object.ID) // the short form; anything else is none
	}
	return object.ID
}

// Refuse returns the provider's words for why it refuses a request in the conversation, "" if it
// accepts it. It refuses an item that the conversation has already, as in
// openai/openai-agents-python#1789 and openai/openai-agents-js#425. The real API does so for an
// item with an id; an item without one would be in the conversation twice from then on.
func (c *Conversation) Refuse(body []byte, r Rules) string {
	input := conversationInput(body)
	for i, item := range input {
		at := slices.IndexFunc(c.items, func(stored json.RawMessage) bool { return same(stored, item) })
		if at < 0 {
			continue
		}
		var it responsesItem
		if json.Unmarshal(item, &it) == nil && it.ID != "" {
			return fmt.Sprintf("Duplicate item found with id %s. Remove duplicate items from your input and try again.", it.ID)
		}
		return fmt.Sprintf("input[%d]: the conversation has this item already: the items of a request are added to it.", i)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return err.Error()
	}
	members["input"] = json.RawMessage(text(slices.Concat(c.items, input)))
	return Responses.Refuse([]byte(text(members)), r)
}

// Add adds what a request sent, and the answer to it.
func (c *Conversation) Add(body []byte, a Answer) {
	c.items = append(c.items, conversationInput(body)...)
	for _, item := range responsesOutput(a) {
		c.items = append(c.items, json.RawMessage(text(item)))
	}
}

// conversationInput returns the items of a request. A text is a user message.
func conversationInput(body []byte) (items []json.RawMessage) {
	var req struct{ Input json.RawMessage }
	if json.Unmarshal(body, &req) != nil || json.Unmarshal(req.Input, &items) == nil {
		return items
	}
	return []json.RawMessage{json.RawMessage(text(m{"role": "user", "content": req.Input}))}
}

// same reports whether two items have one id, or are equal.
func same(stored, item json.RawMessage) bool {
	var a, b responsesItem
	if json.Unmarshal(stored, &a) == nil && json.Unmarshal(item, &b) == nil && b.ID != "" {
		return a.ID == b.ID
	}
	var x, y any
	return json.Unmarshal(stored, &x) == nil && json.Unmarshal(item, &y) == nil && reflect.DeepEqual(x, y)
}
