package page

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// MaxSteps is how many steps a page keeps at most.
const MaxSteps = 10_000

// Steps keeps the newest steps in memory, up to a number and a size. It is safe
// for concurrent use. An agent sends the same tools with each request; they are
// kept once.
type Steps struct {
	mu       sync.RWMutex
	max      int
	maxBytes int64
	bytes    int64 // of entries and toolsets, about
	last     uint64

	keepFaults bool
	plain      []*entry   // those that are valid as sent, the oldest first
	room       room       // of those: they are dropped in the order of Add
	faulty     []*entry   // the others, the oldest first
	toolsets   []*toolset // of these entries, the newest last
}

// entry is a step. What is shown of it is made when the page is looked at: most steps
// never are. An entry is not modified after Add.
type entry struct {
	number  uint64 // from 1, in the order of Add
	step    report.Step
	outcome outcome
	bytes   int64
	tools   *toolset
}

// toolset is the tools of some entries.
type toolset struct {
	tools []middleware.Tool
	of    int // with those that were left out
	bytes int64
	users int
}

// NewSteps returns an empty memory for at most MaxSteps steps that take at most
// maxBytes bytes.
func NewSteps(maxBytes int64) *Steps {
	return &Steps{max: MaxSteps, maxBytes: maxBytes, room: room{shared: true}}
}

// KeepFaults makes s drop steps that are valid as sent before it drops others.
// Otherwise it drops the oldest ones. Call it before the first Add.
func (s *Steps) KeepFaults() { s.keepFaults = true }

// Resize changes maxBytes, and drops the oldest steps that exceed it. Resize(0) drops
// all, and keeps no further ones.
func (s *Steps) Resize(maxBytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maxBytes = maxBytes
	s.trim()
}

// Add keeps a deep copy of step, and drops the oldest steps if there is no room
// for it. Texts longer than maxText are cut. The texts of a step that would take
// more than a quarter of the memory are cut further, so that it does not drive
// out all others; if that is not enough, the step is not kept. Tools that would take
// more than a quarter are left out. Add returns the number of the step.
func (s *Steps) Add(step report.Step) uint64 {
	of := outcomeOf(&step)
	s.mu.Lock()
	defer s.mu.Unlock()
	in := &room{}
	if of == valid || of == noCalls {
		in = &s.room
	}
	e := in.entry(step, of, maxText)
	for limit := maxText / 4; e.bytes > s.maxBytes/4 && limit >= 256; limit /= 4 {
		e = in.entry(step, of, limit)
	}
	s.last++
	if e.number = s.last; e.bytes > s.maxBytes/4 {
		return e.number
	}
	set := s.toolsetOf(step.Tools)
	set.users++
	e.tools, e.step.Tools = set, set.tools
	s.bytes += e.bytes
	if in == &s.room {
		s.plain = append(s.plain, e)
	} else {
		s.faulty = append(s.faulty, e)
	}
	s.trim()
	return e.number
}

// room is where entries are made. It has large pieces of memory for many of them: the
// collector then marks a few large objects, and the memory of requests stays in one piece.
// The pieces of the zero room are as small as they can be, for entries that stay while
// their neighbours go.
type room struct {
	shared   bool
	entries  []entry
	attempts []report.Attempt
	calls    []report.Call
	texts    strings.Builder
}

// Sizes of the pieces of a room that is shared.
const (
	roomEntries = 64
	roomText    = 64 << 10
)

// entry returns an entry for a copy of step with texts of at most limit bytes.
func (r *room) entry(step report.Step, of outcome, limit int) *entry {
	e := &allocate(r, &r.entries, 1)[0]
	e.step, e.bytes = r.compact(step, limit)
	e.outcome = of
	return e
}

// allocate returns n elements of free, a piece of r.
func allocate[T any](r *room, free *[]T, n int) []T {
	if n == 0 {
		return nil
	}
	if len(*free) < n {
		size := n
		if r.shared {
			size = max(n, roomEntries)
		}
		*free = make([]T, size)
	}
	out := (*free)[:n:n]
	*free = (*free)[n:]
	return out
}

// clone returns a copy of text.
func (r *room) clone(text string) string {
	if !r.shared || len(text) > roomText/8 {
		return strings.Clone(text)
	}
	if r.texts.Cap()-r.texts.Len() < len(text) {
		r.texts = strings.Builder{}
		r.texts.Grow(roomText)
	}
	at := r.texts.Len()
	r.texts.WriteString(text)
	return r.texts.String()[at:]
}

