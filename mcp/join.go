package mcp

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/toolmend/toolmend/agentloop"
)

// Set holds the tools of several servers. It is safe for concurrent use.
type Set struct {
	servers []*Server
	mu      sync.Mutex
	lists   []*list // the lists that tools and table were made from
	tools   []agentloop.Tool
	table   []Entry
}

// Join combines the tools of several servers. If two servers have a tool of
// the same name, the earlier server's tool is offered, and the table shows why
// the other one is not. Options.Prefix avoids that. The caller still closes
// the servers.
func Join(servers ...*Server) *Set { return &Set{servers: slices.Clone(servers)} }

// Tools returns the tools that the servers offer now. It is an
// agentloop.Source. Changed lists are read concurrently. See Server.Tools.
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

// Table returns the lines of all servers' tables, in order.
func (s *Set) Table() []Entry {
	lists := make([]*list, len(s.servers))
	for i, server := range s.servers {
		lists[i] = server.list.Load()
	}
	_, table := s.merge(lists)
	return slices.Clone(table)
}

// merge returns the tools of all lists. It returns the same slice for the same
// lists.
func (s *Set) merge(lists []*list) ([]agentloop.Tool, []Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lists != nil && slices.EqualFunc(s.lists, lists, func(a, b *list) bool { return a.sum == b.sum }) {
		return s.tools, s.table
	}
	s.lists, s.tools, s.table = lists, nil, nil
	owner := map[string]string{} // the server of each tool name
	for _, l := range lists {
		next := 0 // index into l.tools, which has the order of the table
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
