package lib_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/lib"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/internal/test/docpage"
	"github.com/toolmend/toolmend/middleware"
)

// host speaks with lib.Serve over pipes.
type host struct {
	out  io.WriteCloser
	in   *bufio.Scanner
	done chan error
}

// frame is a frame of the session.
type frame struct {
	Type     string
	ID       int64
	N        int
	Keep     int
	Messages []middleware.Message
	Request  middleware.Request
	Call     middleware.ToolCall
	Value    json.RawMessage
	Code     string
	Message  string
	Status   middleware.Status
	Response *middleware.Response
	Log      []string
	Report   *middleware.Report
	Verdicts []middleware.Verdict
	Replies  []middleware.Message
}

func newHost(tb testing.TB) *host {
	hostIn, theirOut, err := os.Pipe()
	require.NoError(tb, err)
	theirIn, hostOut, err := os.Pipe()
	require.NoError(tb, err)
	h := &host{out: hostOut, in: bufio.NewScanner(hostIn), done: make(chan error, 1)}
	h.in.Buffer(nil, 1<<24)
	go func() {
		h.done <- lib.Serve(tb.Context(), "v1.2.3", theirIn, theirOut)
		theirOut.Close()
	}()
	tb.Cleanup(func() {
		for _, f := range []*os.File{hostOut, hostIn, theirIn} {
			f.Close()
		}
	})
	return h
}

func (h *host) send(lines ...string) { _, _ = io.WriteString(h.out, strings.Join(lines, "\n")+"\n") }

func (h *host) frame(f map[string]any) {
	text, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	h.send(string(text))
}

func (h *host) line() string {
	if !h.in.Scan() {
		return ""
	}
	return h.in.Text()
}

func (h *host) next(t *testing.T) (f frame) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(h.line()), &f))
	return f
}

// replay sends the lines of a transcript that begin with > and compares the others. "…" is any
// value.
func replay(t *testing.T, transcript string) {
	h := newHost(t)
	for line := range strings.SplitSeq(strings.TrimSpace(transcript), "\n") {
		from, text, _ := strings.Cut(line, " ")
		require.True(t, json.Valid([]byte(text)), text)
		if from == ">" {
			h.send(text)
			continue
		}
		var want, got any
		require.NoError(t, json.Unmarshal([]byte(text), &want))
		line := h.line()
		require.NoError(t, json.Unmarshal([]byte(line), &got), text)
		require.Equal(t, want, wild(want, got), line)
	}
}

// wild returns got with "…" where want has it.
func wild(want, got any) any {
	if want == "…" {
		return want
	}
	switch got := got.(type) {
	case map[string]any:
		if w, ok := want.(map[string]any); ok {
			for key := range got {
				got[key] = wild(w[key], got[key])
			}
		}
	case []any:
		if w, ok := want.([]any); ok && len(w) == len(got) {
			for i := range got {
				got[i] = wild(w[i], got[i])
			}
		}
	}
	return got
}

// TestProtocolPage replays the transcripts of the page, and holds that it shows each frame, member
// and code.
func TestProtocolPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../docs/protocol.md")
	require.NoError(t, err)
	var shown strings.Builder
	for _, b := range docpage.Blocks(string(text)) {
		if b.Mark != "transcript" {
			continue
		}
		shown.WriteString(b.Text)
		t.Run(fmt.Sprint(b.Line), func(t *testing.T) {
			t.Parallel()
			replay(t, b.Text)
		})
	}
	source, err := os.ReadFile("lib.go")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("`json:\"(\\w+)").FindAllStringSubmatch(string(source), -1) {
		require.Contains(t, string(text), m[1], "a member")
	}
	for _, kind := range strings.Fields("hello open tools step ask load messages chunk event answer rule findings stop result error validate cancel close") {
		require.Contains(t, shown.String(), `"type":"`+kind+`"`)
	}
	for _, code := range strings.Fields("invalid_tool_call rule_failed failed cancelled panic options unknown_stack unknown_set frame protocol") {
		require.Contains(t, string(text), "`"+code+"`")
	}
}

