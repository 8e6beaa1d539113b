package gateway

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// replayedBy sets the middleware that validates.
func (v *observing) replayedBy(m middleware.Middleware) {
	v.pipeline.replayer = newReplayer(v.pipeline.settings, nil, nil, m)
}

// before runs f before a response is validated.
func before(f func()) middleware.Middleware {
	return func(next middleware.ModelCall) middleware.ModelCall {
		next = argsvalidate.New(argsvalidate.Options{})(next)
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			f()
			return next(ctx, req)
		}
	}
}

// TestObservedBehind: while the workers are stuck, clients get their answers, and
// what the queue has no room for is dropped.
func TestObservedBehind(t *testing.T) {
	t.Parallel()
	v := observe(t, Settings{}, answering(200, "application/json", calls(validCall)), Options{})
	stuck, running := make(chan struct{}), make(chan struct{}, copyWorkers)
	v.replayedBy(before(func() { running <- struct{}{}; <-stuck }))
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	post := func() {
		resp, err := client.Post(v.URL+"/v1/chat/completions", "application/json", strings.NewReader(askedModel))
		require.NoError(t, err)
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, calls(validCall), string(b))
	}
	for range copyWorkers {
		post()
		<-running
	}
	for range queuedCopies + 3 {
		post()
	}
	v.Server.Close() // every handler has returned
	require.Positive(t, v.copies.reserved.Load())
	require.Len(t, v.all, 3, "reported at once")
	go func() {
		for range running { // for the rest
		}
	}()
	close(stuck)
	all := v.ends(t)
	close(running)
	dropped := 0
	for _, x := range all {
		if x.dropped != "" {
			require.Equal(t, droppedQueue, x.dropped)
			require.Equal(t, 200, x.code)
			dropped++
			continue
		}
		require.Equal(t, "valid", x.status)
	}
	require.Equal(t, 3, dropped)
	require.Len(t, all, copyWorkers+queuedCopies+3)
}

// TestObservedPanic: a panic of a rule is the error of the exchange, and a panic
// of an observer is logged. The client gets its answer, and the next one is
// validated.
func TestObservedPanic(t *testing.T) {
	t.Parallel()
	for _, body := range []string{calls(validCall), streamed(validCall)} {
		kind := "application/json"
		if strings.HasPrefix(body, "data") {
			kind = "text/event-stream"
		}
		v := observe(t, Settings{}, answering(200, kind, body), Options{})
		v.stream = kind == "text/event-stream"
		sick := true
		v.replayedBy(before(func() {
			if sick {
				sick = false
				panic("a rule")
			}
		}))
		for range 2 {
			_, got := v.ask(t)
			require.Equal(t, body, got)
			require.Eventually(t, func() bool { v.mu.Lock(); defer v.mu.Unlock(); return len(v.all) > 0 }, 10*time.Second, time.Millisecond)
		}
		all := v.ends(t)
		var broken *transport.Panic
		require.ErrorAs(t, all[0].err, &broken)
		require.Equal(t, "a rule", broken.Value)
		require.Contains(t, string(broken.Stack), "copies_internal_test.go")
		require.NoError(t, all[1].err)
		require.Equal(t, "valid", all[1].status)
	}
}

func TestObserverPanic(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	v := observe(t, Settings{}, answering(200, "application/json", calls(validCall)), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	v.pipeline.observers = []observer{sick{}}
	for range 2 {
		_, got := v.ask(t)
		require.Equal(t, calls(validCall), got)
	}
	v.ends(t)
	require.Equal(t, 2, strings.Count(log.String(), "panic=sick"))
	require.Contains(t, log.String(), "stack=")
}

type sick struct{}

func (sick) observed(*exchange) { panic("sick") }

// TestObservedMemory: a copy that is too long, alone or together with others, is
// dropped while the client gets its answer.
func TestObservedMemory(t *testing.T) {
	t.Parallel()
	long := `{"text":"` + strings.Repeat("x", 1<<20) + `"}`
	for want, limit := range map[string]func(v *observing){
		droppedMemory: func(v *observing) { v.copies.most = 100 << 10 },
		droppedSize:   func(v *observing) { v.pipeline.settings.MaxBody = 100 << 10 },
	} {
		v := observe(t, Settings{}, answering(200, "application/json", long), Options{})
		limit(v)
		most := int64(0)
		v.pipeline.handler = func(h http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				h.ServeHTTP(readingHeld{w, v.copies, &most}, r)
			}
		}(v.pipeline.handler)
		_, got := v.ask(t)
		require.Equal(t, long, got)
		x := v.ends(t)[0]
		require.Equal(t, want, x.dropped)
		require.Nil(t, x.request)
		require.Positive(t, most)
		require.LessOrEqual(t, most, int64(110<<10))
	}
}

