package schema

import (
	"container/list"
	"sync"
)

// Cache keeps what was made from schema texts, by their content, so that a
// tool whose schema changes under the same name is never judged by the old
// one. It holds at most size values, the least recently used go first, and is
// safe for concurrent use: a value that many ask for at once is made once.
type Cache[T any] struct {
	size int
	make func(raw []byte) T

	mu      sync.Mutex
	entries map[string]*list.Element // of *entry[T]
	recent  list.List
}

type entry[T any] struct {
	text  string
	once  sync.Once
	value T
}

// NewCache returns an empty cache for size values, at least one, that make
// makes. make must not panic.
func NewCache[T any](size int, make func(raw []byte) T) *Cache[T] {
	return &Cache[T]{size: max(size, 1), make: make, entries: map[string]*list.Element{}}
}

// Get returns what make returns for raw. It does not keep raw.
func (c *Cache[T]) Get(raw []byte) T {
	e := c.entry(raw)
	e.once.Do(func() { e.value = c.make([]byte(e.text)) })
	return e.value
}

func (c *Cache[T]) entry(raw []byte) *entry[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.entries[string(raw)]; ok {
		c.recent.MoveToFront(el)
		return el.Value.(*entry[T])
	}
	e := &entry[T]{text: string(raw)}
	c.entries[e.text] = c.recent.PushFront(e)
	if c.recent.Len() > c.size {
		oldest := c.recent.Remove(c.recent.Back()).(*entry[T])
		delete(c.entries, oldest.text)
	}
	return e
}
