package rescue

import (
	"fmt"
	"sync"
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// timed is a held whose text is passed on in time even if no event follows. A
// timer does that on a goroutine of its own, between two events of the model.
type timedGate struct {
	*streamGate
	mu    sync.Mutex  // the sink is on one goroutine at a time
	timer *time.Timer // nil before something is held
	armed bool        // the timer may pass something on
	err   error       // what the timer ended with
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

// stop ends the attempt: the timer passes nothing on any more. The error is that
// of the sink, if the timer met it.
func (t *timedGate) stop() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = false
	if t.timer != nil {
		t.timer.Stop()
	}
	return t.err
}
