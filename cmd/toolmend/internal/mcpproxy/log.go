package mcpproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/page"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
)

// Bounds of the log.
const (
	queued     = 1024 // lines that wait for the disk
	flushWait  = 2 * time.Second
	pageMemory = 16 << 20 // of the steps on the page
)

// log writes calls to a file and shows them on a page. It never delays a call: if
// the disk is slow, lines are dropped. Its zero value does neither.
type log struct {
	source, mode string
	start        time.Time
	lines        chan []byte // nil if nothing is recorded
	written      chan struct{}
	steps        *page.Steps // nil if there is no page

	mu     sync.Mutex
	serial int
	closed bool
}

// newLog opens the file of the record, which may exist. "" records nothing.
func newLog(source, mode, record string, steps *page.Steps) (*log, error) {
	l := &log{source: source, mode: mode, start: time.Now(), steps: steps}
	if record == "" {
		return l, nil
	}
	f, err := os.OpenFile(record, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	l.lines, l.written = make(chan []byte, queued), make(chan struct{})
	go func() {
		defer close(l.written)
		defer f.Close()
		for line := range l.lines {
			_, _ = f.Write(line) // one write for each line: several proxies may share the file
		}
	}()
	return l, nil
}

func (l *log) on() bool { return l.lines != nil || l.steps != nil }

// add logs a call that is over.
func (l *log) add(e *entry) {
	if !l.on() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.serial++
	if l.lines != nil {
		text, err := json.Marshal(l.line(e))
		if err != nil {
			return
		}
		select {
		case l.lines <- append(text, '\n'):
		default: // the disk is slow
		}
	}
	if l.steps != nil {
		l.steps.Add(l.step(e))
	}
}

// line returns a call in the form of recorded turns, which toolmend check reads.
func (l *log) line(e *entry) map[string]any {
	c := map[string]any{
		"id": e.sent.ID, "name": e.sent.Name, "arguments": e.sent.Arguments, "unchecked": e.verdict.Unchecked,
		"no_schema": !slices.ContainsFunc(e.tools, func(t middleware.Tool) bool { return t.Name == e.verdict.Call.Name }),
	}
	type place struct {
		Code    string `json:"code"`
		Pointer string `json:"pointer"`
	}
	var issues, repairs []place
	for _, i := range e.verdict.Issues {
		issues = append(issues, place{i.Code, i.Pointer})
	}
	for _, r := range e.verdict.Changes {
		repairs = append(repairs, place{r.By, r.Pointer})
	}
	c["issues"], c["repairs"] = issues, repairs
	tools := []map[string]any{}
	for _, t := range e.tools {
		tools = append(tools, map[string]any{"name": t.Name, "parameters": t.Parameters})
	}
	return map[string]any{
		"id": fmt.Sprintf("%d-%d/1", l.start.UnixMilli(), l.serial), "time": e.start.UTC().Format(time.RFC3339Nano), "source": l.source, "format": "mcp",
		"mode": l.mode, "attempt": 1, "attempts": 1, "final": true, "status": e.status, "duration_ms": float64(time.Since(e.start).Microseconds()) / 1000,
		"tool_calls": []any{c}, "tools": tools, "notes": e.notes,
	}
}

// steps are shown with the verdicts as sent, which this checker finds again.
var viewer = sync.OnceValue(func() *report.Checker {
	return report.NewChecker(argsvalidate.Options{UnknownTools: argsvalidate.PassUnknown})
})

func (l *log) step(e *entry) report.Step {
	took := time.Since(e.start)
	m := middleware.Assistant("", e.sent)
	attempt := middleware.Attempt{Message: m, Verdicts: []middleware.Verdict{e.verdict}, Start: e.start, Duration: took}
	if e.reply != "" {
		reply := middleware.ToolReply(e.sent, e.reply)
		reply.IsError = true
		attempt.Replies = []middleware.Message{reply}
	}
	s := report.Step{
		ID: strconv.Itoa(l.serial), Time: e.start, Source: l.source, Mode: l.mode, Format: "mcp", Path: methodCall, Tools: e.tools,
		Status: e.status, Notes: e.notes, Duration: took,
	}
	s.Attempts = viewer().Attempts(context.Background(), middleware.Report{Attempts: []middleware.Attempt{attempt}}, e.tools, nil)
	return s
}

// close writes what waits for the disk, for at most flushWait.
func (l *log) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.lines == nil {
		return
	}
	l.closed = true
	close(l.lines)
	select {
	case <-l.written:
	case <-time.After(flushWait):
	}
}
