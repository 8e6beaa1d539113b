package page

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
)

// call returns a step with one call that is valid.
func call(model, tool, arguments string) report.Step {
	c := middleware.ToolCall{ID: "c", Name: tool, Arguments: arguments}
	return report.Step{Model: model, Status: middleware.Valid, Code: 200, Attempts: []report.Attempt{{
		Calls: []report.Call{{Sent: c, Ran: c, AsSent: report.OK, Final: report.OK}},
	}}}
}

// newSteps returns a memory for fewer steps.
func newSteps(most int, maxBytes int64) *Steps {
	s := NewSteps(maxBytes)
	s.max = most
	return s
}

func TestTheNewestStepsAreKept(t *testing.T) {
	t.Parallel()
	s := newSteps(3, 1<<20)
	for i := range 5 {
		s.Add(call("m", "t", fmt.Sprint(i)))
	}
	var kept []string
	for _, e := range s.all() {
		kept = append(kept, e.step.Attempts[0].Calls[0].Sent.Arguments)
	}
	require.Equal(t, []string{"2", "3", "4"}, kept)
	steps, _, of := s.kept()
	require.Equal(t, 3, steps)
	require.EqualValues(t, 5, of)
	for number, want := range map[uint64][3]bool{2: {}, 3: {true, false, true}, 4: {true, true, true}, 5: {true, true, false}, 6: {}, 0: {}} {
		e := s.get(number)
		older, newer := filter{}.around(number, s.all())
		if e == nil {
			older, newer = nil, nil
		}
		require.Equal(t, want, [3]bool{e != nil, older != nil, newer != nil}, number)
	}
}

// A recording has more valid steps than fit into memory. Those with a fault stay.
func TestFaultsAreKept(t *testing.T) {
	t.Parallel()
	for keep, want := range map[bool][]uint64{false: {6, 7, 8}, true: {3, 5, 8}} {
		s := newSteps(3, 1<<20)
		if keep {
			s.KeepFaults()
		}
		for i := range 8 {
			step := call("m", "t", "{}")
			if i == 2 || i == 4 {
				step.Status = middleware.Invalid
			}
			s.Add(step)
		}
		var got []uint64
		for _, e := range s.all() {
			got = append(got, e.number)
		}
		require.Equal(t, want, got)
		e := s.get(want[1])
		older, newer := filter{}.around(want[1], s.all())
		require.Equal(t, want, []uint64{older.number, e.number, newer.number})
	}
}

// The size of all texts bounds what is kept. One large step does not drive out the
// others: its texts are cut.
func TestBytesAreBounded(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	s := NewSteps(most)
	for range 1000 {
		s.Add(call("m", "t", strings.Repeat("x", 10_000)))
	}
	steps, bytes, _ := s.kept()
	require.LessOrEqual(t, bytes, int64(most))
	require.Greater(t, steps, 50)
	large := call("m", "t", strings.Repeat("y", 5<<20))
	for range 10 {
		large.Attempts[0].Calls = append(large.Attempts[0].Calls, large.Attempts[0].Calls[0])
	}
	s.Add(large)
	after, bytes, _ := s.kept()
	require.LessOrEqual(t, bytes, int64(most))
	require.Greater(t, after, steps/2)
	e := s.get(1001)
	older, _ := filter{}.around(1001, s.all())
	require.NotNil(t, older)
	require.NotNil(t, e)
	require.Contains(t, e.step.Attempts[0].Calls[0].Sent.Arguments, "bytes more)")
	for range 50_000 { // small texts, and very many
		large.Attempts[0].Calls = append(large.Attempts[0].Calls, report.Call{})
	}
	require.EqualValues(t, 1002, s.Add(large))
	tools := call("m", "t", "{}")
	tools.Tools = []middleware.Tool{{Name: "small"}, {Name: "large", Parameters: make([]byte, 2*most)}}
	require.EqualValues(t, 1003, s.Add(tools))
	again, bytes, of := s.kept()
	require.LessOrEqual(t, bytes, int64(most))
	require.Greater(t, again, steps/2, "the others are still there")
	require.EqualValues(t, 1003, of)
	e = s.get(1003)
	older, _ = filter{}.around(1003, s.all())
	require.Len(t, e.step.Tools, 1)
	require.EqualValues(t, 1001, older.number, "the step before was too large")
	s.Resize(0)
	steps, bytes, _ = s.kept()
	require.Zero(t, steps)
	require.Zero(t, bytes)
	s.Add(call("m", "t", "{}"))
	steps, _, _ = s.kept()
	require.Zero(t, steps, "turned off")
}

