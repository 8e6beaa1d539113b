package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/internal/mcpcheck"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// Entry is a line of the table: a tool as its server describes it, and whether
// it is offered and validated.
type Entry struct {
	Name   string // the name that the model sees
	Server string // see Options.Name
	Tool   string // its name on the server
	Title  string // for people, one line; "" if there is none
	// Annotations are the server's hints on the tool, such as ReadOnlyHint;
	// nil if there are none. Trust them only if you trust the server.
	Annotations *sdk.ToolAnnotations
	Unvalidated string // why calls are not validated; "" if they are
	Refused     string // why the tool is not offered; "" if it is
}

// list is the tools that a server offers. It is immutable.
type list struct {
	heard uint64 // the value of Server.heard when the list was read
	sum   [sha256.Size]byte
	cut   error // why the list is incomplete
	tools []agentloop.Tool
	table []Entry
	known map[[sha256.Size]byte]string // results of compiling its schemas; see compiled
}

// pages is the server's response, all pages together.
type pages struct {
	tools []*sdk.Tool
	sum   [sha256.Size]byte
	cut   error
}

// read reads the list, page by page, up to its limits. For a server without
// tools the list is empty.
func (s *Server) read(ctx context.Context) (pages, error) {
	var p pages
	sum, size := sha256.New(), 0
	cursor, seen := "", map[string]bool{}
	for more := true; more && p.cut == nil; {
		if len(seen) == maxPages || seen[cursor] {
			p.cut = fmt.Errorf("mcp: the list of %s has no end: it was cut after %d pages", s.name, len(seen))
			break
		}
		seen[cursor] = true
		page, err := s.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		var refused *jsonrpc.Error
		if errors.As(err, &refused) && refused.Code == jsonrpc.CodeMethodNotFound { // it has no tools
			break
		}
		if err != nil {
			return pages{}, err
		}
		for _, t := range page.Tools {
			described, err := json.Marshal(t)
			if err != nil {
				return pages{}, err
			}
			size += len(described)
			if len(p.tools) == s.o.MaxTools || size > maxRead {
				p.cut = fmt.Errorf("mcp: the list of %s is too long: it was cut after %d tools", s.name, len(p.tools))
				break
			}
			sum.Write(described)
			p.tools = append(p.tools, t)
		}
		cursor = page.NextCursor
		more = cursor != ""
	}
	p.sum = [sha256.Size]byte(sum.Sum(nil))
	return p, nil
}

// publish makes p the current list. If the server sent the same tools, the
// slice of tools stays the same. Only the goroutine that holds Server.busy
// calls publish.
func (s *Server) publish(ctx context.Context, p pages, heard uint64) error {
	old := s.list.Load()
	l := &list{heard: heard, sum: p.sum, cut: p.cut}
	if old != nil && old.sum == p.sum {
		l.tools, l.table, l.known = old.tools, old.table, old.known
	} else {
		schemas := compiled{now: map[[sha256.Size]byte]string{}}
		if old != nil {
			schemas.before = old.known
		}
		if err := s.fill(ctx, l, p.tools, &schemas); err != nil {
			return err
		}
		l.known = schemas.now
	}
	s.list.Store(l)
	return nil
}

// fill makes tools from the server's descriptions. Compiling a schema can be
// expensive, so fill checks ctx before each schema, and does not compile a
// schema that is too large.
func (s *Server) fill(ctx context.Context, l *list, described []*sdk.Tool, schemas *compiled) error {
	names, sent := map[string]bool{}, 0
	for _, d := range described {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		e, t := s.tool(d, func(schema []byte) string {
			if sent+len(schema) > maxSent {
				return ""
			}
			return schemas.compile(schema)
		})
		size := len(e.Name) + len(t.Def.Description) + len(t.Def.Parameters)
		switch {
		case e.Refused != "":
		case names[e.Name]:
			e.Refused = "the server lists a tool of that name before it"
		case s.o.RefuseUnvalidated && e.Unvalidated != "":
			e.Refused = "its calls could not be validated"
		case sent+size > maxSent:
			e.Refused = fmt.Sprintf("the server's tools before it take up the %d bytes there are", maxSent)
		case !s.admitted(e, &t):
			e.Refused = "Options.Admit refused it"
		default:
			t.Def.Name = e.Name
			names[e.Name] = true
			sent += size
			l.tools = append(l.tools, t)
		}
		l.table = append(l.table, e)
	}
	l.tools = slices.Clip(l.tools)
	return nil
}

// admitted calls Options.Admit. A panic excludes the tool: it must not reach a
// goroutine in which the program cannot recover it.
func (s *Server) admitted(e Entry, t *agentloop.Tool) (ok bool) {
	if s.o.Admit == nil {
		return true
	}
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return s.o.Admit(e, t)
}

// tool makes a tool from the server's description. compile is passed to
// readSchema.
func (s *Server) tool(d *sdk.Tool, compile func(schema []byte) string) (Entry, agentloop.Tool) {
	e := Entry{Name: toolName(s.o.Prefix, d.Name), Server: s.name, Tool: d.Name, Title: title(d)}
	if d.Annotations != nil {
		a := *d.Annotations
		a.Title = line(a.Title, maxTitle)
		e.Annotations = &a
	}
	switch {
	case d.Name == "":
		e.Refused = "it has no name"
	case len(d.Name) > maxName:
		e.Tool, e.Refused = text.Clip(d.Name, maxName), fmt.Sprintf("its name is longer than %d bytes", maxName)
	}
	description := plain(d.Description, s.o.MaxDescription)
	parameters, raw, why := readSchema(d.InputSchema, s.o.MaxSchema, compile)
	if why != "" {
		e.Unvalidated = text.Clip(why, maxReason)
		if raw != "" {
			description = plain(description+"\n\nIts arguments, as its server describes them: "+raw, s.o.MaxDescription)
		}
	}
	return e, agentloop.Tool{
		Def:     middleware.Tool{Name: e.Name, Description: description, Parameters: parameters, Destructive: destructive(d.Annotations)},
		Func:    s.call(d.Name),
		Timeout: s.o.Timeout,
		Title:   e.Title,
	}
}

// destructive reads the hints of a tool, which may be nil.
func destructive(a *sdk.ToolAnnotations) bool {
	if a == nil {
		return mcpcheck.Destructive(false, nil)
	}
	return mcpcheck.Destructive(a.ReadOnlyHint, a.DestructiveHint)
}

// title returns the title for people.
func title(d *sdk.Tool) string {
	if t := line(d.Title, maxTitle); t != "" || d.Annotations == nil {
		return t
	}
	return line(d.Annotations.Title, maxTitle)
}
