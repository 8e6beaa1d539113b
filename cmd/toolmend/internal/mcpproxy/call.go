package mcpproxy

import (
	"context"
	"time"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/mcpcheck"
	"github.com/toolmend/toolmend/internal/rawjson"
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

// goDecodes are options for servers in any language, Go among them.
var goDecodes = argsvalidate.Advanced{FoldKeys: true}

func newChecker(mode string, l *log) *checker {
	return &checker{mode: mode, log: l, check: mcpcheck.New(mcpcheck.Options{Args: argsvalidate.Options{Advanced: goDecodes}, PassUnread: mode != modeEnforce})}
}

// unchecked ends the reply to a call that enforce cannot validate.
const unchecked = ", so toolmend could not validate this call, and the server did not get it: try again later"

// decision is what happens to a call.
type decision struct {
	forward string // the message for the server; "" if the client gets refusal
	refusal string
	stale   bool // a new list of tools may change the decision; enforce refuses the call without one
	entry   *entry
}

// entry is a call as the record and the page show it.
type entry struct {
	sent    middleware.ToolCall
	tool    mcpcheck.Tool // by which it was validated; the zero Tool if there is none
	verdict middleware.Verdict
	reply   string // that a refused call got
	notes   []string
	start   time.Time
}

// decide returns what happens to a call that came at start, by the tools that are known.
func (c *checker) decide(ctx context.Context, t *tools, call call, start time.Time) decision {
	found, fresh, mayAsk := t.find(call.tool, time.Now())
	sent := middleware.ToolCall{ID: call.id, Name: call.tool, Arguments: call.args}
	e := &entry{sent: sent, start: start, verdict: middleware.Verdict{Call: sent, Unchecked: true}}
	pass := decision{forward: call.text, entry: e}
	unconfirmed := func(why string) decision {
		e.notes = []string{why}
		pass.stale = mayAsk && c.mode != modeObserve
		if c.mode == modeEnforce {
			pass.forward, pass.refusal, e.reply = "", failure(call.root.Get("id").Raw(), codeUnchecked, why+unchecked), why+unchecked
		}
		return pass
	}
	if !fresh && found == nil {
		return unconfirmed("the server did not list its tools")
	}
	out, err := c.check.Call(ctx, found, sent)
	unusable := out.Verdict.Unchecked && out.Tool.Def.Name != "" // the server refuses a tool that it does not have
	switch {
	case err != nil:
		return pass
	case (out.Action != mcpcheck.Pass || unusable && c.mode == modeEnforce) && !fresh && c.mode != modeObserve:
		return unconfirmed("the server did not confirm the schema of the tool")
	}
	e.tool, e.verdict = out.Tool, out.Verdict
	why := ""
	switch {
	case call.ambiguous:
		why = `"name" and "arguments" must be spelled in lower case: other spellings are not validated`
	case t.isAmbiguous(out.Call.Name):
		why = "the server lists several tools of this name with different schemas, so no call of it can be validated"
	case unusable:
		why = "toolmend cannot use the schema of this tool, so no call of it can be validated; --mode repair passes its calls"
	}
	switch {
	case c.mode == modeObserve:
	case why != "" && c.mode == modeEnforce:
		e.verdict.Unchecked, e.reply = true, why
		return decision{refusal: call.refusal(why), entry: e}
	case out.Action == mcpcheck.Change:
		return decision{forward: call.with(out.Call.Name, out.Call.Arguments), entry: e}
	case out.Action == mcpcheck.Refuse && c.mode == modeEnforce:
		e.reply = out.Text
		return decision{refusal: call.refusal(out.Text), entry: e}
	}
	return pass
}

// confirm is decide with tools that the server lists now, if it does. ask sends a
// request to the server and returns its result, or an absent value.
func (c *checker) confirm(ctx context.Context, t *tools, call call, start time.Time, ask func(ctx context.Context, id, request string) rawjson.Value) decision {
	t.asking.Lock()
	defer t.asking.Unlock()
	d := c.decide(ctx, t, call, start)
	if !d.stale { // another call has asked meanwhile
		return d
	}
	limited, cancel := context.WithDeadline(ctx, start.Add(askTimeout))
	defer cancel()
	var got pages
	for cursor, n := "", 0; n == 0 || cursor != "" && n < maxPages; n++ {
		id := ownID()
		result := ask(limited, id, call.listRequest(id, cursor))
		if !result.Exists() {
			if ctx.Err() == nil { // the client still waits
				t.refused(time.Now())
			}
			return c.decide(ctx, t, call, start)
		}
		cursor = got.add(result)
	}
	t.learn(got, true, time.Now())
	return c.decide(ctx, t, call, start)
}

// followed is a request whose response is read.
type followed struct {
	entry  *entry              // of a call that is logged
	answer func(rawjson.Value) // of a request of the proxy itself: gets the result
	whole  bool                // a list of the client, from its beginning
	size   int                 // bytes that it keeps in use
}

// follow returns how the response to a message of the client is read; nil if it is
// not. e is the entry of a call.
func (c *checker) follow(m message, e *entry) *followed {
	switch {
	case e != nil && c.log.on():
		return &followed{entry: e, size: 1<<10 + 2*len(e.sent.Arguments)}
	case m.method == methodList && m.id != "":
		return &followed{whole: !m.root.Get("params").Get("cursor").Exists()}
	}
	return nil
}

// answered handles the response to a request.
func (c *checker) answered(t *tools, f *followed, m message) {
	result := m.root.Get("result")
	switch e := f.entry; {
	case f.answer != nil:
		f.answer(result)
	case e != nil && (!result.Exists() || result.Get("isError").Raw() == "true"):
		e.notes = append(e.notes, "the tool returned an error")
		c.log.add(e)
	case e != nil:
		e.notes = append(e.notes, c.check.Notes(e.tool, result.Get("structuredContent").Raw())...)
		c.log.add(e)
	case result.Exists():
		var got pages
		next := got.add(result)
		t.learn(got, f.whole && next == "", time.Now())
	}
}

// lost notes that a request has no response that the proxy could read. f may be nil.
func (c *checker) lost(f *followed) {
	if f != nil && f.entry != nil {
		f.entry.notes = append(f.entry.notes, "no result was seen")
		c.log.add(f.entry)
	}
}
