package gateway

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

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

func newTestRecorder(to *disk) (r *recorder, drops *int, log *bytes.Buffer) {
	drops, log = new(int), new(bytes.Buffer)
	r = &recorder{
		file: to, drop: func() { *drops++ }, log: slog.New(slog.NewTextHandler(log, nil)),
		queue: make(chan *exchange, queuedExchanges), stop: make(chan struct{}), done: make(chan struct{}),
	}
	return r, drops, log
}

func oneAttempt(text string) *exchange {
	return &exchange{report: middleware.Report{Attempts: []middleware.Attempt{{Message: middleware.Message{Parts: []middleware.Part{{Text: text}}}}}}}
}

// While the disk hangs, records are queued, then dropped; nothing waits.
func TestSlowDisk(t *testing.T) {
	t.Parallel()
	d := &disk{gate: make(chan struct{})}
	r, drops, _ := newTestRecorder(d)
	for range queuedExchanges + 10 { // nothing takes them yet
		r.observed(oneAttempt(""))
	}
	require.Equal(t, 10, *drops)
	go r.run()
	close(d.gate)
	r.close()
	require.Equal(t, queuedExchanges, strings.Count(d.String(), "\n"))
	r.observed(oneAttempt(""))
	require.Equal(t, 11, *drops, "after close")
}

func TestQueueIsBoundedByBytes(t *testing.T) {
	t.Parallel()
	r, drops, _ := newTestRecorder(&disk{})
	text := strings.Repeat("x", queuedBytes/4-(8<<10))
	for range 4 {
		r.observed(oneAttempt(text))
	}
	require.Equal(t, 2, *drops)
}

// A full disk loses records, counts them, and is logged once.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	d := &disk{gate: make(chan struct{}), err: errors.New("no space left")}
	close(d.gate)
	r, drops, log := newTestRecorder(d)
	for range 3 {
		r.observed(oneAttempt(""))
	}
	go r.run()
	r.close()
	require.Equal(t, 3, *drops)
	require.Equal(t, 1, strings.Count(log.String(), "no space left"))
}
