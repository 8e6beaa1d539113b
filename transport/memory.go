package transport

import (
	"hash/maphash"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Bounds of what is remembered of calls that failed.
const (
	mostFailed = 1024
	failedFor  = 10 * time.Minute // longer than an SDK waits before a retry
)

// memory holds how many model calls went into client calls that failed and
// may be tried again. It keeps hashes under a seed of its own, nothing else.
type memory struct {
	seed maphash.Seed
	mu   sync.Mutex
	used map[uint64]spent
}

type spent struct {
	calls int
	until time.Time
}

func newMemory() *memory {
	return &memory{seed: maphash.MakeSeed(), used: map[uint64]spent{}}
}

func (m *memory) key(req *http.Request, body []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(m.seed)
	h.WriteString(req.Method)
	h.WriteByte(0)
	h.WriteString(req.URL.String())
	h.WriteByte(0)
	h.Write(body)
	return h.Sum64()
}

// recall returns what was spent on the call so far.
func (m *memory) recall(key uint64) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.used[key]
	if !ok || time.Now().After(s.until) {
		return 0
	}
	return s.calls
}

// keep remembers a call that failed. Where too many are remembered, one is
// forgotten: it has its whole budget again.
func (m *memory) keep(key uint64, calls int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if _, ok := m.used[key]; !ok && len(m.used) >= mostFailed {
		m.makeRoom(now)
	}
	m.used[key] = spent{calls, now.Add(failedFor)}
}

func (m *memory) makeRoom(now time.Time) {
	for k, s := range m.used {
		if now.After(s.until) {
			delete(m.used, k)
		}
	}
	for k := range m.used {
		if len(m.used) < mostFailed {
			return
		}
		delete(m.used, k)
	}
}

func (m *memory) forget(key uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.used, key)
}

// retryCount reads the header in which OpenAI's and Anthropic's SDKs say which
// of their attempts a request is, from 0; ok is false if there is none.
func retryCount(h http.Header) (n int, ok bool) {
	n, err := strconv.Atoi(h.Get("X-Stainless-Retry-Count"))
	return n, err == nil
}
