package gateway

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
)

// disk is a file that is slow until gate is closed, and fails if err is set.
type disk struct {
	bytes.Buffer
	gate chan struct{}
	err  error
}

func (d *disk) Write(p []byte) (int, error) {
	<-d.gate
	if d.err != nil {
		return 0, d.err
	}
	return d.Buffer.Write(p)
}

func (d *disk) Close() error { return nil }

func newTestRecorder(t *testing.T, to *disk) (r *recorder, counted func(string) int, log *bytes.Buffer) {
	m, counted := counting(t)
	log = new(bytes.Buffer)
	return newRecorder(Record{}, to, m, slog.New(slog.NewTextHandler(log, nil))), counted, log
}

func oneAttempt(text string) *exchange {
	return &exchange{report: middleware.Report{Attempts: []middleware.Attempt{{Message: middleware.Message{Parts: []middleware.Part{{Text: text}}}}}}}
}

// While the disk hangs, records are queued, then dropped; nothing waits.
func TestSlowDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &disk{gate: make(chan struct{})}
		r, counted, _ := newTestRecorder(t, d)
		r.observed(oneAttempt(""))
		synctest.Wait() // it is being written
		for range queuedExchanges + 10 {
			r.observed(oneAttempt(""))
		}
		require.Equal(t, 10, counted("dropped"))
		close(d.gate)
		r.close()
		require.Equal(t, 1+queuedExchanges, strings.Count(d.String(), "\n"))
		r.observed(oneAttempt(""))
		require.Equal(t, 11, counted("dropped"), "after close")
	})
}

func TestRecordsAreBoundedByBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &disk{gate: make(chan struct{})}
		r, counted, _ := newTestRecorder(t, d)
		r.observed(oneAttempt(""))
		synctest.Wait()
		text := strings.Repeat("x", queuedBytes/4-(8<<10))
		for range 4 {
			r.observed(oneAttempt(text))
		}
		require.Equal(t, 2, counted("dropped"))
		close(d.gate)
		r.close()
	})
}

// A full disk loses records, counts them, and is logged once.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	d := &disk{gate: make(chan struct{}), err: errors.New("no space left")}
	close(d.gate)
	r, counted, log := newTestRecorder(t, d)
	for range 3 {
		r.observed(oneAttempt(""))
	}
	r.close()
	require.Equal(t, 3, counted("dropped"))
	require.Equal(t, 1, strings.Count(log.String(), "no space left"))
}

// A panic while an answer is recorded does not end the process.
func TestRecordPanic(t *testing.T) {
	t.Parallel()
	d := &disk{gate: make(chan struct{})}
	close(d.gate)
	r, counted, log := newTestRecorder(t, d)
	sick := oneAttempt("")
	sick.report.Attempts[0].Err = panicking{}
	r.observed(sick)
	r.observed(oneAttempt(""))
	r.close()
	require.Equal(t, 1, counted("panics"))
	require.Contains(t, log.String(), "an answer is not recorded")
	require.Equal(t, 1, strings.Count(d.String(), "\n"), "the next one is")
}
