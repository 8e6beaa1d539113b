package mcp

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/toolmend/toolmend/agentloop"
)

// Set is the tools of several servers. It is safe for concurrent use.
type Set struct {
	servers []*Server
	mu      sync.Mutex
	lists   []*list // that tools and table are made of
	tools   []agentloop.Tool
	table   []Entry
}

// Join puts servers side by side. Where two of them have a tool of one name,
// the earlier server's is offered, and the table says so of the other: give
// each server an Options.Prefix of its own. The servers stay the caller's to
// close.
func Join(servers ...*Server) *Set { return &Set{servers: slices.Clone(servers)} }

// Tools returns what the servers offer now: an agentloop.Source. Those whose
// list has changed are asked at the same time. See Server.Tools.
func (s *Set) Tools(ctx context.Context) ([]agentloop.Tool, error) {
	var wg sync.WaitGroup
	lists := make([]*list, len(s.servers))
	for i, server := range s.servers {
		if !server.stale() {
			lists[i] = server.list.Load()
			continue
		}
		wg.Go(func() { lists[i] = server.current(ctx) })
	}
	wg.Wait()
	tools, _ := s.merge(lists)
	return tools, nil
}

// Table returns the lines of every server's table, in order.
func (s *Set) Table() []Entry {
	lists := make([]*list, len(s.servers))
	for i, server := range s.servers {
		lists[i] = server.list.Load()
	}
	_, table := s.merge(lists)
	return slices.Clone(table)
}

// merge returns the tools of all lists: the same slice for the same ones.
func (s *Set) merge(lists []*list) ([]agentloop.Tool, []Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lists != nil && slices.EqualFunc(s.lists, lists, func(a, b *list) bool { return a.sum == b.sum }) {
		return s.tools, s.table
	}
	s.lists, s.tools, s.table = lists, nil, nil
	owner := map[string]string{} // the server by the name of a tool
	for _, l := range lists {
		next := 0 // of l.tools, which stand in the order of the table
		for _, e := range l.table {
			if e.Refused == "" {
				t := l.tools[next]
				next++
				if first, taken := owner[e.Name]; taken {
					e.Refused = fmt.Sprintf("%s has a tool of that name", first)
				} else {
					owner[e.Name] = e.Server
					s.tools = append(s.tools, t)
				}
			}
			s.table = append(s.table, e)
		}
	}
	return s.tools, s.table
}
