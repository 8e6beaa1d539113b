package gateway

import (
	"bufio"
	"net"
	"net/http"
	"strings"
)

// asksForUpgrade reports whether a request on the path of a model call wants
// another protocol, in which the calls could not be validated. The exception is
// a POST that offers HTTP/2, as Java's client does with each of its requests: it
// is answered in HTTP/1.1.
func asksForUpgrade(r *http.Request) bool {
	protocol := strings.ToLower(strings.Join(r.Header["Upgrade"], ","))
	return protocol != "" && (r.Method != http.MethodPost || strings.Contains(protocol, "websocket"))
}

// upgrade serves such a request. Codex and others fall back to HTTP after the
// status 426.
func (p *pipeline) upgrade(w http.ResponseWriter, r *http.Request, dialect string) {
	if p.settings.WebSockets == PassWebSockets || p.settings.Mode == Observe {
		p.watched(p.handler, w, r, dialect)
		return
	}
	refuse(w, r, http.StatusUpgradeRequired, "websocket_refused",
		`the tool calls of a WebSocket cannot be validated; send the request over HTTP, or set websockets = "pass" to pass it unread`)
}

// Hijack notes the status 101, after which the connection is the
// upstream's: that status does not go through WriteHeader.
func (w *statusWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.status = http.StatusSwitchingProtocols
	}
	return conn, rw, err
}
