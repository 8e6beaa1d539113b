package rescue

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// Bounds on text that is held and may turn out not to be a call.
const (
	maxHeld     = 4 << 10 // bytes
	maxHeldTime = 2 * time.Second
)

// streamGate holds events back from a sink while their text may be a call. It passes events on
// unchanged and in order.
type streamGate struct {
	sink  middleware.Sink
	table *table
	tools *tools

	queue   []middleware.Event
	text    strings.Builder // all text of the attempt
	lead    int             // length of the white space that the text begins with
	sent    int             // bytes of text that the sink has
	started bool            // the sink has an event of the attempt
	step    int             // Event.Step
	hasCall bool            // a tool call has arrived: nothing is held
	think   strings.Builder // all reasoning of the attempt
	scan    *scanner
	since   time.Time // since when the text is held
	reasks  bool      // Options.ReaskUnread
	overdue bool      // a bound was reached: the text flows until it names an offered tool
}

// newStreamGate returns a gate for one attempt. EventReset begins the next one.
func newStreamGate(sink middleware.Sink, t *table, tools *tools, reasks bool) *streamGate {
	return &streamGate{sink: sink, table: t, tools: tools, reasks: reasks, scan: newScanner(t, tools)}
}

// event is the sink that the model gets.
func (h *streamGate) event(e middleware.Event) error {
	switch {
	case e.Kind == middleware.EventReset:
		started := h.started
		*h = *newStreamGate(h.sink, h.table, h.tools, h.reasks)
		if started {
			return h.sink(e)
		}
		return nil
	case e.Kind == middleware.EventToolCall:
		h.hasCall = true
	case e.Kind == middleware.EventText && !h.hasCall:
		h.step = e.Step
		h.text.WriteString(e.Text)
	case e.Kind == middleware.EventReasoning:
		h.think.WriteString(e.Text)
	}
	h.queue = append(h.queue, e)
	if h.hasCall {
		return h.release()
	}
	return h.advance()
}

// advance passes on the events whose text cannot belong to a call.
func (h *streamGate) advance() error {
	h.scan.text = h.text.String()
	at, fault := h.scan.pos, h.scan.fault
	h.scan.run()
	if h.since.IsZero() || h.scan.pos != at && (h.scan.fault == nil || fault == nil && h.scan.fault.start != at) {
		h.since, h.overdue = time.Now(), false
	}
	asksAgain := h.asksAgain()
	h.overdue = h.overdue || (h.undecided() || h.scan.fault != nil || asksAgain) && h.boundReached()
	safe := max(h.scan.pos, h.scan.safeFrom)
	switch {
	case len(h.scan.pieces) > 0:
		safe = h.scan.pieces[0].start
	case h.scan.fault != nil && !h.overdue:
		safe = h.scan.fault.start
	case asksAgain && !h.overdue:
		safe = 0
	case h.undecided() && h.overdue:
		safe = h.text.Len()
	}
	if h.lead = max(h.lead, h.scan.space(h.lead)); h.lead >= safe {
		safe = 0 // white space before a call is not shown
	}
	return h.pass(safe)
}

// undecided reports whether the scanner waits for the rest of a text that may not be a call.
func (h *streamGate) undecided() bool {
	return h.scan.undecided && !h.scan.named && h.scan.safeFrom == 0 && len(h.scan.pieces) == 0
}

// asksAgain reports whether the model will be re-asked because the text begins with unknown
// markup. That needs a sink that has no event of the attempt.
func (h *streamGate) asksAgain() bool {
	return h.reasks && !h.started && len(h.scan.pieces) == 0 && h.scan.unknownMark >= 0 && blank(h.scan.text[:h.scan.unknownMark])
}

// boundReached reports whether the held text has reached a bound.
func (h *streamGate) boundReached() bool {
	return h.text.Len()-h.sent > maxHeld || time.Since(h.since) >= maxHeldTime
}

