package transport

import (
	"net/http"
	"strings"
	"sync"
)

// mostIDs is the number of responses whose ids are remembered.
const mostIDs = 4096

// longestIDs limits the bytes of two ids together. The ids of providers have
// fewer than a hundred bytes each.
const longestIDs = 2048

// IDs maps the id that a client got to the id under which the provider stores
// the accepted response. The two differ if a stream began with the id of an
// earlier attempt. The oldest entry is removed first. The zero IDs is empty and
// ready to use. It is safe for concurrent use.
type IDs struct {
	mu    sync.Mutex
	kept  map[string]string // by the id that the client was given
	order []string          // the keys of kept, the oldest first
}

func (m *IDs) keep(given, kept string) {
	if given == "" || len(given)+len(kept) > longestIDs {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	given, kept = strings.Clone(given), strings.Clone(kept) // copies, because both are substrings of whole responses
	if m.kept == nil {
		m.kept = map[string]string{}
	}
	if _, known := m.kept[given]; !known {
		if m.order = append(m.order, given); len(m.order) > mostIDs {
			delete(m.kept, m.order[0])
			m.order = m.order[1:]
		}
	}
	m.kept[given] = kept
}

// of returns the provider's id for an id that a client sends.
func (m *IDs) of(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if kept, ok := m.kept[id]; ok {
		return kept
	}
	return id
}

func (m *IDs) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.kept) == 0
}

// addressed returns req with the provider's id in its path: a client may fetch
// or delete a response by its id. Only a segment behind "responses" is an id,
// as in /v1/responses/resp_1/input_items: a provider chooses its ids, and must
// not be able to lead requests elsewhere. A signed request stays unchanged.
func (m *IDs) addressed(req *http.Request) *http.Request {
	if req.URL == nil || m.empty() || signed(req) {
		return req
	}
	parts, changed := strings.Split(req.URL.Path, "/"), false
	for i := 1; i < len(parts); i++ {
		if parts[i-1] != "responses" {
			continue
		}
		if kept := m.of(parts[i]); kept != parts[i] && isSegment(kept) {
			parts[i], changed = kept, true
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

// isSegment reports whether every server takes id for one segment of a path that
// leads nowhere else.
func isSegment(id string) bool {
	return strings.Trim(id, ".") != "" && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.~:=", r)
	})
}
