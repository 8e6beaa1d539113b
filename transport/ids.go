package transport

import (
	"cmp"
	"net/http"
	"strings"
	"sync"
)

// mostIDs is the number of responses whose ids are remembered.
const mostIDs = 4096

// longestIDs limits the bytes of two ids together. The ids of providers have
// fewer than a hundred bytes each.
const longestIDs = 2048

// IDs remembers under which id the provider stores a response whose stream began with the id of
// an earlier attempt. The oldest entry is removed first. The zero IDs is empty and ready to use.
// It is safe for concurrent use.
type IDs struct {
	mu     sync.Mutex
	stored map[string]string // by the id that the client got
	order  []string          // the keys of stored, the oldest first
}

// keep remembers that the provider stores a response under another id than the client got.
func (m *IDs) keep(sent, stored string) {
	if sent == "" || len(sent)+len(stored) > longestIDs {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	sent, stored = strings.Clone(sent), strings.Clone(stored) // both are substrings of whole responses
	if m.stored == nil {
		m.stored = map[string]string{}
	}
	if _, known := m.stored[sent]; !known {
		if m.order = append(m.order, sent); len(m.order) > mostIDs {
			delete(m.stored, m.order[0])
			m.order = m.order[1:]
		}
	}
	m.stored[sent] = stored
}

// storedID returns the provider's id for the id that a client sends.
func (m *IDs) storedID(id string) string {
	return cmp.Or(locked(&m.mu, func() string { return m.stored[id] }), id)
}

func (m *IDs) empty() bool { return locked(&m.mu, func() bool { return len(m.stored) == 0 }) }

// withStoredID returns req with the provider's id in its path: a client may fetch or delete a
// response by its id. Only the segment after "responses" is an id, as in
// /v1/responses/resp_1/input_items, because a provider chooses its ids and must not be able to
// lead requests elsewhere. A signed request stays unchanged.
func (m *IDs) withStoredID(req *http.Request) *http.Request {
	if req.URL == nil || m.empty() || signed(req) {
		return req
	}
	parts, changed := strings.Split(req.URL.Path, "/"), false
	for i := 1; i < len(parts); i++ {
		if parts[i-1] != "responses" {
			continue
		}
		if stored := m.storedID(parts[i]); stored != parts[i] && isSegment(stored) {
			parts[i], changed = stored, true
		}
	}
	if !changed {
		return req
	}
	out := req.WithContext(req.Context())
	to := *req.URL
	to.Path, to.RawPath, to.Opaque = strings.Join(parts, "/"), "", ""
	out.URL = &to
	return out
}

// isSegment reports whether id is one segment of a path for every server.
func isSegment(id string) bool {
	return strings.Trim(id, ".") != "" && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.~:=", r)
	})
}