// docs/gateway/page.md says how many steps fit into the default memory.
func TestOrdinarySteps(t *testing.T) {
	t.Parallel()
	s := NewSteps(8 << 20)
	for range 5000 {
		s.Add(call("claude-sonnet-5", "edit_file", `{"file_path":"/srv/app/main.go","new":"`+strings.Repeat("x", 600)+`"}`))
	}
	steps, _, _ := s.kept()
	require.InDelta(t, 3000, steps, 500)
	require.LessOrEqual(t, s.room.texts.Cap(), roomText, "what is dropped is let go of")
}

// Every text of a step counts: models choose the names and the ids of their calls too,
// as long as they like.
func TestAllTextsCount(t *testing.T) {
	t.Parallel()
	long := func() string { return strings.Repeat("n", 10_000) }
	for name, change := range map[string]func(*report.Step){
		"id of the step": func(s *report.Step) { s.ID = long() }, "path": func(s *report.Step) { s.Path = long() },
		"model": func(s *report.Step) { s.Model = long() }, "note": func(s *report.Step) { s.Notes = []string{long()} },
		"name":          func(s *report.Step) { s.Attempts[0].Calls[0].Sent.Name = long() },
		"name that ran": func(s *report.Step) { s.Attempts[0].Calls[0].Ran.Name = long() },
		"arguments":     func(s *report.Step) { s.Attempts[0].Calls[0].Ran.Arguments = long() },
		"id":            func(s *report.Step) { s.Attempts[0].Calls[0].Sent.ID = long() },
		"code":          func(s *report.Step) { s.Attempts[0].Calls[0].Issues = []middleware.Issue{{Code: long()}} },
		"rule":          func(s *report.Step) { s.Attempts[0].Calls[0].Changes = []middleware.Change{{By: long()}} },
		"finish reason": func(s *report.Step) { s.Attempts[0].FinishReason = middleware.FinishReason(long()) },
		"tool of a reply": func(s *report.Step) {
			s.Attempts[0].Replies = []report.Reply{{Tool: long()}}
		},
	} {
		s := NewSteps(1 << 20)
		for range 200 {
			step := call("m", "t", "{}")
			change(&step)
			s.Add(step)
		}
		steps, _, _ := s.kept()
		require.LessOrEqual(t, steps, 1<<20/10_000, name)
		require.Positive(t, steps, name)
	}
}

// The time for a step grows with the number of its calls, and not with its square.
func TestManyCalls(t *testing.T) {
	t.Parallel()
	step := call("m", "t", "{}")
	for i := range 60_000 {
		step.Attempts[0].Calls = append(step.Attempts[0].Calls, call("m", fmt.Sprintf("tool %06d", i), "{}").Attempts[0].Calls...)
	}
	s := NewSteps(256 << 20)
	start := time.Now()
	s.Add(step)
	called := toolsOf(&s.get(1).step)
	require.Less(t, time.Since(start), 3*time.Second)
	require.Equal(t, []string{"tool 059999"}, called[60_000:])
}

