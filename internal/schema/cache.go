package schema

import (
	"container/list"
	"sync"
)

// Cache keeps what was made from schema texts, by their content, so that a
// tool whose schema changes under the same name is never validated by the old
// one. What it holds takes at most a number of bytes, by the estimates of make;
// the least recently used values go first. It is safe for concurrent use: a
// value that many ask for at once is made once.
type Cache[T any] struct {
	limit int
	make  func(raw []byte) (value T, bytes int)

	mu      sync.Mutex
	entries map[string]*list.Element // of *entry[T]
	recent  list.List
	held    int // bytes of all entries
}

// entry is one text and what was made of it. It is in the cache while it is being
// made, so that others wait for it instead of making it too. Its bytes count from then
// on.
type entry[T any] struct {
	text  string
	once  sync.Once
	value T
	bytes int // 0: not made yet
}

// NewCache returns an empty cache of at most limit bytes. make returns a value
// and the bytes that it takes, and must not panic. A value that is larger than
// limit is not kept.
func NewCache[T any](limit int, make func(raw []byte) (T, int)) *Cache[T] {
	return &Cache[T]{limit: limit, make: make, entries: map[string]*list.Element{}}
}

// Get returns what make returns for raw. It does not keep raw.
func (c *Cache[T]) Get(raw []byte) T {
	e := c.entry(raw)
	e.once.Do(func() {
		value, bytes := c.make([]byte(e.text))
		e.value = value
		c.made(e, bytes)
	})
	return e.value
}

// made counts the bytes of an entry, and lets go of others for it. An entry that is
// larger than the limit goes itself, last of all.
func (c *Cache[T]) made(e *entry[T], bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.entries[e.text]; !ok || el.Value != e {
		return // let go of in the meantime
	}
	e.bytes = bytes
	c.held += bytes
	for c.held > c.limit {
		oldest := c.recent.Remove(c.recent.Back()).(*entry[T])
		delete(c.entries, oldest.text)
		c.held -= oldest.bytes
	}
}

// entry returns the entry of raw, which it makes if needed, as the most recently used one.
func (c *Cache[T]) entry(raw []byte) *entry[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.entries[string(raw)]; ok {
		c.recent.MoveToFront(el)
		return el.Value.(*entry[T])
	}
	e := &entry[T]{text: string(raw)}
	c.entries[e.text] = c.recent.PushFront(e)
	return e
}