// TestTranscripts replays the files of testdata.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			replay(t, string(text))
		})
	}
}

const (
	hello  = `{"type":"hello","versions":[0,1]}`
	open   = `{"type":"open","id":1,"stack":"a","options":{"rules":[{"tool":"get"}],"rule_timeout":0.05}}`
	tools  = `{"type":"tools","id":2,"stack":"a","set":"k","tools":[{"name":"get","parameters":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}]}`
	answer = `{"type":"answer","id":3,"n":1,"response":{"message":{"role":"assistant","tool_calls":[{"id":"c","name":"get","arguments":"{\"n\":1}"}]}}}`
)

func stepOf(id int) string {
	return fmt.Sprintf(`{"type":"step","id":%d,"stack":"a","set":"k","length":1}`, id)
}

// greeted returns a host with an open stack.
func greeted(t *testing.T) *host {
	h := newHost(t)
	h.send(hello, open, tools)
	for range 3 {
		require.NotEqual(t, "error", h.next(t).Type)
	}
	return h
}

// TestOver holds what ends a session, with an error that tells why.
func TestOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ lines, want string }{
		"no hello":        {`{"type":"step","id":1}`, "the first frame must be hello"},
		"no JSON":         {hello + "\n" + `{"type":`, "unexpected end of JSON input"},
		"unknown type":    {hello + "\n" + `{"type":"dance"}`, `unknown type "dance"`},
		"no id":           {hello + "\n" + `{"type":"step"}`, "the id 0 must be positive and not in use"},
		"other versions":  {`{"type":"hello","versions":[7]}`, "this toolmend (v1.2.3) has version 1 of the protocol, and the package [7]"},
		"another release": {`{"type":"hello","versions":[1],"release":"v1.3.0"}`, "this toolmend is v1.2.3, and the package is v1.3.0: install both of the same release"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.send(c.lines)
			f := h.next(t)
			if f.Type == "hello" {
				f = h.next(t)
			}
			require.Equal(t, "protocol", f.Code)
			require.Contains(t, f.Message, c.want)
			require.Error(t, <-h.done)
		})
	}
}

// TestOptions holds that options are read as the gateway's file is.
func TestOptions(t *testing.T) {
	t.Parallel()
	h := greeted(t)
	for options, want := range map[string]string{
		`{"atempts":2}`:                            "unknown key atempts",
		`{"attempts":"2"}`:                         "attempts: must be a number, got text in quotes",
		`{"attempts":0}`:                           "attempts: must be at least 1, got 0",
		`{"strip":"always"}`:                       `strip: must be one of "all", "off", "optional", "when-invalid", got "always"`,
		`{"tool":[{"name":"a","strop":"off"}]}`:    "unknown key tool.strop",
		`{"tool":[{"name":"a","repairs":["no"]}]}`: `tool "a": repairs: must be one of`,
		`{"listen":"127.0.0.1:1"}`:                 "listen: is for the gateway only",
		`{"hold":"all"}`:                           "hold: is for the gateway only",
		`{"mode":"observe"}`:                       `mode: must be "enforce" or "repair"`,
		`{"rules":[{"path":"a"}]}`:                 "rules: rule 0 has no tool",
		`{"rule_timeout":-1}`:                      "RuleTimeout",
		`{"answer":7}`:                             "answer",
		`{"record":"/nowhere/at/all"}`:             "record: open ",
		`[]`:                                       "cannot unmarshal array",
	} {
		h.send(`{"type":"open","id":9,"stack":"b","options":` + options + `}`)
		f := h.next(t)
		require.Equal(t, "options", f.Code, options)
		require.Contains(t, f.Message, want, options)
	}
	h.send(`{"type":"open","id":9,"stack":"b","options":{"attempts":2,"loop_after":3,"retries":0,"limits":{"calls":5},"answer":{"type":"object"},"escalate":null}}`)
	require.Equal(t, "result", h.next(t).Type)
}

