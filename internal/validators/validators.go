// Package validators lets a loop see which validators are in its chain.
package validators

import (
	"context"
	"sync"
)

// Seen is the validators that a model step went through. It is safe for
// concurrent use.
type Seen struct {
	mu   sync.Mutex
	list []any
}

type key struct{}

// Watch returns a context under which validators report themselves.
func Watch(ctx context.Context) (context.Context, *Seen) {
	s := &Seen{}
	return context.WithValue(ctx, key{}, s), s
}

// Report says that v, a pointer, validates the calls of the step that ctx
// belongs to.
func Report(ctx context.Context, v any) {
	if s, ok := ctx.Value(key{}).(*Seen); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.list = append(s.list, v)
	}
}

// Other reports whether validators reported themselves, and v is not one of them.
func (s *Seen) Other(v any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seen := range s.list {
		if seen == v {
			return false
		}
	}
	return len(s.list) > 0
}
