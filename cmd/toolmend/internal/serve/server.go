package serve

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/logbatch"
	"github.com/toolmend/toolmend/gateway"
)

// server is a running `toolmend serve`.
type server struct {
	flags   serveFlags
	config  config // as it was at the start
	gateway *gateway.Gateway
	log     *slog.Logger
	lines   *logbatch.Writer // of log
	level   *slog.LevelVar
	signals <-chan os.Signal
	cert    atomic.Pointer[tls.Certificate]

	listener, admin net.Listener // admin is nil without admin_listen
	clients         departing
}

// listen opens the listeners and reads the certificate.
func (s *server) listen() (err error) {
	if s.config.TLSCert != "" {
		if err = s.loadCert(s.config); err != nil {
			return err
		}
	}
	if s.listener, err = listen("listen", "--listen", s.config.Listen); err != nil || s.config.AdminListen == "" {
		return err
	}
	if s.admin, err = listen("admin_listen", "admin_listen", s.config.AdminListen); err != nil {
		_ = s.listener.Close()
	}
	return err
}

// run serves until ctx ends or a signal stops it. It returns whether all
// requests that had begun were finished.
func (s *server) run(ctx context.Context) bool {
	defer raiseHeap()()
	failed := make(chan error, 2)
	srv := s.newServer(s.clients.around(s.gateway))
	if s.config.TLSCert == "" {
		go func() { failed <- srv.Serve(s.listener) }()
	} else {
		srv.TLSConfig = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.cert.Load(), nil }}
		go func() { failed <- srv.ServeTLS(s.listener, "", "") }()
	}
	if s.admin != nil {
		admin := s.newServer(s.gateway.Admin())
		defer admin.Close() // after the drain, so that readyz answers until then
		go func() { failed <- admin.Serve(s.admin) }()
	}
	s.log.Info("ready", "address", s.listener.Addr().String())
	changed, stop := watchConfig(s.flags.config)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return s.drain(srv)
		case err := <-failed:
			s.log.Error("stopped: a listener failed", "error", err)
			_ = srv.Close()
			return false
		case <-changed:
			s.reload()
		case signal := <-s.signals:
			s.lines.Flush()
			if s.stops(signal) {
				return s.drain(srv)
			}
			s.reload()
		}
	}
}

// newServer returns a server for clients, over HTTP/1 and HTTP/2.
func (s *server) newServer(h http.Handler) *http.Server {
	srv := cli.NewServer(h)
	srv.ErrorLog = slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)
	srv.Protocols = new(http.Protocols)
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetHTTP2(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	srv.HTTP2 = &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second} // a client that is gone must not keep its place
	return srv
}

// stops reports whether a signal is one to stop. Without a file there is nothing
// to reload.
func (s *server) stops(signal os.Signal) bool { return s.flags.config == "" || !isReload(signal) }

// loadCert reads the certificate of c.
func (s *server) loadCert(c config) error {
	cert, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err == nil {
		s.cert.Store(&cert)
	}
	return err
}

// reload reads the configuration again. After an error the gateway keeps the
// one that it has.
func (s *server) reload() {
	c, err := s.flags.load()
	if err == nil {
		err = s.gateway.Reload(c.Config)
	}
	if err == nil && c.TLSCert != "" && s.config.TLSCert != "" {
		err = s.loadCert(c)
	}
	if err != nil {
		s.log.Error("configuration not reloaded: the previous one stays in force", "error", err)
		return
	}
	s.level.Set(levels[c.LogLevel])
	for _, k := range []struct{ key, old, now string }{
		{"listen", s.config.Listen, c.Listen},
		{"admin_listen", s.config.AdminListen, c.AdminListen},
		{"tls_cert", s.config.TLSCert, c.TLSCert},
	} {
		if k.old != k.now && (k.key != "tls_cert" || (k.old == "") != (k.now == "")) {
			s.log.Warn("a changed key needs a restart", "key", k.key, "in_force", k.old, "file", k.now)
		}
	}
	s.log.Info("configuration reloaded", "file", s.flags.config)
}