// TestWrongType holds that a value of another type ends the step that it belongs to, and no other.
func TestWrongType(t *testing.T) {
	t.Parallel()
	h := greeted(t)
	h.send(stepOf(3), stepOf(4))
	require.Equal(t, "ask", h.next(t).Type)
	require.Equal(t, "ask", h.next(t).Type)
	h.send(`{"type":"answer","id":3,"n":1,"response":{"usage":{"input":"many"}}}`)
	f := h.next(t)
	if f.Type == "stop" {
		f = h.next(t)
	}
	require.Equal(t, "frame", f.Code)
	require.Contains(t, f.Message, "cannot unmarshal string")
	h.send(`{"type":"validate","id":5,"stack":"a","calls":7}`)
	require.Equal(t, "frame", h.next(t).Code)
	h.send(`{"type":"answer","id":4,"n":1,"response":{"message":{"role":"assistant","parts":[{"text":"yes"}]}}}`)
	require.Equal(t, "result", h.next(t).Type)
}

// TestSlowRule holds that a rule that does not answer in time is stopped, and fails its step only.
func TestSlowRule(t *testing.T) {
	t.Parallel()
	h := greeted(t)
	h.send(stepOf(3))
	require.Equal(t, "ask", h.next(t).Type)
	h.send(answer)
	require.Equal(t, "rule", h.next(t).Type)
	kinds := map[string]frame{}
	for range 2 {
		f := h.next(t)
		kinds[f.Type] = f
	}
	require.Equal(t, 2, kinds["stop"].N)
	require.Equal(t, "rule_failed", kinds["error"].Code)
	h.send(`{"type":"findings","id":3,"n":2}`, `{"type":"close","id":4,"stack":"a"}`) // late: it is dropped
	require.Equal(t, int64(4), h.next(t).ID)
}

// TestManySets holds that the session remembers a bounded number of tool sets.
func TestManySets(t *testing.T) {
	t.Parallel()
	h := greeted(t)
	for i := range 256 {
		h.send(strings.Replace(tools, `"k"`, fmt.Sprintf(`"k%d"`, i), 1))
		require.Equal(t, "result", h.next(t).Type)
	}
	h.send(stepOf(3))
	require.Equal(t, "unknown_set", h.next(t).Code)
}

func TestServeEndsWithItsInput(t *testing.T) {
	t.Parallel()
	h := greeted(t)
	h.send(stepOf(3))
	require.Equal(t, "ask", h.next(t).Type)
	require.NoError(t, h.out.Close())
	go func() {
		for h.in.Scan() {
		}
	}()
	require.NoError(t, <-h.done)
}

func TestServeLimitsLines(t *testing.T) {
	t.Parallel()
	h := greeted(t)
	go h.send(`{"type":"open","id":2,"stack":"` + strings.Repeat("x", lib.MaxLine))
	require.Contains(t, h.next(t).Message, "is longer than 67108864 bytes")
	require.Error(t, <-h.done)
}

// TestRecord holds that toolmend check can read the file of the option record.
func TestRecord(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "calls.jsonl")
	h := greeted(t)
	name, err := json.Marshal(file)
	require.NoError(t, err)
	h.send(`{"type":"open","id":9,"stack":"a","options":{"record":`+string(name)+`}}`, strings.Replace(tools, `"id":2`, `"id":8`, 1), stepOf(3))
	for range 3 {
		h.next(t)
	}
	h.send(strings.Replace(answer, `\"n\":1`, `\"n\":\"1\"`, 1))
	f := h.next(t)
	require.Equal(t, middleware.Valid, f.Status)
	require.Equal(t, []string{"attempt 1: get was repaired: n: mend.coerce"}, f.Log)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), `"tool_calls":[{"id":"c","name":"get","arguments":"{\"n\":\"1\"}"}]`)
	require.Equal(t, []string{"get"}, readBack(t, file))

	require.NoError(t, os.Rename(file, file+".1")) // as a program that rotates logs does
	h.send(stepOf(3))
	require.Equal(t, "ask", h.next(t).Type)
	h.send(answer)
	require.Equal(t, "result", h.next(t).Type)
	require.Equal(t, []string{"get"}, readBack(t, file))
}

