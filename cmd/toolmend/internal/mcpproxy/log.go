package mcpproxy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/logbatch"
	"github.com/toolmend/toolmend/internal/page"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// Bounds of the log.
const (
	flushWait  = 2 * time.Second
	pageMemory = 16 << 20 // of the steps on the page
)

// log writes calls to a file and shows them on a page. It never delays a call: if
// the disk is slow, lines are dropped.
type log struct {
	source, mode string
	start        time.Time
	file         *os.File
	lines        *logbatch.Writer // to file; nil if nothing is recorded
	steps        *page.Steps      // nil if there is no page
	checker      *report.Checker  // finds the verdicts on calls as they were sent, for the page

	mu     sync.Mutex
	serial int
}

// newLog opens the file of the record, which may exist. "" records nothing.
func newLog(source, mode, record string, steps *page.Steps) (*log, error) {
	l := &log{source: source, mode: mode, start: time.Now(), steps: steps}
	if steps != nil {
		l.checker = report.NewChecker(argsvalidate.Options{UnknownTools: argsvalidate.PassUnknown, Advanced: goDecodes})
	}
	if record == "" {
		return l, nil
	}
	f, err := openRecord(record)
	if err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	l.file, l.lines = f, logbatch.New(f) // it writes whole lines at once: several proxies may share the file
	return l, nil
}

// openRecord opens a file that only its owner can read. It follows no symbolic link.
func openRecord(name string) (*os.File, error) {
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: must be a regular file", name)
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY|noFollow, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || noFollow != 0 && info.Mode().Perm()&0o077 != 0 {
		_ = f.Close()
		return nil, cmp.Or(err, fmt.Errorf("%s: other users can read it: run chmod 600 %s", name, name))
	}
	return f, nil
}

func (l *log) on() bool { return l.lines != nil || l.steps != nil }

// add logs a call that is over.
func (l *log) add(e *entry) {
	if !l.on() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serial++
	tools := []middleware.Tool{}
	if e.tool.Def.Name != "" {
		tools = append(tools, e.tool.Def)
	}
	status, took := middleware.StatusOf([]middleware.Verdict{e.verdict}), time.Since(e.start)
	if l.lines != nil {
		if line, err := json.Marshal(l.line(e, tools, status, took)); err == nil {
			_, _ = text.JSONWriter{To: l.lines}.Write(append(line, '\n'))
		}
	}
	if l.steps != nil {
		l.steps.Add(l.step(e, tools, status, took))
	}
}

// line returns a call in the form of recorded turns, which toolmend check reads.
func (l *log) line(e *entry, tools []middleware.Tool, status middleware.Status, took time.Duration) map[string]any {
	type object = map[string]any
	issues, repairs, declared := []object{}, []object{}, []object{}
	for _, i := range e.verdict.Issues {
		issues = append(issues, object{"code": i.Code, "pointer": i.Pointer})
	}
	for _, r := range e.verdict.Changes {
		repairs = append(repairs, object{"code": r.By, "pointer": r.Pointer})
	}
	for _, t := range tools {
		declared = append(declared, object{"name": t.Name, "parameters": t.Parameters})
	}
	call := object{
		"id": e.sent.ID, "name": e.sent.Name, "arguments": e.sent.Arguments,
		"unchecked": e.verdict.Unchecked, "no_schema": len(tools) == 0, "issues": issues, "repairs": repairs,
	}
	return object{
		"id": fmt.Sprintf("%d-%d/1", l.start.UnixMilli(), l.serial), "time": e.start.UTC().Format(time.RFC3339Nano), "source": l.source, "format": "mcp",
		"mode": l.mode, "attempt": 1, "attempts": 1, "final": true, "status": status, "duration_ms": float64(took.Microseconds()) / 1000,
		"tool_calls": []object{call}, "tools": declared, "notes": e.notes,
	}
}

// step returns a call as the page shows it.
func (l *log) step(e *entry, tools []middleware.Tool, status middleware.Status, took time.Duration) report.Step {
	attempt := middleware.Attempt{Message: middleware.Assistant("", e.sent), Verdicts: []middleware.Verdict{e.verdict}, Start: e.start, Duration: took}
	if e.reply != "" {
		attempt.Replies = []middleware.Message{middleware.ToolReply(e.sent, e.reply)}
		attempt.Replies[0].IsError = true
	}
	return report.Step{
		ID: strconv.Itoa(l.serial), Time: e.start, Source: l.source, Mode: l.mode, Format: "mcp", Path: methodCall, Tools: tools,
		Status: status, Notes: e.notes, Duration: took,
		Attempts: l.checker.Attempts(context.Background(), middleware.Report{Attempts: []middleware.Attempt{attempt}}, tools, nil),
	}
}

// close writes what waits for the disk, for at most two seconds.
func (l *log) close() {
	if l.lines != nil {
		l.lines.Flush()
		_ = l.file.Close()
	}
}
