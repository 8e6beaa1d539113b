package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// Limits of the answers that wait to be written.
const (
	queuedExchanges = 1024
	queuedBytes     = 64 << 20 // of requests and answers
	flushWait       = 5 * time.Second
)

// recorder writes a line for each answer of an upstream. It never delays an
// exchange: if the disk is slow or full, lines are dropped and counted.
type recorder struct {
	config  Record
	metrics *metrics
	log     *slog.Logger
	queue   *queue[*exchange]
	file    io.WriteCloser
	serial  int
	failed  bool
}

// openRecorder returns the recorder of old if its configuration is the same.
func (g *Gateway) openRecorder(c Record, old *state) (*recorder, error) {
	if old != nil && old.recorder != nil && reflect.DeepEqual(old.recorder.config, c) {
		return old.recorder, nil
	}
	file, err := openRotated(c.File, cmp.Or(c.MaxSize, 100_000_000), cmp.Or(c.Files, 5))
	if err != nil {
		return nil, err
	}
	return newRecorder(c, file, g.metrics, g.options.Logger), nil
}

// newRecorder returns a recorder that writes to file.
func newRecorder(c Record, file io.WriteCloser, m *metrics, log *slog.Logger) *recorder {
	r := &recorder{config: c, file: file, metrics: m, log: log}
	work := func(x *exchange) { guarded(m, log, x, "an answer is not recorded", func() { r.record(x) }) }
	r.queue = &queue[*exchange]{work: work, workers: 1, items: queuedExchanges, bytes: queuedBytes}
	return r
}

// observed queues x, or drops it.
func (r *recorder) observed(x *exchange) {
	if len(x.report.Attempts) > 0 && !r.queue.add(x, x.size()) { // full, or a later configuration has another recorder
		r.metrics.drop("record", 1)
	}
}

// record writes x. Of several errors in a row it logs the first.
func (r *recorder) record(x *exchange) {
	err := r.writeLines(x)
	if err != nil {
		r.metrics.drop("record", 1)
		if !r.failed && r.log != nil {
			r.log.Error("cannot record; answers are dropped until writing works again", "file", r.config.File, "error", err)
		}
	}
	r.failed = err != nil
}

// close writes what is queued, for at most flushWait, and closes the file.
func (r *recorder) close() {
	if r.queue.close(flushWait) {
		_ = r.file.Close()
	}
}

// writeLines writes a line for each attempt of x.
func (r *recorder) writeLines(x *exchange) error {
	r.serial++
	var out bytes.Buffer
	for i := range x.report.Attempts {
		line, err := json.Marshal(x.line(i, fmt.Sprintf("%d-%d/%d", x.start.UnixMilli(), r.serial, i+1), r.config))
		if err != nil {
			return err
		}
		out.Write(line)
		out.WriteByte('\n')
	}
	_, err := text.JSONWriter{To: r.file}.Write(out.Bytes())
	return err
}

// recordedLine is an answer of an upstream, before any repair, in the form of
// "recorded turns" that `toolmend check` reads.
type recordedLine struct {
	ID       string `json:"id"`
	Time     string `json:"time"`
	Source   string `json:"source"` // the upstream
	Model    string `json:"model"`
	Format   string `json:"format"`
	Path     string `json:"path"`
	Client   string `json:"client,omitempty"`
	Mode     Mode   `json:"mode"`
	Attempt  int    `json:"attempt"` // from 1
	Attempts int    `json:"attempts"`
	Final    bool   `json:"final"`            // the client got this answer
	Status   string `json:"status,omitempty"` // of the calls that the client got

	FinishReason middleware.FinishReason `json:"finish_reason,omitempty"`
	Error        string                  `json:"error,omitempty"`  // a status or a code; no text
	Issues       []recordedIssue         `json:"issues,omitempty"` // of the message: why it is neither a call nor an answer
	DurationMS   float64                 `json:"duration_ms"`
	Usage        middleware.Usage        `json:"usage"`
	ToolCalls    []recordedCall          `json:"tool_calls"`
	Tools        []recordedTool          `json:"tools"`
	Limits       middleware.Request      `json:"limits,omitzero"` // ToolChoice, AllowedTools and NoParallelCalls of the request

	Headers  map[string]string    `json:"headers,omitempty"`
	Messages []middleware.Message `json:"messages,omitempty"` // with Record.Content
	Answer   *middleware.Message  `json:"answer,omitempty"`   // with Record.Content
	Replies  []middleware.Message `json:"replies,omitempty"`  // with Record.Content: to the model, about this answer
}

