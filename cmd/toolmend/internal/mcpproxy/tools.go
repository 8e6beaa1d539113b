package mcpproxy

import (
	"bytes"
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/toolmend/toolmend/internal/mcpcheck"
	"github.com/toolmend/toolmend/internal/rawjson"
)

// Bounds of what the proxy keeps of one server or session.
const (
	maxTools     = 4096
	maxToolBytes = 32 << 20         // of their schemas
	maxPages     = 100              // of a list that the proxy asks for
	askTimeout   = 10 * time.Second // and how long the proxy does not ask again after a failure
	// freshFor is how long a schema may be the reason to change or to refuse a
	// call. Then it is asked for again: a notification of a change may be lost.
	freshFor = time.Minute
)

// tools are the tools of a server, as its lists say. It is safe for concurrent
// use.
type tools struct {
	asking sync.Mutex // the proxy reads one list at a time

	mu     sync.Mutex
	byName map[string]known
	bytes  int       // of the tools in byName, at least
	listed time.Time // when a list was read to its end
	since  time.Time // when the server last said that its tools have changed
	failed time.Time // when the server last did not list its tools for the proxy
}

type known struct {
	mcpcheck.Tool
	at    time.Time // when the server sent it
	twice bool      // with another schema too
}

// pages collects the pages of a list.
type pages struct {
	tools []mcpcheck.Tool
	bytes int
}

// add adds the tools of a result, and returns the cursor of the next page.
func (p *pages) add(result rawjson.Value) (next string) {
	for v := range result.Get("tools").Each() {
		t, ok := mcpcheck.Read(v.Raw())
		size := len(t.Def.Name) + len(t.Def.Parameters) + len(t.Output)
		if ok && len(p.tools) < maxTools && p.bytes+size <= maxToolBytes {
			p.bytes += size
			p.tools = append(p.tools, t)
		}
	}
	return strings.Clone(result.Get("nextCursor").Str())
}

// learn takes over the tools of p. whole says that these are all tools of the
// server. Where there is no room for more tools, the old ones go.
func (t *tools) learn(p pages, whole bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if whole {
		t.listed = now
	}
	if whole || t.byName == nil || len(t.byName)+len(p.tools) > maxTools || t.bytes+p.bytes > maxToolBytes {
		t.byName, t.bytes = map[string]known{}, 0
	}
	t.bytes += p.bytes
	for _, tool := range p.tools {
		old := t.byName[tool.Def.Name]
		twice := old.at.Equal(now) && (old.twice || !bytes.Equal(old.Def.Parameters, tool.Def.Parameters))
		t.byName[tool.Def.Name] = known{tool, now, twice}
	}
}

// changed notes that the server has other tools now.
func (t *tools) changed(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.listed, t.failed, t.since = time.Time{}, time.Time{}, now
}

// refused notes that the server did not list its tools.
func (t *tools) refused(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = now
}

// find returns the tools by which a call of a tool is validated: the tool itself,
// or all tools if there is none of that name. fresh says that they are new enough
// to change or refuse a call. If they are not, and mayAsk, the proxy may ask the
// server for its tools.
func (t *tools) find(name string, now time.Time) (found []mcpcheck.Tool, fresh, mayAsk bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	mayAsk = now.Sub(t.failed) >= askTimeout
	if k, ok := t.byName[name]; ok {
		return []mcpcheck.Tool{k.Tool}, k.at.After(t.since) && now.Sub(k.at) < freshFor, mayAsk
	}
	if now.Sub(t.listed) >= freshFor {
		return nil, false, mayAsk
	}
	for _, k := range t.byName {
		found = append(found, k.Tool)
	}
	return found, true, mayAsk
}

// ownPrefix begins the ids of the proxy's own requests. It cannot be guessed, so no
// id of a client begins with it.
var ownPrefix = "toolmend-" + rand.Text() + "-"

// ownID returns the id of a request of the proxy itself, in JSON.
func ownID() string { return `"` + ownPrefix + rand.Text() + `"` }

// isAmbiguous reports whether the server listed several tools of that name, with other schemas.
func (t *tools) isAmbiguous(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byName[name].twice
}

// isOwn reports whether text contains an id of the proxy.
func isOwn(text []byte) bool { return bytes.Contains(text, []byte(ownPrefix)) }
