package answer

import (
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// textBuffer holds text back from a sink until the step has accepted the text. It passes other
// events on. A message with a tool call is not an answer, so the first tool call releases the
// text.
type textBuffer struct {
	sink    middleware.Sink
	text    strings.Builder
	step    int  // of the text
	shown   bool // an event has reached the sink
	hasCall bool // a tool call has arrived
}

// event is the sink that the model gets.
func (h *textBuffer) event(e middleware.Event) error {
	switch e.Kind {
	case middleware.EventReset:
		shown := h.shown
		h.text.Reset()
		h.shown, h.hasCall = false, false
		if !shown {
			return nil
		}
	case middleware.EventText:
		if !h.hasCall {
			h.step = e.Step
			h.text.WriteString(e.Text)
			return nil
		}
	case middleware.EventToolCall:
		h.hasCall = true
		if err := h.flush(h.text.String()); err != nil {
			return err
		}
	}
	h.shown = h.shown || e.Kind != middleware.EventReset
	return h.sink(e)
}

// show sends the held text to the sink: as it arrived, or text if it was
// repaired. It does nothing if no text is held.
func (h *textBuffer) show(text string, repaired bool) error {
	if h.text.Len() == 0 {
		return nil
	}
	if !repaired {
		text = h.text.String()
	}
	return h.flush(text)
}

func (h *textBuffer) flush(text string) error {
	h.text.Reset()
	if text == "" {
		return nil
	}
	h.shown = true
	return h.sink(middleware.Event{Kind: middleware.EventText, Step: h.step, Text: text})
}
