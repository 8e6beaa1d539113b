package gateway

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/page"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
)

// Admin returns the handler of Config.AdminListen: the gateway's own pages.
func (g *Gateway) Admin() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := g.state.Load()
		in, refused := s.admin.admit(r)
		if refused != nil {
			g.refuse(w, r, *refused)
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

// Page configures the page that shows the steps of a gateway, with the contents of calls. It is
// at /_toolmend/ on AdminListen. Without AdminListen it is on Listen if that is loopback, else
// there is no page. PagePath opens it, and so does the key in the environment variable
// TOOLMEND_ADMIN_KEY, by HTTP Basic authentication.
type Page struct {
	// Off means that there is no page and no step is kept.
	Off bool `toml:"off,omitempty"`
	// Memory is how many bytes the kept steps may take. The oldest are dropped. 0
	// means 8 MiB. At most 10,000 steps are kept.
	Memory int64 `toml:"memory,omitempty"`
}

const (
	adminKeyVariable  = "TOOLMEND_ADMIN_KEY"
	defaultPageMemory = 8 << 20
)

// PagePath returns the path and the query that open the page, such as
// /_toolmend/?token=…, or "" if there is no page. The token is another one in
// each Gateway, and a reload keeps it.
func (g *Gateway) PagePath() string {
	if g.state.Load().page == nil {
		return ""
	}
	return ownPath + "/?token=" + g.token
}

// newPage returns the handler of the page, or nil if there is no page.
func (g *Gateway) newPage(c Config, s *state) (http.Handler, error) {
	key, err := adminKey()
	if err != nil {
		return nil, fmt.Errorf("gateway: page: %w", err)
	}
	if c.Page.Off || !s.adminHere && c.AdminListen == "" {
		return nil, nil
	}
	return page.New(g.keeper.steps, page.Options{Root: ownPath, Access: page.Access{Token: g.token, Key: key}, Live: true}), nil
}

// resizePage sets how much g keeps for the page.
func (g *Gateway) resizePage(c Config, s *state) {
	if s.page == nil {
		g.keeper.steps.Resize(0)
	} else {
		g.keeper.steps.Resize(cmp.Or(c.Page.Memory, defaultPageMemory))
	}
}

// adminKey returns the key that opens the page as the token does, or "".
func adminKey() (string, error) {
	key, set := os.LookupEnv(adminKeyVariable)
	if !set {
		return "", nil
	}
	return checkedKey("admin", adminKeyVariable, key)
}

// keeper keeps steps for the page.
type keeper struct {
	steps   *page.Steps
	metrics *metrics
	log     *slog.Logger
}

func newKeeper(m *metrics, log *slog.Logger) *keeper {
	return &keeper{steps: page.NewSteps(defaultPageMemory), metrics: m, log: log}
}

// observed adds an exchange to the steps.
func (k *keeper) observed(x *exchange) {
	guarded(k.metrics, k.log, x, "a step is not on the page", func() { k.steps.Add(x.step()) })
}

// step returns x as the page shows it.
func (x *exchange) step() report.Step {
	s := report.Step{
		Time: x.start, Source: x.upstream, Client: x.client, ClientKey: x.key, Mode: string(x.mode), Format: x.dialect, Path: x.path, Model: x.model(),
		Final: x.report.Final, Status: middleware.Status(x.status), Code: x.code, Notes: slices.Clone(x.report.Notes),
		Duration: x.duration, Overhead: x.overhead(), Error: x.errorWord(),
	}
	if x.request != nil {
		s.Tools = x.request.Tools
	}
	switch {
	case x.dropped != "":
		s.Notes = append(s.Notes, "not validated: "+x.dropped)
	case x.unread:
		s.Notes = append(s.Notes, "the request or the answer could not be read, so no call was validated")
	case x.enforced != "":
		s.Notes = append(s.Notes, "mode observe: with enforce this would be "+string(x.enforced))
	}
	s.Attempts = x.checker.Attempts(context.Background(), x.report, s.Tools, errorCode)
	if len(s.Attempts) == 0 {
		s.Final = -1
	}
	return s
}
