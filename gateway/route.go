package gateway

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/transport"
	"github.com/toolmend/toolmend/wire"
)

// state is a configuration that is ready to serve.
type state struct {
	guard     *guard
	admin     *guard       // of the listener for the metrics
	upstreams []*upstream  // the longest prefix first
	fallback  *upstream    // for models that no other upstream serves; may be nil
	recorder  *recorder    // nil if nothing is recorded
	adminHere bool         // the main listener serves the metrics and the page
	page      http.Handler // nil if there is no page
	decoders  map[string]transport.Decoder
	limits    allowances // of the clients with limits
	memory    *transport.Memory
}

// upstream is an Upstream that is ready to serve.
type upstream struct {
	config   Upstream
	version  string // at the end of its URL, such as /v1, or ""
	base     *http.Transport
	settings Settings
	places   *places
	pipeline *pipeline // for models that no rule matches
	rules    []modelRule
	clients  map[string]*upstream // the same for the clients that a Rule names
}

type modelRule struct {
	match    string
	pipeline *pipeline
}

// newState returns the state for c. It shares with old what has not changed.
func (g *Gateway) newState(c Config, old *state) (*state, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.Listen, c.AdminListen = g.listen, g.adminListen
	guard, err := newGuard(c)
	if err != nil {
		return nil, err
	}
	s := &state{guard: guard, admin: c.adminGuard(), adminHere: c.AdminListen == "" && guard.loopback, decoders: g.decoders(), memory: g.metrics.memory}
	observers := []observer{g.metrics}
	if s.limits = newAllowances(c.Clients, old); len(s.limits) > 0 {
		observers = append(observers, s.limits)
		for client := range s.limits {
			g.metrics.refuse(rateLimited, client, 0)
		}
	}
	if g.options.Logger != nil {
		observers = append(observers, logger{g.options.Logger})
	}
	if c.Record.File != "" {
		if s.recorder, err = g.openRecorder(c.Record, old); err != nil {
			return nil, invalid("record.file", "%w", err)
		}
		observers = append(observers, s.recorder)
	}
	if s.page, err = g.newPage(c, s); err != nil {
		return nil, err
	}
	if s.page != nil {
		observers = append(observers, g.keeper)
	}
	rules, err := c.ruleSet(true, g.options.DialContext)
	if err != nil {
		return nil, err
	}
	if rules.hook != nil {
		rules.hook.failed = g.metrics.countHook
	}
	for i, u := range c.Upstreams {
		u.rules = rules
		up, err := g.newUpstream(u, c.Settings, old.placesOf(u.name()), observers)
		if err != nil {
			return nil, within("upstream", i, u.name(), err)
		}
		s.upstreams = append(s.upstreams, up)
		if u.Default || len(c.Upstreams) == 1 {
			s.fallback = up
		}
	}
	slices.SortStableFunc(s.upstreams, func(a, b *upstream) int {
		return cmp.Compare(len(b.config.Prefix), len(a.config.Prefix))
	})
	return s, nil
}

func (g *Gateway) newUpstream(u Upstream, base Settings, slots *places, observers []observer) (*upstream, error) {
	headers, err := u.Headers.expand()
	if err != nil {
		return nil, err
	}
	to, err := url.Parse(u.URL)
	if err != nil {
		return nil, err
	}
	up := &upstream{config: u, version: cutVersion(to), base: newBase(u.Timeouts, g.options.DialContext), settings: u.Settings.over(base), places: slots}
	sends := &headerRules{headers, &idleLimit{u.Timeouts.Idle.or(5 * time.Minute), up.base}}
	serve := func(client string) *upstream {
		u, of := u, *up
		u.client = client
		of.pipeline = g.newPipeline(u, to, of.settings, sends, slots, observers)
		for _, r := range u.ModelRules {
			of.rules = append(of.rules, modelRule{r.Match, g.newPipeline(u, to, r.Settings.over(of.settings), sends, slots, observers)})
		}
		return &of
	}
	all := serve("")
	all.clients = map[string]*upstream{}
	for _, r := range u.rules.rules {
		if r.Client != "" && all.clients[r.Client] == nil {
			all.clients[r.Client] = serve(r.Client)
		}
	}
	return all, nil
}

// placesOf returns the places of the upstream with a name, which may be new. s may be nil.
func (s *state) placesOf(name string) *places {
	if s != nil {
		for _, u := range s.upstreams {
			if u.config.name() == name {
				return u.places
			}
		}
	}
	return &places{}
}