// FuzzHandle holds that no frame of a host makes a panic, or a line that is not JSON.
func FuzzHandle(f *testing.F) {
	f.Add(open, stepOf(3))
	f.Add(stepOf(3), answer)
	f.Add(stepOf(3), `{"type":"findings","id":3,"n":1,"issues":[{}]}`)
	f.Add(`{"type":"validate","id":3,"stack":"a","set":"k","calls":[{"name":"get","arguments":"{"}]}`, `{"type":"cancel","id":3}`)
	f.Fuzz(func(t *testing.T, one, two string) {
		s := lib.New("v1.2.3", func(line []byte) {
			if !json.Valid(line) {
				t.Errorf("no JSON: %s", line)
			}
		})
		for _, line := range slices.Concat([]string{hello, open, tools}, []string{one, two}) {
			_ = s.Handle([]byte(line))
		}
		s.End()
	})
}

// readBack returns the names of the calls that package recorded reads in a file.
func readBack(t *testing.T, file string) (names []string) {
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	for line, err := range recorded.NewReader(file, f).All() {
		require.NoError(t, err)
		turns, err := line.Turns(&recorded.Toolsets{})
		require.NoError(t, err)
		for _, turn := range turns {
			require.Len(t, turn.Tools, 1)
			names = append(names, turn.Calls[0].Name)
		}
	}
	return names
}

// direct returns a session with a stack of the test's own, and its frames.
func direct(t *testing.T, call middleware.ModelCall) (*lib.Session, func() frame) {
	frames := make(chan frame, 100)
	s := lib.New("v1.2.3", func(line []byte) {
		var f frame
		require.NoError(t, json.Unmarshal(line, &f))
		frames <- f
	})
	t.Cleanup(s.End)
	s.AddStack("p", call)
	for _, line := range []string{hello, open, tools} {
		require.NoError(t, s.Handle([]byte(line)))
		<-frames
	}
	return s, func() frame { return <-frames }
}

// TestPanic holds that a panic ends its step and no other, and that its text has no value.
func TestPanic(t *testing.T) {
	t.Parallel()
	s, next := direct(t, func(context.Context, *middleware.Request) (*middleware.Response, error) { panic("secret") })
	require.NoError(t, s.Handle([]byte(stepOf(3))))
	require.Equal(t, "ask", next().Type)
	require.NoError(t, s.Handle([]byte(`{"type":"step","id":4,"stack":"p"}`)))
	f := next()
	require.Equal(t, []any{"panic", int64(4), "panic: string"}, []any{f.Code, f.ID, f.Message})
	require.NoError(t, s.Handle([]byte(`{"type":"answer","id":3,"n":1,"error":{"message":"KeyError: mine"}}`)))
	f = next()
	require.Equal(t, []any{"failed", int64(3), 1}, []any{f.Code, f.ID, f.N})
}

// TestStop holds that the host learns that a middleware gave up on a model call.
func TestStop(t *testing.T) {
	t.Parallel()
	s, next := direct(t, func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if _, err := lib.Ask(short, req); err == nil {
			return nil, errors.New("an answer came")
		}
		return lib.Ask(ctx, req)
	})
	require.NoError(t, s.Handle([]byte(`{"type":"step","id":3,"stack":"p"}`)))
	var got []string
	for range 3 {
		f := next()
		got = append(got, fmt.Sprint(f.Type, f.N))
	}
	require.Equal(t, []string{"ask1", "stop1", "ask2"}, got)
	require.NoError(t, s.Handle([]byte(strings.Replace(answer, `"n":1`, `"n":2`, 1))))
	require.Equal(t, "result", next().Type)
}

// TestCancel holds that cancel ends the step, and that the answer that comes later is dropped.
func TestCancel(t *testing.T) {
	t.Parallel()
	h := greeted(t)
	h.send(stepOf(3))
	require.Equal(t, "ask", h.next(t).Type)
	h.send(`{"type":"cancel","id":3}`)
	require.Equal(t, "stop", h.next(t).Type)
	require.Equal(t, "cancelled", h.next(t).Code)
	h.send(answer, `{"type":"close","id":4,"stack":"a"}`)
	require.Equal(t, int64(4), h.next(t).ID)
}