// timeLeft returns how long the text may still be held. 0 means that its time is over or has no
// bound.
func (h *streamGate) timeLeft() time.Duration {
	broken := h.scan.fault != nil && len(h.scan.pieces) == 0 || h.asksAgain()
	if h.hasCall || h.overdue || len(h.queue) == 0 || !h.undecided() && !broken {
		return 0
	}
	return max(0, maxHeldTime-time.Since(h.since))
}

// pass sends the events that end before safe.
func (h *streamGate) pass(safe int) error {
	for len(h.queue) > 0 {
		e := h.queue[0]
		n := 0
		if e.Kind == middleware.EventText {
			n = len(e.Text)
		}
		if n > 0 && h.sent+n > safe {
			return nil
		}
		h.queue = h.queue[1:]
		h.sent += n
		h.started = true
		if err := h.sink(e); err != nil {
			return err
		}
	}
	return nil
}

// release sends everything that is held.
func (h *streamGate) release() error { return h.pass(h.sent + h.text.Len() + 1<<30) }

// replace sends the rest of a message whose calls were rescued. If the sink has text that is
// not in the message, EventReset and the whole text are sent.
func (h *streamGate) replace(m middleware.Message) error {
	if h.text.Len()+h.think.Len() == 0 {
		return h.release() // the model did not stream
	}
	text, has := m.Text(), h.text.String()[:h.sent]
	events := slices.DeleteFunc(slices.Clone(h.queue), func(e middleware.Event) bool { return e.Kind == middleware.EventText })
	rest, ok := strings.CutPrefix(text, has)
	if !ok || reasoning(m) != h.think.String() {
		return h.whole(m)
	}
	return h.send(append(events, middleware.Event{Kind: middleware.EventText, Step: h.step, Text: rest}))
}

// whole sends the reasoning and the text of m in place of what the sink has.
func (h *streamGate) whole(m middleware.Message) error {
	if h.started {
		if err := h.sink(middleware.Event{Kind: middleware.EventReset, Step: h.step}); err != nil {
			return err
		}
	}
	return h.send([]middleware.Event{{Kind: middleware.EventReasoning, Step: h.step, Text: reasoning(m)}, {Kind: middleware.EventText, Step: h.step, Text: m.Text()}})
}

// send sends events, without those that have no text.
func (h *streamGate) send(events []middleware.Event) error {
	for _, e := range events {
		if e.Text == "" && (e.Kind == middleware.EventText || e.Kind == middleware.EventReasoning) {
			continue
		}
		if err := h.sink(e); err != nil {
			return err
		}
	}
	return nil
}

// timedGate is a streamGate that passes text on in time even if no event follows. A timer does
// that on its own goroutine, between two events of the model.
type timedGate struct {
	*streamGate
	mu    sync.Mutex  // the sink is on one goroutine at a time
	timer *time.Timer // nil before something is held
	armed bool        // the timer may pass something on
	err   error       // of the sink, when the timer called it
}

// event is the sink that the model gets.
func (t *timedGate) event(e middleware.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return t.err
	}
	err := t.streamGate.event(e)
	t.arm()
	return err
}

// arm sets the timer to the time at which the held text reaches its bound.
func (t *timedGate) arm() {
	wait := t.timeLeft()
	t.armed = wait > 0
	switch {
	case !t.armed:
	case t.timer == nil:
		t.timer = time.AfterFunc(wait, t.elapsed)
	default:
		t.timer.Reset(wait)
	}
}

// elapsed runs when the bound is reached. On this goroutine a panic would end the
// program, so it becomes the error of the step.
func (t *timedGate) elapsed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			t.err = fmt.Errorf("rescue: %w", middleware.NewPanicError(p))
		}
	}()
	if !t.armed || t.timeLeft() > 0 { // an event came first
		return
	}
	if t.err = t.advance(); t.err == nil {
		t.arm()
	}
}

// stop ends the attempt: the timer passes nothing on any more. It returns the error of the sink
// if the timer met one.
func (t *timedGate) stop() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = false
	if t.timer != nil {
		t.timer.Stop()
	}
	return t.err
}
