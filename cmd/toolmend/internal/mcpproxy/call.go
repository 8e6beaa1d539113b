package mcpproxy

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/mcpcheck"
	"github.com/toolmend/toolmend/middleware"
)

// Modes say what happens to calls.
const (
	modeEnforce = "enforce" // repair, and refuse what stays invalid
	modeRepair  = "repair"  // repair, and pass what stays invalid
	modeObserve = "observe" // pass all, and count
)

// checker decides on calls. Both transports have one. It is safe for concurrent
// use.
type checker struct {
	mode  string
	check *mcpcheck.Checker
	log   *log
}

func newChecker(mode string, l *log) *checker {
	return &checker{mode: mode, check: mcpcheck.New(mcpcheck.Options{Args: argsvalidate.Options{}, PassUnread: true}), log: l}
}

// decision is what happens to a call.
type decision struct {
	forward string // the message for the server; "" if the client gets refusal
	refusal string
	changed bool // forward is not what the client sent
	entry   *entry
}

// entry is a call as the record and the page show it.
type entry struct {
	sent    middleware.ToolCall
	tools   []middleware.Tool // by which it was validated
	verdict middleware.Verdict
	reply   string          // that a refused call got
	output  json.RawMessage // the schema of its results
	status  middleware.Status
	notes   []string
	start   time.Time
}

// decide returns what happens to a call. ask says that the caller can ask the
// server for its tools: then needsList means that it has to, and then decide
// again.
func (c *checker) decide(ctx context.Context, t *tools, call call, start time.Time, ask bool) (d decision, needsList bool) {
	now := time.Now()
	found, fresh, ok := t.find(call.tool, now)
	ask = ask && c.mode != modeObserve && t.mayAsk(now)
	sent := middleware.ToolCall{ID: call.id, Name: call.tool, Arguments: call.args}
	e := &entry{sent: sent, start: start, status: middleware.Unchecked, verdict: middleware.Verdict{Call: sent, Unchecked: true}}
	pass := decision{forward: call.text, entry: e}
	if !ok {
		e.notes = []string{"the server did not list its tools"}
		return pass, ask
	}
	out, err := c.check.Call(ctx, defs(found), sent)
	if err != nil {
		return pass, false
	}
	if out.Action != mcpcheck.Pass && !fresh && c.mode != modeObserve {
		e.notes = []string{"the server did not confirm the schema of the tool"}
		return pass, ask
	}
	for _, f := range found {
		if f.Def.Name == out.Call.Name {
			e.tools, e.output = []middleware.Tool{f.Def}, f.Output
		}
	}
	e.verdict, e.status = out.Verdict, middleware.StatusOf([]middleware.Verdict{out.Verdict})
	switch {
	case c.mode == modeObserve:
	case out.Action == mcpcheck.Change:
		return decision{forward: call.with(out.Call.Name, out.Call.Arguments), changed: true, entry: e}, false
	case out.Action == mcpcheck.Refuse && c.mode == modeEnforce:
		e.reply = out.Text
		return decision{refusal: call.refusal(out.Text), entry: e}, false
	}
	return pass, false
}

// result notes the result of a call that the server has made.
func (c *checker) result(e *entry, m message) {
	result := m.root.Get("result")
	failed := !result.Exists() || result.Get("isError").Raw() == "true"
	if failed {
		e.notes = append(e.notes, "the tool returned an error")
	}
	if structured := result.Get("structuredContent"); structured.Exists() && !failed {
		e.notes = append(e.notes, mcpcheck.Notes(e.verdict.Call.Name, c.check.Output(e.output, structured.Raw()))...)
	}
	c.log.add(e)
}

// lost notes that a call has no result that the proxy could read. e may be nil.
func (c *checker) lost(e *entry) {
	if e != nil {
		e.notes = append(e.notes, "no result was seen")
		c.log.add(e)
	}
}

// follows reports whether the result of a call is to be read.
func (c *checker) follows(e *entry) bool {
	return e != nil && (c.log.on() || len(e.output) > 0)
}

// size estimates the memory that an entry keeps in use.
func (e *entry) size() int { return 1<<10 + 2*len(e.sent.Arguments) }
