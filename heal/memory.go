package heal

import (
	"context"
	"hash/maphash"
	"strconv"
	"sync"
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// Limits of what is remembered.
const (
	mostKnown = 1024
	knownFor  = time.Hour
	mostOfOne = 8 // changes of one request
)

// key says which requests a change of schemas is for: those of a client with a model and these tools.
type key uint64

// memory has the changes of schemas that providers accepted.
type memory struct {
	seed   maphash.Seed
	mu     sync.Mutex
	sets   map[key]remembered
	eldest []key // in order of until
}

type remembered struct {
	changes []change
	until   time.Time
}

func newMemory() *memory { return &memory{seed: maphash.MakeSeed(), sets: map[key]remembered{}} }

// of returns the changes for k, nil for none.
func (m *memory) of(k key) []change {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.eldest) > 0 && !time.Now().Before(m.sets[m.eldest[0]].until) {
		m.forget()
	}
	return m.sets[k].changes
}

// isEmpty reports whether nothing is remembered.
func (m *memory) isEmpty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sets) == 0
}

// add remembers one more change for k. The hour begins with the first one.
func (m *memory) add(k key, c change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	set, known := m.sets[k]
	switch {
	case !known && len(m.eldest) == mostKnown:
		m.forget()
		fallthrough
	case !known:
		set.until = time.Now().Add(knownFor)
		m.eldest = append(m.eldest, k)
	}
	if len(set.changes) < mostOfOne {
		set.changes = append(set.changes[:len(set.changes):len(set.changes)], c)
	}
	m.sets[k] = set
}

func (m *memory) forget() {
	delete(m.sets, m.eldest[0])
	m.eldest = m.eldest[1:]
}

// keyOf returns the key of a request.
func (h *healer) keyOf(req *middleware.Request) key {
	var sum maphash.Hash
	sum.SetSeed(h.known.seed)
	write := func(text string) {
		_, _ = sum.WriteString(text)
		_ = sum.WriteByte(0)
	}
	write(req.Client)
	write(req.Model)
	for _, t := range req.Tools {
		write(t.Name)
		_, _ = sum.Write(t.Parameters)
		write(strconv.FormatBool(t.Strict))
	}
	return key(sum.Sum64())
}

// asKnown returns req with the changes that its provider wanted before, in this step or for
// these schemas, and the names of their rules.
func (h *healer) asKnown(ctx context.Context, req *middleware.Request, tally *middleware.Tally) (now *middleware.Request, healed []string) {
	var changes []change
	if len(req.Tools) > 0 && !h.known.isEmpty() {
		changes = h.known.of(h.keyOf(req))
	}
	if s, ok := ctx.Value(stepKey{}).(*stepChanges); ok {
		s.mu.Lock()
		changes = append(changes[:len(changes):len(changes)], s.changes...)
		s.mu.Unlock()
	}
	for _, c := range changes {
		if changed, note := h.apply(c, req); changed != nil {
			tally.Note(note)
			req, healed = changed, append(healed, c.rule.String())
		}
	}
	return req, healed
}

// keep remembers a change that made the provider accept req.
func (h *healer) keep(ctx context.Context, req *middleware.Request, c change) {
	if c.rule.OfSchemas() {
		h.known.add(h.keyOf(req), c)
		return
	}
	keepInStep(ctx, c)
}

// keepInStep remembers a change for the further model calls of the step.
func keepInStep(ctx context.Context, c change) {
	if s, ok := ctx.Value(stepKey{}).(*stepChanges); ok {
		s.mu.Lock()
		s.changes = append(s.changes, c)
		s.mu.Unlock()
	}
}

// Step is a middleware around a step: within it, a change of the history that the provider
// wanted once is made at once in later model calls, such as re-asks, whose history is the
// same.
//
// Position: outside of every middleware that calls next more than once.
func Step(next middleware.ModelCall) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		return next(context.WithValue(ctx, stepKey{}, &stepChanges{}), req)
	}
}

type stepKey struct{}

type stepChanges struct {
	mu      sync.Mutex
	changes []change
}