// readingHeld keeps the most memory that was held at a write.
type readingHeld struct {
	http.ResponseWriter
	copies *copies
	most   *int64
}

func (w readingHeld) Write(p []byte) (int, error) {
	*w.most = max(*w.most, w.copies.reserved.Load())
	return w.ResponseWriter.Write(p)
}

func (w readingHeld) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// copyOf returns the copy of an exchange that is whole.
func (s *copies) copyOf(body string) *copied {
	c := s.begin(&exchange{path: "/v1/chat/completions", mode: Observe, header: http.Header{}}, 0)
	c.sent, c.status, c.header = time.Now(), 200, http.Header{"Content-Type": {"application/json"}}
	c.add(&c.request, []byte(askedModel), -1, io.EOF)
	c.add(&c.answer, []byte(body), -1, io.EOF)
	c.finish(nil)
	return c
}

// validating is a pipeline whose validation takes a time, or until its context
// ends.
func validating(to observer, took time.Duration) *pipeline {
	return &pipeline{observers: []observer{to}, replayer: newReplayer(Settings{}, nil, nil, func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			select {
			case <-time.After(took):
				return next(ctx, req)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	})}
}

// TestObservedClose: Close waits for what is queued, but not for ever. Then it
// drops what waits, and ends what runs.
func TestObservedClose(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ took, closed time.Duration }{{time.Second, 2*time.Second + gatherDelay}, {time.Hour, copyCloseWait}} {
		synctest.Test(t, func(t *testing.T) {
			m, counted := counting(t)
			seen := &noted{}
			s := newCopies(m, nil)
			for range copyWorkers + 1 {
				s.queue(s.copyOf(calls(validCall)), validating(seen, c.took))
			}
			start := time.Now()
			s.close()
			require.Equal(t, c.closed, time.Since(start))
			s.queue(s.copyOf(calls(validCall)), validating(seen, 0))
			s.close() // once more does nothing
			synctest.Wait()
			require.Len(t, seen.all, copyWorkers+2)
			require.Zero(t, s.reserved.Load())
			dropped := 0
			for _, x := range seen.all {
				switch {
				case x.dropped != "":
					require.Equal(t, droppedQueue, x.dropped)
					dropped++
				case c.took == time.Hour:
					require.ErrorIs(t, x.err, context.Canceled)
				default:
					require.NoError(t, x.err)
				}
			}
			require.Equal(t, dropped, counted("dropped"))
			require.Equal(t, map[time.Duration]int{time.Second: 1, time.Hour: 2}[c.took], dropped)
		})
	}
}

// TestObservedEnd: after the end of the answer nothing is copied any more,
// although the request may still be read.
func TestObservedEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newCopies(nil, nil)
		c := s.begin(&exchange{}, 0)
		c.sent = time.Now()
		time.Sleep(3 * time.Second) // the clock is synctest's
		c.finish(context.Canceled)
		require.Equal(t, 3*time.Second, c.x.upstreamTime)
		c.add(&c.request, []byte("late"), -1, nil)
		require.Empty(t, c.request)
		require.Zero(t, s.reserved.Load())
		require.ErrorIs(t, c.end, context.Canceled)
	})
}

// A copy takes the memory that its body declares, and little of what it only declares.
func TestCopiesOfDeclaredLength(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ declared, held int64 }{{-1, firstCopy}, {700, 700}, {3, 600}, {1 << 30, firstCopy}, {1 << 20, mostDeclared}} {
		s := newCopies(nil, nil)
		b := s.begin(&exchange{}, 32<<20)
		b.add(&b.request, make([]byte, 600), c.declared, nil)
		require.Equal(t, c.held, s.reserved.Load(), c.declared)
	}
}
