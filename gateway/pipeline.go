package gateway

import (
	"cmp"
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	meternoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/proxy"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/tracing"
	"github.com/toolmend/toolmend/transport"
)

// pipeline serves the requests to one upstream with one set of settings.
type pipeline struct {
	upstream  string // its name
	settings  Settings
	handler   http.Handler
	signed    func() http.Handler // for requests whose body must stay as it is; nil means handler
	observers []observer
	checker   *report.Checker      // for the page
	copies    *copies              // in the mode Observe
	replayer  *transport.Transport // in the mode Observe
}

// newPipeline returns a pipeline to the URL to of u. base sends the requests,
// when they have a place.
func (g *Gateway) newPipeline(u Upstream, to *url.URL, s Settings, base http.RoundTripper, slots *places, observers []observer) *pipeline {
	s.Mode = cmp.Or(s.Mode, Enforce)
	g.metrics.begin(u.name(), s)
	if s.Mode == Observe {
		return g.newObserving(u, to, s, base, slots, observers)
	}
	p := &pipeline{upstream: u.name(), settings: s, handler: g.newHandler(u, to, s, base, slots), observers: observers,
		checker: report.NewChecker(u.validator(s, false))}
	if s.Mode == Enforce {
		s.Mode = Repair // a second model call would have another body
		p.signed = sync.OnceValue(func() http.Handler { return g.newHandler(u, to, s, base, slots) })
	}
	return p
}

// newHandler returns the handler of the modes Enforce and Repair.
func (g *Gateway) newHandler(u Upstream, to *url.URL, s Settings, base http.RoundTripper, slots *places) http.Handler {
	o := s.transport()
	ids, _ := g.ids.LoadOrStore(u.URL, &transport.IDs{})
	o.Base, o.Figures, o.IDs, o.Decoders, o.Client, o.Memory = base, true, ids.(*transport.IDs), g.decoders(), clientOf, g.metrics.memory
	o.Requests, o.DeferMessages = g.requests, true
	return slots.around(transport.New(o, g.layers(u, to, s).Chain()).Handler(to))
}

// layers returns the stack for an upstream.
func (g *Gateway) layers(u Upstream, to *url.URL, s Settings) middleware.Layers {
	l := s.Layers(argsvalidate.NewValidator(u.validator(s, true)), u.ToolRules)
	l[middleware.LayerBudget] = limitCalls
	if g.options.TracerProvider != nil || g.options.MeterProvider != nil { // to package tracing, nil means the global providers
		spans := tracing.Options{
			TracerProvider: cmp.Or[trace.TracerProvider](g.options.TracerProvider, tracenoop.NewTracerProvider()),
			MeterProvider:  cmp.Or[metric.MeterProvider](g.options.MeterProvider, meternoop.NewMeterProvider()),
			Provider:       providerOf(u.name(), to),
			Attributes:     []attribute.KeyValue{attribute.String("upstream", u.name())},
		}
		l[middleware.LayerStep], l[middleware.LayerAttempt] = tracing.New(spans), tracing.NewAttempt(spans)
	}
	return l
}

// providers are the hosts of providers that OpenTelemetry has a name for, and those
// names. Source: the registry of gen_ai.provider.name, conventions for GenAI v0.1.0.
var providers = map[string]string{
	"anthropic.com": "anthropic", "openai.com": "openai", "openai.azure.com": "azure.ai.openai", "generativelanguage.googleapis.com": "gcp.gemini",
	"aiplatform.googleapis.com": "gcp.vertex_ai", "deepseek.com": "deepseek", "mistral.ai": "mistral_ai", "groq.com": "groq", "x.ai": "x_ai",
	"cohere.com": "cohere", "perplexity.ai": "perplexity", "moonshot.ai": "moonshot_ai", "moonshot.cn": "moonshot_ai",
}

// bedrockHost matches the hosts of Amazon Bedrock. Other services have the same domain.
var bedrockHost = regexp.MustCompile(`(?i)^bedrock-[a-z-]+\.[a-z0-9-]+\.(amazonaws\.com(\.cn)?|api\.aws)$`)

// providerOf returns the gen_ai.provider.name of an upstream: the name of the provider that owns
// its host, else the upstream's own name.
func providerOf(name string, to *url.URL) string {
	if bedrockHost.MatchString(to.Hostname()) {
		return "aws.bedrock"
	}
	for host, provider := range providers {
		if h := strings.ToLower(to.Hostname()); h == host || strings.HasSuffix(h, "."+host) || strings.HasSuffix(h, "-"+host) {
			return provider
		}
	}
	return name
}

// newObserving returns a pipeline for the mode Observe. Its handler changes
// nothing, and its replayer has the settings of the mode Enforce, without the layers that
// would make a second model call.
func (g *Gateway) newObserving(u Upstream, to *url.URL, s Settings, base http.RoundTripper, slots *places, observers []observer) *pipeline {
	enforced := s
	enforced.Mode = Enforce
	replayed := g.layers(u, to, enforced).Without(middleware.LayerStep, middleware.LayerRetry, middleware.LayerHeal, middleware.LayerBudget, middleware.LayerAttempt)
	return &pipeline{
		upstream: u.name(), settings: s, observers: observers, copies: g.copies, checker: report.NewChecker(u.validator(enforced, false)),
		handler: slots.around(proxy.New(to, copying{base}, func(w http.ResponseWriter, r *http.Request, status int, code, message string) {
			if c := formatOf(r); c != nil && code == proxy.Refused {
				status = c.UnavailableStatus(status)
			}
			refuse(w, r, status, code, message)
		})),
		replayer: newReplayer(s, g.decoders(), g.metrics.memory, replayed.Chain()),
	}
}

// decoders returns Options.Decoders and the one for gzip.
func (g *Gateway) decoders() map[string]transport.Decoder {
	all := map[string]transport.Decoder{"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }}
	maps.Copy(all, g.options.Decoders)
	return all
}

// ServeHTTP serves a request by its format and the mode.
func (p *pipeline) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	format := formatOf(r)
	switch {
	case format != nil && asksForUpgrade(r):
		p.upgrade(w, r, format.Dialect())
	case format == nil && r.Method == http.MethodPost:
		p.other(w, r)
	case format == nil || r.Method != http.MethodPost:
		p.handler.ServeHTTP(w, r)
	case p.settings.Mode == Observe:
		p.observe(w, r, format.Dialect())
	case p.signed != nil && proxy.IsSigned(r):
		p.watched(p.signed(), w, r, format.Dialect())
	default:
		p.watched(p.handler, w, r, format.Dialect())
	}
}

// unreadGrace is how long net/http may read the rest of a refused request, which it does before it
// sends the response. Otherwise a client that sends no more keeps its connection.
const unreadGrace = 5 * time.Second

// refuse writes an error of the gateway's own, in the format of the path of r.
func refuse(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	body := []byte(`{"error":{"code":` + rawjson.Quote(code) + `,"message":` + rawjson.Quote(message) + `}}`)
	if c := formatOf(r); c != nil {
		body = c.EncodeError(status, code, message)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadGrace))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Toolmend-Error", code)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
