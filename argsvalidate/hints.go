package argsvalidate

import (
	"sync"

	"github.com/toolmend/toolmend/internal/schema"
)

// Bounds of the suggestions in all texts of one step together.
const (
	maxToolHints = 20      // distinct unknown tools
	maxKeyHints  = 200     // unknown keys
	maxComparing = 1 << 21 // bytes of unknown keys compared with bytes of declared ones
)

// hints finds the names that a model probably meant. The texts of one step
// share one, so that a suggestion is looked for in the first few texts only:
// the model reads no more. It is safe for concurrent use: a Feedback function
// that did not return in time may still run.
type hints struct {
	mu       sync.Mutex
	tools    *schema.ToolNames // nil: not read yet
	meant    map[string]string // by unknown tool
	keys     int               // how many keys were looked for
	compared int               // work done for keys
}

// tool returns the available tool that name probably stands for, "" for none.
func (h *hints) tool(name string, available []string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if meant, known := h.meant[name]; known || len(h.meant) == maxToolHints {
		return meant
	}
	if h.tools == nil {
		h.tools, h.meant = schema.NewToolNames(available), map[string]string{}
	}
	h.meant[name] = h.tools.Suggest(name)
	return h.meant[name]
}

// key returns the declared key that key probably stands for, "" for none.
func (h *hints) key(key string, declared []string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keys++; h.keys > maxKeyHints {
		return ""
	}
	left := maxComparing - h.compared
	meant := schema.SuggestWithin(key, declared, &left)
	h.compared = maxComparing - left
	return meant
}
