package gemini

import (
	"slices"

	"github.com/toolmend/toolmend/middleware"
)

// adoptMessages gives messages that were stored their handles again: those of
// the same Native text in was, in order. What is not there stays as it is.
func adoptMessages(messages, was []middleware.Message) []middleware.Message {
	return adopt(messages, was, func(m *middleware.Message) **middleware.Native { return &m.Native })
}

// adoptTools is adoptMessages for tools.
func adoptTools(tools, was []middleware.Tool) []middleware.Tool {
	return adopt(tools, was, func(t *middleware.Tool) **middleware.Native { return &t.Native })
}

func adopt[T any](items, was []T, native func(*T) **middleware.Native) []T {
	known := map[string][]*middleware.Native{}
	for i := range was {
		n := *native(&was[i])
		known[n.Raw] = append(known[n.Raw], n)
	}
	out := slices.Clone(items)
	for i := range out {
		n := native(&out[i])
		if *n == nil || (*n).Dialect != dialect || (*n).Ref != nil {
			continue
		}
		if same := known[(*n).Raw]; len(same) > 0 {
			*n, known[(*n).Raw] = same[0], same[1:]
		}
	}
	return out
}