// trim drops entries until the limits hold. The caller holds s.mu.
func (s *Steps) trim() {
	for n := len(s.plain) + len(s.faulty); n > 0 && (n > s.max || s.bytes > s.maxBytes); n-- {
		from := &s.plain
		if len(s.plain) == 0 || !s.keepFaults && len(s.faulty) > 0 && s.faulty[0].number < s.plain[0].number {
			from = &s.faulty
		}
		e := (*from)[0]
		(*from)[0] = nil
		*from = (*from)[1:]
		s.bytes -= e.bytes
		if e.tools.users--; e.tools.users == 0 {
			s.toolsets = slices.DeleteFunc(s.toolsets, func(set *toolset) bool { return set == e.tools })
			s.bytes -= e.tools.bytes
		}
	}
}

// all returns the entries, the oldest first.
func (s *Steps) all() []*entry {
	s.mu.RLock()
	all := slices.Concat(s.plain, s.faulty)
	s.mu.RUnlock()
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.number, b.number) })
	return all
}

// clients returns the sections about clients.
func (s *Steps) clients() []report.Section { return append(s.named(), s.invalid()...) }

// named returns a section with the clients that have a key of their own, or nil.
func (s *Steps) named() []report.Section {
	rows := map[string][5]int64{}
	for _, e := range s.all() {
		if key := e.step.ClientKey; key != "" {
			r, usage := rows[key], e.step.Usage()
			r[0], r[1], r[2], r[3] = r[0]+1, r[1]+int64(len(e.step.Attempts)), r[2]+usage.InputTokens, r[3]+usage.OutputTokens
			if e.outcome == invalid {
				r[4]++
			}
			rows[key] = r
		}
	}
	if len(rows) == 0 {
		return nil
	}
	out := report.Section{Title: "Client keys", Caption: "Steps by client key", Columns: []string{"Client key", "Steps", "Model calls", "Tokens in", "Tokens out", "Invalid steps"}, Numbers: []int{1, 2, 3, 4, 5}}
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		row := []string{key}
		for _, n := range rows[key] {
			row = append(row, text.Number(n))
		}
		out.Rows = append(out.Rows, row)
	}
	return []report.Section{out}
}

// invalid returns a section with the clients whose steps ended invalid, or nil. A valid step ends
// a row of invalid ones; one without a call does not.
func (s *Steps) invalid() []report.Section {
	rows := map[string]struct{ invalid, now, longest int }{}
	for _, e := range s.all() {
		r := rows[e.step.Client]
		switch e.outcome {
		case invalid:
			r.invalid, r.now = r.invalid+1, r.now+1
			r.longest = max(r.longest, r.now)
		case valid, repaired, reasked:
			r.now = 0
		}
		rows[e.step.Client] = r
	}
	out := report.Section{Title: "Clients", Caption: "Steps that ended invalid, by client", Columns: []string{"Client", "Invalid steps", "Longest row"}, Numbers: []int{1, 2}}
	for _, client := range slices.Sorted(maps.Keys(rows)) {
		if r := rows[client]; r.invalid > 0 {
			out.Rows = append(out.Rows, []string{cmp.Or(client, "without a name"), strconv.Itoa(r.invalid), strconv.Itoa(r.longest)})
		}
	}
	if len(out.Rows) == 0 {
		return nil
	}
	return []report.Section{out}
}

// get returns the entry of a number, or nil.
func (s *Steps) get(number uint64) *entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, list := range [][]*entry{s.plain, s.faulty} {
		if i, found := slices.BinarySearchFunc(list, number, func(e *entry, n uint64) int { return cmp.Compare(e.number, n) }); found {
			return list[i]
		}
	}
	return nil
}

// kept returns the number and the size of the steps in memory, and the number of all steps.
func (s *Steps) kept() (steps int, bytes int64, of uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.plain) + len(s.faulty), s.bytes, s.last
}

// The approximate sizes of the parts of a step that are not texts.
const (
	entryOverhead   = 1 << 10
	attemptOverhead = 512
	callOverhead    = 512
	replyOverhead   = 64
	issueOverhead   = 64
	noteOverhead    = 16
	maxText         = 1 << 20 // bytes of a text that is kept
)

