package logbatch_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/logbatch"
)

// disk notes what is written to it, and when. It hangs while gate is open.
type disk struct {
	gate  chan struct{} // nil does not hang
	err   error
	mu    sync.Mutex
	wrote []string
	at    []time.Time
}

func (d *disk) Write(p []byte) (int, error) {
	if d.gate != nil {
		<-d.gate
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return 0, d.err
	}
	d.wrote, d.at = append(d.wrote, string(p)), append(d.at, time.Now())
	return len(p), nil
}

func (d *disk) batches() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wrote
}

// Lines gather for 20 ms, and the one that logs does not wait.
func TestBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d disk
		w := logbatch.New(&d)
		start := time.Now()
		for i := range 3 {
			_, err := fmt.Fprintf(w, "line %d\n", i)
			require.NoError(t, err)
			time.Sleep(5 * time.Millisecond)
		}
		require.Empty(t, d.batches())
		time.Sleep(time.Minute)
		fmt.Fprintln(w, "later")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"line 0\nline 1\nline 2\n", "later\n"}, d.batches())
		require.Equal(t, 20*time.Millisecond, d.at[0].Sub(start))
	})
}

// A batch that is large enough is written at once, and so is what Hurry asks for.
func TestHurry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d disk
		w := logbatch.New(&d)
		w.Hurry() // of nothing
		line := strings.Repeat("x", 1023) + "\n"
		for range 32 {
			fmt.Fprint(w, line)
		}
		synctest.Wait()
		require.Equal(t, []string{strings.Repeat(line, 32)}, d.batches())
		fmt.Fprintln(w, "soon")
		synctest.Wait()
		require.Len(t, d.batches(), 1)
		w.Hurry()
		synctest.Wait()
		require.Equal(t, "soon\n", d.batches()[1])
	})
}

// A record that is rare or loud is written at once, and those before it.
func TestHandler(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		log    func(*slog.Logger)
		atOnce bool
	}{
		"frequent":            {func(l *slog.Logger) { l.Info("model call") }, false},
		"a frequent warning":  {func(l *slog.Logger) { l.Warn("model call") }, true},
		"a panic":             {func(l *slog.Logger) { l.Error("model call") }, true},
		"rare, such as ready": {func(l *slog.Logger) { l.Info("ready") }, true},
		"below the level":     {func(l *slog.Logger) { l.Debug("model call") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var d disk
				w := logbatch.New(&d)
				log := slog.New(logbatch.Handler{Handler: slog.NewJSONHandler(w, nil), To: w, Writer: w, Frequent: "model call"})
				log.Info("model call", "n", 1)
				tc.log(log)
				synctest.Wait()
				require.Equal(t, tc.atOnce, len(d.batches()) == 1)
				w.Close()
				require.Contains(t, d.batches()[0], `"n":1`)
			})
		})
	}
}

// While the disk hangs no caller waits. What finds no room is lost, and counted.
func TestSlowDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &disk{gate: make(chan struct{})}
		w := logbatch.New(d)
		lost := 0
		line := strings.Repeat("x", 1023) + "\n"
		fmt.Fprint(w, line)
		time.Sleep(time.Second) // it is being written
		start := time.Now()
		for range 1024 + 5 {
			fmt.Fprint(w, line)
		}
		w.OnLost(func(n int) { lost += n })
		require.Equal(t, 5, lost)
		fmt.Fprint(w, line)
		require.Equal(t, 6, lost)
		require.Equal(t, start, time.Now())
		w.Flush()
		require.Equal(t, 2*time.Second, time.Since(start), "Flush does not wait for ever")
		close(d.gate)
		w.Close()
		require.Equal(t, 1025, strings.Count(strings.Join(d.batches(), ""), "\n"))
		require.Equal(t, 6, lost)
	})
}

// Lines that the disk refuses are lost, and counted.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &disk{err: errors.New("no space left")}
		w := logbatch.New(d)
		lost := 0
		w.OnLost(func(n int) { lost += n })
		fmt.Fprintln(w, "one")
		fmt.Fprintln(w, "two")
		w.Flush()
		require.Equal(t, 2, lost)
	})
}

// Close writes what waits. A line after it is written at once.
func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d disk
		w := logbatch.New(&d)
		fmt.Fprintln(w, "one")
		start := time.Now()
		w.Close()
		require.Equal(t, []string{"one\n"}, d.batches())
		fmt.Fprintln(w, "two")
		require.Equal(t, []string{"one\n", "two\n"}, d.batches())
		require.Equal(t, start, time.Now())
	})
}

// Concurrent writers lose no line, and each one's lines keep their order.
func TestOrder(t *testing.T) {
	t.Parallel()
	var d disk
	w := logbatch.New(&d)
	var all sync.WaitGroup
	for who := range 8 {
		all.Go(func() {
			for i := range 500 {
				fmt.Fprintf(w, "%d %d\n", who, i)
			}
		})
	}
	all.Wait()
	w.Close()
	next := map[int]int{}
	for line := range strings.Lines(strings.Join(d.batches(), "")) {
		var who, i int
		_, err := fmt.Sscanf(line, "%d %d", &who, &i)
		require.NoError(t, err)
		require.Equal(t, next[who], i)
		next[who]++
	}
	require.Len(t, next, 8)
	for _, n := range next {
		require.Equal(t, 500, n)
	}
}

// slowWriter copies a batch only after meanwhile has run, as a slow pipe does.
type slowWriter struct {
	meanwhile func()
	got       []string
}

func (s *slowWriter) Write(p []byte) (int, error) {
	s.meanwhile()
	s.got = append(s.got, string(p))
	return len(p), nil
}

// A write without lines, which a timer may cause that fires twice, must not make the next
// two batches share memory.
func TestBatchesDoNotShareMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		to := &slowWriter{meanwhile: func() {}}
		w := logbatch.New(to)
		line := func(text string) {
			_, err := w.Write([]byte(text + "\n"))
			require.NoError(t, err)
		}
		line("the first line")
		w.Flush()
		w.Flush()
		line("the second line")
		to.meanwhile = func() {
			to.meanwhile = func() {}
			line("meanwhile")
		}
		w.Flush()
		w.Flush()
		require.Equal(t, []string{"the first line\n", "the second line\n", "meanwhile\n"}, to.got)
	})
}