// An agent sends its tools with each request.
func TestToolsAreKeptOnce(t *testing.T) {
	t.Parallel()
	s := newSteps(10, 1<<20)
	tools := func(name string) []middleware.Tool {
		return []middleware.Tool{{Name: name, Parameters: []byte(`{"type":"object","description":"` + strings.Repeat("d", 50_000) + `"}`)}}
	}
	for range 10 {
		step := call("m", "t", "{}")
		step.Tools = tools("t")
		s.Add(step)
	}
	_, bytes, _ := s.kept()
	require.Less(t, bytes, int64(100_000))
	require.Len(t, s.toolsets, 1)
	for range 10 {
		step := call("m", "t", "{}")
		step.Tools = tools("other")
		s.Add(step)
	}
	require.Len(t, s.toolsets, 1, "those of the dropped steps are gone")
}

// Tools are compared with a limited number of lists, the newest ones. Those that are used again stay.
func TestToolsAreComparedWithTheNewest(t *testing.T) {
	t.Parallel()
	s := newSteps(1000, 1<<20)
	for i := range 2 * mostCompared {
		for _, name := range []string{"always", fmt.Sprint(i)} {
			step := call("m", "t", "{}")
			step.Tools = []middleware.Tool{{Name: name}}
			s.Add(step)
		}
	}
	require.Len(t, s.toolsets, 2*mostCompared+1)
	step := call("m", "t", "{}")
	step.Tools = []middleware.Tool{{Name: "0"}}
	s.Add(step)
	require.Len(t, s.toolsets, 2*mostCompared+2, "it was too long ago")
}

// A list of which only a part is kept is kept once, too.
func TestLargeToolsAreKeptOnce(t *testing.T) {
	t.Parallel()
	s := newSteps(1000, 40_000)
	for i := range 3 {
		step := call("m", "t", "{}")
		step.Tools = []middleware.Tool{{Name: "small"}, {Name: fmt.Sprint("large", i), Parameters: make([]byte, 20_000)}}
		s.Add(step)
		require.Len(t, s.toolsets, 1)
	}
}

// Tools are the same only if their names, kinds and schemas are.
func TestToolsAreToldApart(t *testing.T) {
	t.Parallel()
	s := newSteps(100, 1<<20)
	for i, tools := range [][]middleware.Tool{
		nil,
		{{Name: "ab", Parameters: []byte("{}")}},
		{{Name: "ba", Parameters: []byte("{}")}},
		{{Name: "ab", Parameters: []byte("[]")}},
		{{Name: "ab", Parameters: []byte("{}"), Kind: middleware.KindCustom}},
		{{Name: "ab{", Parameters: []byte("}")}},
		{{Name: "ab", Parameters: []byte("{}")}, {}},
	} {
		for range 2 {
			step := call("m", "t", "{}")
			step.Tools = tools
			s.Add(step)
		}
		require.Len(t, s.toolsets, i+1)
	}
}

// What is kept is a copy, so that a small text does not keep the whole answer that
// it is a part of.
func TestStepsAreCopies(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("x", 100)
	step := call(body[:4], body[4:8], body[8:20])
	step.Attempts[0].Replies = []report.Reply{{Text: body[20:30]}}
	s := newSteps(10, 1<<20)
	s.Add(step)
	e := s.get(1)
	first := uintptr(unsafe.Pointer(unsafe.StringData(body)))
	for _, text := range []string{e.step.Model, e.step.Attempts[0].Calls[0].Sent.Name, e.step.Attempts[0].Calls[0].Sent.Arguments, e.step.Attempts[0].Calls[0].Ran.Arguments, e.step.Attempts[0].Replies[0].Text} {
		at := uintptr(unsafe.Pointer(unsafe.StringData(text)))
		require.False(t, first <= at && at < first+100, text)
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	s := newSteps(50, 1<<20)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 200 {
				s.Add(call("m", "t", fmt.Sprint(i)))
				for _, e := range s.all() {
					_ = e.row().Number
				}
				s.get(uint64(i))
				s.tools()
			}
		})
	}
	wg.Wait()
	steps, _, of := s.kept()
	require.Equal(t, 50, steps)
	require.EqualValues(t, 800, of)
}