// compact returns a deep copy of a step without its tools, and its approximate bytes. The texts
// are copied because the texts of s share the memory of whole requests and answers. They are clipped
// at limit, because models choose the names and the ids of their calls too.
func (r *room) compact(s report.Step, limit int) (_ report.Step, bytes int64) {
	clone := func(texts ...*string) {
		for _, t := range texts {
			*t = r.clone(cut(*t, limit))
			bytes += int64(len(*t))
		}
	}
	clone(&s.ID, &s.Error, &s.File, &s.Source, &s.Client, &s.ClientKey, &s.Mode, &s.Format, &s.Path, &s.Model)
	s.Tools = nil
	bytes += int64(entryOverhead + noteOverhead*len(s.Notes))
	s.Notes = cloned(s.Notes, func(n *string) { clone(n) })
	s.Attempts = append(allocate(r, &r.attempts, len(s.Attempts))[:0], s.Attempts...)
	for i := range s.Attempts {
		a := &s.Attempts[i]
		clone(&a.Text, &a.Error, &a.Model, (*string)(&a.FinishReason))
		bytes += int64(attemptOverhead + replyOverhead*len(a.Replies) + callOverhead*len(a.Calls))
		bytes += int64(issueOverhead * len(a.Issues))
		cloneIssue := func(i *middleware.Issue) { clone(&i.Code, &i.Pointer, &i.Message, &i.Rule) }
		a.Issues = cloned(a.Issues, cloneIssue)
		a.Replies = cloned(a.Replies, func(r *report.Reply) { clone(&r.CallID, &r.Tool, &r.Text) })
		a.Calls = append(allocate(r, &r.calls, len(a.Calls))[:0], a.Calls...)
		for i := range a.Calls {
			c := &a.Calls[i]
			c.Sent.Native, c.Ran.Native = nil, nil
			clone(&c.Note)
			bytes += int64(issueOverhead * (len(c.Issues) + len(c.FinalIssues) + len(c.Changes)))
			for _, t := range []struct{ sent, ran *string }{{&c.Sent.ID, &c.Ran.ID}, {&c.Sent.Name, &c.Ran.Name}, {&c.Sent.Arguments, &c.Ran.Arguments}} {
				same := *t.ran == *t.sent
				if clone(t.sent); same {
					*t.ran = *t.sent
				} else {
					clone(t.ran)
				}
			}
			c.Issues, c.FinalIssues = cloned(c.Issues, cloneIssue), cloned(c.FinalIssues, cloneIssue)
			c.Changes = cloned(c.Changes, func(x *middleware.Change) { clone(&x.By, &x.Pointer, &x.Before, &x.After) })
		}
	}
	return s, bytes
}

// cloned returns a copy of a list, with each changed on a copy.
func cloned[T any](list []T, change func(*T)) []T {
	if len(list) == 0 {
		return nil
	}
	out := slices.Clone(list)
	for i := range out {
		change(&out[i])
	}
	return out
}

// cut returns a text without what exceeds the limit.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + fmt.Sprintf("… (%d bytes more)", len(text)-limit)
}

// mostCompared is how many toolsets a step's tools are compared with, so that many clients with tools of
// their own cost little. A list that is not among them is kept once more.
const mostCompared = 32

// toolsetOf returns the toolset of tools, and makes it the newest. The caller holds s.mu.
func (s *Steps) toolsetOf(tools []middleware.Tool) *toolset {
	for i := len(s.toolsets) - 1; i >= max(len(s.toolsets)-mostCompared, 0); i-- {
		if set := s.toolsets[i]; set.holds(tools) {
			s.toolsets = append(slices.Delete(s.toolsets, i, i+1), set)
			return set
		}
	}
	set := newToolset(tools, s.maxBytes/4)
	s.toolsets = append(s.toolsets, set)
	s.bytes += set.bytes
	return set
}

// holds reports whether newToolset would make t of tools.
func (t *toolset) holds(tools []middleware.Tool) bool {
	if t.of != len(tools) {
		return false
	}
	for i := range t.tools {
		if a, b := &t.tools[i], &tools[i]; a.Name != b.Name || a.Kind != b.Kind || !bytes.Equal(a.Parameters, b.Parameters) {
			return false
		}
	}
	return true
}

// newToolset returns the tools that the page shows: without descriptions, and as
// many as fit into most bytes.
func newToolset(tools []middleware.Tool, most int64) *toolset {
	set := &toolset{of: len(tools), bytes: 256}
	for _, t := range tools {
		size := int64(len(t.Name) + len(t.Parameters) + 256)
		if set.bytes+size > most {
			break
		}
		set.tools = append(set.tools, middleware.Tool{
			Name: strings.Clone(t.Name), Kind: t.Kind, Parameters: slices.Clone(t.Parameters),
		})
		set.bytes += size
	}
	return set
}
