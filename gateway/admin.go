package gateway

import (
	"io"
	"net/http"
	"strings"
)

// Admin returns the handler of Config.AdminListen: the gateway's own pages.
func (g *Gateway) Admin() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := g.state.Load()
		in, refused := s.admin.admit(r)
		if refused != nil {
			refused.write(w, r)
			return
		}
		g.ownPages(w, in, s, true)
	})
}

// ownPages serves the paths below ownPath. The probes answer ok or not, and need no key. all
// means that the listener serves the other pages too.
func (g *Gateway) ownPages(w http.ResponseWriter, r *http.Request, s *state, all bool) {
	page := strings.TrimPrefix(r.URL.Path, ownPath)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case page == "/healthz":
		_, _ = io.WriteString(w, "ok\n")
	case page == "/readyz" && g.draining.Load():
		http.Error(w, "draining", http.StatusServiceUnavailable)
	case page == "/readyz":
		_, _ = io.WriteString(w, "ok\n")
	case page == "/metrics" && all && g.options.Metrics != nil:
		g.options.Metrics.ServeHTTP(w, r)
	case page != "/metrics" && all && s.page != nil:
		s.page.ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}