// retire closes the connections that are idle, and the recorder unless next has
// it too. Connections in use are closed when they become idle.
func (s *state) retire(next *state) {
	for _, u := range s.upstreams {
		u.base.CloseIdleConnections()
	}
	if s.recorder != nil && (next == nil || next.recorder != s.recorder) {
		s.recorder.close()
	}
}

// errNoUpstream is the error of a request that no upstream serves.
var errNoUpstream = errors.New("toolmend: no upstream serves this path and model, and none is marked default")

// errUnreadBody is the error of a request whose body could not be read.
var errUnreadBody = errors.New("toolmend: the body of the request could not be read")

// route returns the handler for r, and r without the prefix. The body of r is in memory if it was
// read to find the model.
func (s *state) route(w http.ResponseWriter, r *http.Request) (http.Handler, *http.Request, error) {
	var matching []*upstream
	for _, u := range s.upstreams { // the longest prefix first
		if len(matching) > 0 && u.config.Prefix != matching[0].config.Prefix {
			break
		}
		if below(r.URL.Path, u.config.Prefix) {
			matching = append(matching, u)
		}
	}
	if len(matching) == 0 {
		return nil, r, errNoUpstream
	}
	r = withoutPrefix(r, matching[0].config.Prefix)
	byModel := len(matching) > 1 || len(matching[0].rules) > 0 || len(matching[0].config.Models) > 0
	if !byModel {
		return matching[0].pipelineFor("", clientOf(r)), matching[0].withVersion(r), nil
	}
	model, r, err := s.modelOf(w, r)
	if err != nil {
		return nil, r, err
	}
	up := cmp.Or(pick(matching, model), s.fallback)
	if up == nil || up.config.Prefix != matching[0].config.Prefix {
		return nil, r, errNoUpstream
	}
	return up.pipelineFor(model, clientOf(r)), up.withVersion(r), nil
}

// pick returns the first upstream that serves the model, or nil.
func pick(among []*upstream, model string) *upstream {
	for _, u := range among {
		if model != "" && slices.ContainsFunc(u.config.Models, func(m string) bool { return text.Match(m, model) }) {
			return u
		}
	}
	for _, u := range among {
		if u.config.Models == nil { // at most one
			return u
		}
	}
	return nil
}

func (u *upstream) pipelineFor(model, client string) *pipeline {
	u = cmp.Or(u.clients[client], u)
	for _, r := range u.rules {
		if text.Match(r.match, model) {
			return r.pipeline
		}
	}
	return u.pipeline
}

// below reports whether a path is the prefix or begins with it as a folder.
func below(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (prefix == "" || rest == "" || rest[0] == '/')
}

var (
	versionAtEnd = regexp.MustCompile(`/v[0-9]+((alpha|beta)[0-9]*)?/*$`)
	// unversioned are the paths that have a version in front of them at all providers. Local servers
	// have others without one, such as /health.
	unversioned = regexp.MustCompile(`^/(chat|agents|responses|messages|models|tunedModels|completions|embeddings|files|batches|conversations|images|audio|moderations)(/|$)`)
)

// cutVersion removes the version of an API from the end of a URL, and returns it without a slash at
// its end, or "".
func cutVersion(to *url.URL) string {
	version := versionAtEnd.FindString(to.Path)
	to.Path, to.RawPath = strings.TrimSuffix(to.Path, version), strings.TrimSuffix(to.RawPath, version)
	return strings.TrimRight(version, "/")
}

// withVersion returns r with the version of the upstream's URL in its path, which a client may leave
// out.
func (u *upstream) withVersion(r *http.Request) *http.Request {
	if u.version == "" || !unversioned.MatchString(r.URL.Path) {
		return r
	}
	out, to := r.WithContext(r.Context()), *r.URL
	if to.Path = u.version + to.Path; to.RawPath != "" {
		to.RawPath = u.version + to.RawPath
	}
	out.URL = &to
	return out
}

// withoutPrefix returns r without the prefix of its path.
func withoutPrefix(r *http.Request, prefix string) *http.Request {
	if prefix == "" {
		return r
	}
	out := r.WithContext(r.Context())
	to := *r.URL
	to.Path = "/" + strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, prefix), "/")
	if to.RawPath != "" {
		to.RawPath = "/" + strings.TrimPrefix(strings.TrimPrefix(r.URL.RawPath, prefix), "/")
	}
	out.URL = &to
	return out
}

// formatOf returns the codec of the path of r, or nil.
func formatOf(r *http.Request) wire.Codec {
	for _, c := range codecs {
		if c.MatchPath(r.URL.Path) {
			return c
		}
	}
	return nil
}

var codecs = wire.Codecs()