// recordedCall is a call as sent, and what was found out about it.
type recordedCall struct {
	ID        string          `json:"id"`
	Type      string          `json:"type,omitempty"` // "custom", else ""
	Name      string          `json:"name,omitempty"`
	Arguments string          `json:"arguments,omitempty"`
	Custom    *recordedCustom `json:"custom,omitempty"`
	Issues    []recordedIssue `json:"issues,omitempty"`
	Repairs   []recordedIssue `json:"repairs,omitempty"` // Code is the name of the rule
	Unchecked bool            `json:"unchecked,omitempty"`
	Announced bool            `json:"announced,omitempty"`
}

type recordedCustom struct {
	Name  string `json:"name"`
	Input string `json:"input"`
}

type recordedIssue struct {
	Code    string `json:"code"`
	Pointer string `json:"pointer"`
}

type recordedTool struct {
	Type       string          `json:"type,omitempty"` // "custom" or the provider's own; "" is a function
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
	Custom     *recordedCustom `json:"custom,omitempty"`
}

// line returns the recorded line of attempt i.
func (x *exchange) line(i int, id string, c Record) recordedLine {
	a := x.report.Attempts[i]
	l := recordedLine{
		ID: id, Time: x.start.UTC().Format(time.RFC3339Nano), Source: x.upstream, Model: cmp.Or(x.model(), a.Model),
		Format: x.dialect, Path: x.path, Client: x.client, Mode: x.mode,
		Attempt: i + 1, Attempts: len(x.report.Attempts), Final: i == x.report.Final, Status: x.status,
		FinishReason: a.FinishReason, DurationMS: ms(a.Duration), Usage: a.Usage,
		ToolCalls: []recordedCall{}, Tools: []recordedTool{},
	}
	if a.Err != nil {
		l.Error = errorCode(a.Err)
	}
	for _, issue := range a.Issues {
		l.Issues = append(l.Issues, recordedIssue{issue.Code, issue.Pointer})
	}
	for j, call := range a.Message.ToolCalls {
		rec := recordedCall{ID: call.ID, Name: call.Name, Arguments: call.Arguments}
		if call.Kind == middleware.KindCustom {
			rec = recordedCall{ID: call.ID, Type: "custom", Custom: &recordedCustom{call.Name, call.Arguments}}
		}
		if j < len(a.Verdicts) {
			rec.Unchecked, rec.Announced = a.Verdicts[j].Unchecked, a.Verdicts[j].Announced
			for _, issue := range a.Verdicts[j].Issues {
				rec.Issues = append(rec.Issues, recordedIssue{issue.Code, issue.Pointer})
			}
			for _, change := range a.Verdicts[j].Changes {
				rec.Repairs = append(rec.Repairs, recordedIssue{change.By, change.Pointer})
			}
		}
		l.ToolCalls = append(l.ToolCalls, rec)
	}
	if r := x.request; r != nil {
		l.Limits = middleware.Request{ToolChoice: r.ToolChoice, AllowedTools: r.AllowedTools, NoParallelCalls: r.NoParallelCalls}
		for _, t := range r.Tools {
			l.Tools = append(l.Tools, recordTool(t))
		}
	}
	for _, k := range c.Headers {
		if v := x.header.Get(k); v != "" {
			if l.Headers == nil {
				l.Headers = map[string]string{}
			}
			l.Headers[strings.ToLower(k)] = v
		}
	}
	if c.Content {
		if x.request != nil {
			l.Messages = withoutNative(x.request.Loaded().Messages)
		}
		l.Answer, l.Replies = &withoutNative([]middleware.Message{a.Message})[0], withoutNative(a.Replies)
	}
	return l
}

func recordTool(t middleware.Tool) recordedTool {
	switch t.Kind {
	case middleware.KindFunction:
		return recordedTool{Name: t.Name, Parameters: t.Parameters}
	case middleware.KindCustom:
		return recordedTool{Type: "custom", Custom: &recordedCustom{Name: t.Name}}
	}
	return recordedTool{Type: t.Name, Name: t.Name}
}

// withoutNative returns copies of messages without the provider's own bytes,
// which would double each record.
func withoutNative(all []middleware.Message) []middleware.Message {
	out := make([]middleware.Message, len(all))
	for i, m := range all {
		m.Native = nil
		m.Parts, m.ToolCalls = slices.Clone(m.Parts), slices.Clone(m.ToolCalls)
		for j := range m.Parts {
			m.Parts[j].Native = nil
		}
		for j := range m.ToolCalls {
			m.ToolCalls[j].Native = nil
		}
		out[i] = m
	}
	return out
}

// size estimates the memory that x keeps in use.
func (x *exchange) size() int64 {
	n := 4 << 10
	if x.request != nil && x.request.Native != nil {
		n += 2 * len(x.request.Native.Raw)
	}
	for _, a := range x.report.Attempts {
		for _, c := range a.Message.ToolCalls {
			n += 2 * (len(c.ID) + len(c.Name) + len(c.Arguments))
		}
		for _, p := range a.Message.Parts {
			n += 2 * len(p.Text)
		}
	}
	return int64(n)
}
