package simulate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// Fault is a mistake that the simulation must find: in File, a path in the checkout, New replaces Old, which
// occurs there once. Replacements survive edits of the lines around them; a patch does not.
type Fault struct {
	Name      string
	Invariant string // that it breaks: "(i)" to "(v)"
	File      string
	Old, New  string
}

// Plant returns the file with the fault. root is the checkout.
func (f Fault) Plant(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f.File)))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(text, []byte(f.Old)); n != 1 {
		return nil, fmt.Errorf("fault %q: %s has %d times, in place of once, the text\n%s\nUpdate the table of faults", f.Name, f.File, n, f.Old)
	}
	return bytes.Replace(text, []byte(f.Old), []byte(f.New), 1), nil
}

// Faults are the faults of `make simulate-faults`.
var Faults = []Fault{
	{"a client that reads nothing is waited for", "(i)", "internal/proxy/client.go",
		"c.limitWrite(true)\n		k, err", "k, err"},
	{"an upstream that sends nothing more is waited for", "(i)", "gateway/base.go",
		"	b.timer.Reset(b.limit)\n", ""},
	{"a body that comes too slowly is waited for", "(i)", "internal/proxy/request.go",
		"_ = b.control.SetReadDeadline(deadline)", "_ = deadline"},
	{"a client that has gone is served on", "(i)", "internal/proxy/proxy.go",
		"out := r.Clone(ctx)", "out := r.Clone(context.WithoutCancel(ctx))"},
	{"an invalid call is not marked", "(ii)", "transport/headers.go",
		"return string(resp.Report.Status)", "return valid"},
	{"a broken stream looks whole", "(ii)", "transport/live.go",
		"x.out.end(nil, network.err)", "_ = network\n		x.out.end(nil, nil)"},
	{"an error of another form", "(ii)", "wire/internal/ollama/errors.go",
		"codec.Member{Key: \"error\", Raw: rawjson.Quote(message)}", "codec.Member{Key: \"message\", Raw: rawjson.Quote(message)}"},
	{"responses share a buffer", "(v)", "internal/proxy/buffer.go",
		"return &sync.Pool{New: func() any { b := make([]byte, size); return &b }}", "b := make([]byte, size)\n	return &sync.Pool{New: func() any { return &b }}"},
	{"a request has the credential of the one before", "(iii)", "internal/proxy/proxy.go",
		"func (p *proxy) outgoing(ctx context.Context, r *http.Request) *http.Request {\n	out := r.Clone(ctx)\n",
		"var last []string\n\nfunc (p *proxy) outgoing(ctx context.Context, r *http.Request) *http.Request {\n	out := r.Clone(ctx)\n	if last != nil {\n		out.Header[\"Authorization\"] = last\n	}\n	last = r.Header[\"Authorization\"]\n"},
	{"the client key reaches the provider", "(iii)", "gateway/access.go",
		"	out.Header.Del(keyHeader)\n", "	out.Header[\"X-Client\"] = out.Header[keyHeader]\n	out.Header.Del(keyHeader)\n"},
	{"the log has the key", "(iii)", "gateway/access.go",
		"context.WithValue(out.Context(), clientName{}, client)", "context.WithValue(out.Context(), clientName{}, client+r.Header.Get(keyHeader))"},
	{"requests that end in an error are not counted", "(iv)", "gateway/metrics.go",
		"	m.requests.Add(ctx, 1, set.request...)\n", "	if x.err == nil {\n		m.requests.Add(ctx, 1, set.request...)\n	}\n"},
	{"lost records are not counted", "(iv)", "gateway/record.go",
		"	if err != nil {\n		r.metrics.drop(\"record\", 1)\n", "	if err != nil {\n"},
	{"any key is taken if one client is left", "(ii)", "gateway/access.go",
		"		if subtle.ConstantTimeCompare(sum[:], k.sum[:]) == 1 {", "		if subtle.ConstantTimeCompare(sum[:], k.sum[:]) == 1 || len(g.keys) < 2 {"},
	{"a response that breaks off keeps its place", "(v)", "gateway/places.go",
		"		if place == nil {\n			h.ServeHTTP(w, r)\n", "		if place == nil {\n			defer func() {\n				if v := recover(); v != nil {\n					p.enter()\n					panic(v)\n				}\n			}()\n			h.ServeHTTP(w, r)\n"},
	{"a request more than max_concurrent", "(v)", "gateway/places.go",
		"	if p.limit == 0 || p.taken < p.limit {\n		p.taken++\n		return nil", "	if p.limit == 0 || p.taken <= p.limit {\n		p.taken++\n		return nil"},
	{"the record stays open", "(v)", "gateway/record.go",
		"		_ = r.file.Close()\n", "		_ = r.file\n"},
	{"a buffer does not come back", "(v)", "internal/proxy/buffer.go",
		"		b.pool.Put(b.b)\n", ""},
	{"a worker waits for ever", "(v)", "gateway/queue.go",
		"	if q.running < q.workers {\n		q.running++\n		time.AfterFunc(q.delay, q.run)\n", "	if q.running < q.workers {\n		q.running++\n		time.AfterFunc(q.delay, func() { q.run(); <-make(chan int) })\n"},
}
