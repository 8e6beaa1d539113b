package tracing

import (
	"strings"
	"sync"
)

// Bounds of labels. The names of models come from clients and providers.
const (
	maxKept    = 256  // keys
	maxKeptKey = 1024 // bytes of the texts of one
)

// labels keeps sets of attributes, because to make one takes longer than to record
// a value with it. It is safe for concurrent use.
type labels[S any] struct {
	mu   sync.RWMutex
	kept map[labelKey]S
}

// labelKey is what sets are made of: two texts, and the error.type.
type labelKey struct{ first, second, kind string }

// of returns the sets of k. sets makes them.
func (l *labels[S]) of(k labelKey, sets func(labelKey) S) S {
	l.mu.RLock()
	s, ok := l.kept[k]
	l.mu.RUnlock()
	if ok {
		return s
	}
	// The texts may be parts of whole requests.
	k = labelKey{strings.Clone(k.first), strings.Clone(k.second), strings.Clone(k.kind)}
	s = sets(k)
	if len(k.first)+len(k.second)+len(k.kind) > maxKeptKey {
		return s
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil {
		l.kept = map[labelKey]S{}
	}
	if len(l.kept) < maxKept {
		l.kept[k] = s
	}
	return s
}
