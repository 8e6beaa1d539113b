package rescue

import (
	"strings"
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// Bounds on text that is held and may turn out not to be a call.
const (
	maxHeld     = 4 << 10 // bytes
	maxHeldTime = 2 * time.Second
)

// streamGate keeps events from a sink while their text may be a call. Events are passed
// on whole and in order.
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
	since   time.Time // when the place was reached at which the text is held
	reasks  bool      // markup that is not read is asked about
	overdue bool      // the place has reached a bound: its text is not held until an offered tool is named
}

// newHeld returns a held for one attempt. A reset begins the next one.
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
		safe = 0 // a text of white space is not an answer beside a call
	}
	return h.pass(safe)
}

// waits reports whether the scanner waits at text that may turn out not to be a
// call.
func (h *streamGate) undecided() bool {
	return h.scan.undecided && !h.scan.named && h.scan.safeFrom == 0 && len(h.scan.pieces) == 0
}

// marked reports whether the text begins with markup that was not read, and is asked
// about if none of it was shown.
func (h *streamGate) asksAgain() bool {
	return h.reasks && !h.started && len(h.scan.pieces) == 0 && h.scan.unknownMark >= 0 && blank(h.scan.text[:h.scan.unknownMark])
}

// late reports whether the held text has reached a bound.
func (h *streamGate) boundReached() bool {
	return h.text.Len()-h.sent > maxHeld || time.Since(h.since) >= maxHeldTime
}

// due returns how long the text may still be held. 0 means that its time is over,
// or that it has no bound.
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

// replace sends what the sink lacks of a message whose calls were rescued. If the
// sink has text that the message has not, EventReset and the message's text
// come first.
func (h *streamGate) replace(m middleware.Message) error {
	if h.text.Len()+h.think.Len() == 0 {
		return h.release() // the model did not stream
	}
	text, has := m.Text(), h.text.String()[:h.sent]
	var events []middleware.Event
	for _, e := range h.queue {
		if e.Kind != middleware.EventText {
			events = append(events, e)
		}
	}
	if rest, ok := strings.CutPrefix(text, has); ok && reasoning(m) == h.think.String() {
		events = append(events, middleware.Event{Kind: middleware.EventText, Step: h.step, Text: rest})
	} else {
		events = []middleware.Event{{Kind: middleware.EventReasoning, Step: h.step, Text: reasoning(m)}, {Kind: middleware.EventText, Step: h.step, Text: text}}
		if h.started {
			if err := h.sink(middleware.Event{Kind: middleware.EventReset, Step: h.step}); err != nil {
				return err
			}
		}
	}
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
