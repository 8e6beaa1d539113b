package serve

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/toolmend/toolmend/gateway"
)

// notice is how long the server still accepts connections and requests after the
// signal to stop. http.Server.Shutdown alone closes the connections of clients
// that send their next request at that moment, and those requests are lost.
const notice = 200 * time.Millisecond

// drain stops the server, in at most drain_timeout. From the signal on, every
// response tells the client that its connection closes. After notice the listener
// closes, and then the connections whose requests are finished. drain returns
// whether all requests that had begun were finished. A further signal that is not
// a reload ends them at once.
func (s *server) drain(srv *http.Server) bool {
	ctx, cancel := context.WithCancel(context.Background())
	if s.config.DrainTimeout != gateway.Off {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(s.config.DrainTimeout))
	}
	defer cancel()
	go s.hasten(ctx, cancel)
	s.gateway.Drain()
	s.clients.leave.Store(true)
	s.log.Info("stopping: waiting for the requests that have begun; press Ctrl-C again to stop at once", "limit", s.config.DrainTimeout.String())
	select {
	case <-time.After(notice):
	case <-ctx.Done():
	}
	_ = s.listener.Close()
	s.clients.wait(ctx)
	if err := srv.Shutdown(ctx); err != nil && !errors.Is(err, net.ErrClosed) { // of the listener
		_ = srv.Close()
		s.log.Warn("stopped: requests were cut off")
		return false
	}
	s.log.Info("stopped")
	return true
}

// hasten calls cancel at a further signal to stop.
func (s *server) hasten(ctx context.Context, cancel context.CancelFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case signal := <-s.signals:
			s.lines.Flush()
			if !isReload(signal) {
				cancel()
			}
		}
	}
}

// departing counts requests, and tells clients to leave.
type departing struct {
	leave   atomic.Bool  // tell them
	open    atomic.Int64 // requests without a whole response
	lastEnd atomic.Int64 // Unix nanoseconds of the end of a response that did not tell its client
}

// around returns h with departing around it.
func (d *departing) around(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.open.Add(1)
		own := &departingWriter{ResponseWriter: w, d: d}
		defer own.end()
		h.ServeHTTP(own, r)
	})
}

// wait returns when no request is open, and the clients of the last responses had
// time to send one more and to be told.
func (d *departing) wait(ctx context.Context) {
	tick := time.NewTicker(notice / 20)
	defer tick.Stop()
	for d.open.Load() > 0 || time.Since(time.Unix(0, d.lastEnd.Load())) < notice {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// departingWriter adds the header that tells the client: over HTTP/2, net/http
// sends GOAWAY for it.
type departingWriter struct {
	http.ResponseWriter
	d     *departing
	begun bool // a final status was written
	told  bool
	ended bool // counted
}

// WriteHeader adds the header before the first final status.
func (w *departingWriter) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.begins()
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write adds the header if there was no status.
func (w *departingWriter) Write(p []byte) (int, error) {
	w.begins()
	return w.ResponseWriter.Write(p)
}

// Hijack counts the request as ended: from then on nothing waits for the
// connection, as in http.Server.Shutdown.
func (w *departingWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.begun = true
		w.end()
	}
	return conn, rw, err
}

// Unwrap is for http.ResponseController.
func (w *departingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *departingWriter) begins() {
	if w.begun {
		return
	}
	w.begun = true
	if w.told = w.d.leave.Load(); w.told {
		w.Header().Set("Connection", "close")
	}
}

// end counts the request as finished, once.
func (w *departingWriter) end() {
	if w.ended {
		return
	}
	w.ended = true
	w.begins()
	if !w.told {
		w.d.lastEnd.Store(time.Now().UnixNano())
	}
	w.d.open.Add(-1)
}
