package tracing

import (
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Bounds of labels. The names of models come from clients and providers.
const (
	maxKept    = 256  // sets
	maxKeptKey = 1024 // bytes of the texts of one
)

// labels keeps sets of attributes, because to make one takes longer than to record
// a value with it. It is safe for concurrent use.
type labels struct {
	mu   sync.RWMutex
	kept map[labelKey]*labelSet
}

// labelKey is what a set is made of: two texts, and one more attribute.
type labelKey struct{ first, second, name, value string }

// labelSet is a set of attributes as the instruments take it.
type labelSet struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

// of returns the set of k. attributes makes it.
func (l *labels) of(k labelKey, attributes func(labelKey) []attribute.KeyValue) *labelSet {
	l.mu.RLock()
	s := l.kept[k]
	l.mu.RUnlock()
	if s != nil {
		return s
	}
	o := set(attributes(k))
	s = &labelSet{[]metric.AddOption{o}, []metric.RecordOption{o}}
	if len(k.first)+len(k.second)+len(k.value) > maxKeptKey {
		return s
	}
	// The texts may be parts of whole requests.
	k.first, k.second, k.value = strings.Clone(k.first), strings.Clone(k.second), strings.Clone(k.value)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil {
		l.kept = map[labelKey]*labelSet{}
	}
	if len(l.kept) < maxKept {
		l.kept[k] = s
	}
	return s
}
