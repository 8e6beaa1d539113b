package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolmend/toolmend/internal/proxy"
)

const (
	clientKeyVariable = "TOOLMEND_CLIENT_KEY"
	keyHeader         = "X-Toolmend-Key"
	minKey            = 16 // characters of a client key
)

// credentialHeaders are the headers in which clients send their API key.
var credentialHeaders = []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

// guard decides which requests the gateway serves.
type guard struct {
	loopback   bool
	keys       []namedKey // of the clients; without one, requests need no key
	headerOnly bool
	hosts      []string
	origins    []string
}

// namedKey is a client key: the name of its client, or "", and its hash.
type namedKey struct {
	name string
	sum  [sha256.Size]byte
}

// adminGuard returns the guard of Config.AdminListen. Its pages need no key.
func (c Config) adminGuard() *guard {
	return &guard{loopback: proxy.IsLoopback(c.AdminListen), hosts: c.Access.AllowHosts, origins: c.Access.AllowOrigins}
}

// refusal is the answer to a request that is not served.
type refusal struct {
	status        int
	code, message string
}

// refusals are the codes of a refusal.
var refusals = []string{"not_a_proxy", "host_not_allowed", "cross_site", "client_key", "unknown_upstream", "invalid_body"}

// refusalLog is the minute in which a refusal of one code was logged last, and how many were not
// logged since.
type refusalLog struct{ minute, more atomic.Int64 }

// refuse answers a request that is not served, and counts it. It logs one refusal of each code and
// client in each minute of the clock, so that a client cannot fill the log.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, why refusal) {
	client := clientOf(r)
	g.metrics.refuse(why.code, client, 1)
	kept, _ := g.refusals.LoadOrStore(why.code+" "+client, &refusalLog{})
	last, now := kept.(*refusalLog), time.Now().Unix()/60
	if last.minute.Swap(now) == now {
		last.more.Add(1)
	} else if from, _, _ := net.SplitHostPort(r.RemoteAddr); g.options.Logger != nil {
		attrs := []any{"code", why.code, "http_status", why.status, "from", from, "not_logged", last.more.Swap(0)}
		if client != "" {
			attrs = append(attrs, "client_key", client)
		}
		if why.code == rateLimited {
			attrs = append(attrs, "reason", why.message)
		}
		g.options.Logger.Warn("request refused", attrs...)
	}
	refuse(w, r, why.status, why.code, why.message)
}

// newGuard reads the client keys. Its error names what a safe start needs, and never contains a
// key.
func newGuard(c Config) (*guard, error) {
	g := &guard{
		loopback:   proxy.IsLoopback(cmp.Or(c.Listen, defaultListen)),
		headerOnly: c.Access.KeyHeaderOnly,
		hosts:      c.Access.AllowHosts,
		origins:    c.Access.AllowOrigins,
	}
	var err error
	if g.keys, err = c.clientKeys(); err != nil {
		return nil, asConfigError(err)
	}
	switch {
	case len(g.keys) == 0 && !g.loopback:
		return nil, invalid("listen", "other machines can reach %s, so clients need a key: put one of at least %d characters into %s, or into the file that access.client_key_file or key_file of a [[client]] names, or listen on 127.0.0.1",
			c.Listen, minKey, clientKeyVariable)
	case len(g.keys) == 0:
		return g, nil
	}
	for i, u := range c.Upstreams {
		if !g.headerOnly && !u.Headers.decidesCredential() {
			return nil, within("upstream", i, u.name(), invalid("headers", "the clients' key is not sent on, so the upstream needs a key of its own: set Authorization, x-api-key, api-key or x-goog-api-key; if the upstream needs none, remove Authorization; or set access.key_header_only, with which clients send their own API keys and add %s", keyHeader))
		}
	}
	return g, nil
}

// clientKeys returns the keys that clients may send: the keys of Clients, and the key of the
// environment or of Access.ClientKeyFile.
func (c Config) clientKeys() (all []namedKey, err error) {
	add := func(client, from, text string) error {
		for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
			key, err := checkedKey("client", from, line)
			if err != nil {
				return err
			}
			sum := sha256.Sum256([]byte(key))
			if slices.ContainsFunc(all, func(k namedKey) bool { return k.sum == sum && k.name != client }) {
				return fmt.Errorf("%s: another client has this key", from)
			}
			all = append(all, namedKey{client, sum})
		}
		return nil
	}
	for i, client := range c.Clients {
		text, err := readKeys(client.KeyFile)
		if err == nil {
			err = add(client.Name, client.KeyFile, text)
		}
		if err != nil {
			return nil, within("client", i, client.Name, invalid("key_file", "%w", err))
		}
	}
	from := clientKeyVariable
	text, set := os.LookupEnv(clientKeyVariable)
	if c.Access.ClientKeyFile != "" {
		from, set = c.Access.ClientKeyFile, true
		if text, err = readKeys(from); err != nil {
			return nil, invalid("access.client_key_file", "%w", err)
		}
	}
	if set {
		if err := add("", from, text); err != nil {
			return nil, fmt.Errorf("access: %w", err)
		}
	}
	return all, nil
}

// readKeys returns the text of a file with keys.
func readKeys(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 64<<10))
	return string(text), err
}

// checkedKey returns a valid key without the white space around it. The error names the owner
// and the source of an invalid key.
func checkedKey(whose, from, key string) (string, error) {
	key = strings.TrimSpace(key)
	switch {
	case key == "":
		return "", fmt.Errorf("%s: the %s key is empty", from, whose)
	case len(key) < minKey:
		return "", fmt.Errorf("%s: the %s key has fewer than %d characters", from, whose, minKey)
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("%s: the %s key must be printable ASCII without spaces", from, whose)
	}
	return key, nil
}

// decidesCredential reports whether the rules set or remove the credential of the upstream.
func (r HeaderRules) decidesCredential() bool {
	names := slices.Clone(r.Remove)
	for k := range r.Set {
		names = append(names, k)
	}
	return slices.ContainsFunc(names, isAPIKey)
}

// isAPIKey reports whether clients send their API key in a header of this name.
func isAPIKey(name string) bool {
	return slices.Contains(credentialHeaders, http.CanonicalHeaderKey(name))
}

// validate returns the first invalid field as an error that begins with its key.
func (a Access) validate() error {
	for _, h := range a.AllowHosts {
		if h == "" || strings.ContainsAny(h, "/* ") || proxy.HostOf(h) != h {
			return invalid("access.allow_hosts", "must be host names without a port, got %q", h)
		}
	}
	for _, o := range a.AllowOrigins {
		if u, err := url.Parse(o); err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != o || strings.Contains(o, "*") {
			return invalid("access.allow_origins", "must be origins such as \"https://example.com\", got %q", o)
		}
	}
	return nil
}

// admit returns r without the client key, or a refusal. No part of r was forwarded before.
func (g *guard) admit(r *http.Request) (*http.Request, *refusal) {
	known := g.loopback && g.serves(proxy.HostOf(r.Host))
	if whole := r.URL.Scheme != "" || r.URL.Host != ""; whole && !known { // RFC 9112, section 3.2.2: a server accepts its own URL
		return nil, &refusal{http.StatusMisdirectedRequest, "not_a_proxy",
			"Toolmend is not a forward proxy; use its address as the base URL of the provider, not as HTTP_PROXY"}
	}
	if g.loopback {
		if !known {
			return nil, &refusal{http.StatusMisdirectedRequest, "host_not_allowed",
				"this address serves only requests to localhost or 127.0.0.1; to serve another host name, add it to access.allow_hosts"}
		}
		if proxy.CrossSite(r, g.origins...) {
			return nil, &refusal{http.StatusForbidden, "cross_site",
				"web pages of other sites may not use this address; to allow one, add its origin to access.allow_origins"}
		}
	}
	if below(r.URL.Path, ownPath) { // the page has a key of its own; probes and metrics need none
		return r, nil
	}
	return g.withoutKey(r)
}

// serves reports whether a loopback listener serves a host of this name.
func (g *guard) serves(host string) bool {
	return proxy.IsLoopback(host) || slices.ContainsFunc(g.hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// withoutKey returns r without the client key in any of its places. It refuses r if a key is
// demanded and r does not have one in an accepted place.
func (g *guard) withoutKey(r *http.Request) (*http.Request, *refusal) {
	if len(g.keys) == 0 {
		return r, nil
	}
	hasKey, client := false, ""
	isKey := func(text string) bool {
		name, ok := g.find(text)
		if ok && !hasKey { // the first one names the client
			hasKey, client = true, name
		}
		return ok
	}
	inHeader := slices.ContainsFunc(r.Header[keyHeader], isKey)
	out := r.WithContext(r.Context())
	out.Header = r.Header.Clone()
	out.Header.Del(keyHeader)
	elsewhere := false
	for _, name := range credentialHeaders {
		values := slices.DeleteFunc(out.Header[name], func(v string) bool { return isKey(bearer(v)) })
		elsewhere = elsewhere || len(values) < len(r.Header[name])
		if out.Header[name] = values; len(values) == 0 {
			delete(out.Header, name)
		}
	}
	query, removed := queryWithoutKey(r.URL.RawQuery, isKey)
	if removed {
		to := *r.URL
		to.RawQuery, elsewhere = query, true
		out.URL = &to
		out.RequestURI = to.RequestURI()
	}
	switch {
	case inHeader || elsewhere && !g.headerOnly:
		return out.WithContext(context.WithValue(out.Context(), clientName{}, client)), nil
	case g.headerOnly:
		return nil, &refusal{http.StatusUnauthorized, "client_key", "this gateway needs its client key in the header " + keyHeader}
	}
	return nil, &refusal{http.StatusUnauthorized, "client_key",
		"this gateway needs its client key; send it in place of the provider's API key, or in the header " + keyHeader}
}

// clientName is the key of a request's context for the name of its client.
type clientName struct{}

// clientOf returns the name of the client whose key r had, or "".
func clientOf(r *http.Request) string {
	name, _ := r.Context().Value(clientName{}).(string)
	return name
}

// queryWithoutKey removes the client key from a query. All other bytes stay.
func queryWithoutKey(query string, isKey func(string) bool) (rest string, removed bool) {
	parts := strings.Split(query, "&")
	others := slices.DeleteFunc(slices.Clone(parts), func(part string) bool {
		name, value, _ := strings.Cut(part, "=")
		n, errName := url.QueryUnescape(name)
		v, errValue := url.QueryUnescape(value)
		return errName == nil && errValue == nil && n == "key" && isKey(v)
	})
	return strings.Join(others, "&"), len(others) < len(parts)
}

// find returns the name of the client that has a key. It compares with every key, in
// a time that does not depend on the texts.
func (g *guard) find(text string) (name string, ok bool) {
	sum := sha256.Sum256([]byte(strings.TrimSpace(text)))
	for _, k := range g.keys {
		if subtle.ConstantTimeCompare(sum[:], k.sum[:]) == 1 {
			name, ok = k.name, true
		}
	}
	return name, ok
}

// bearer returns a credential without its scheme.
func bearer(credential string) string {
	const scheme = "bearer "
	if len(credential) > len(scheme) && strings.EqualFold(credential[:len(scheme)], scheme) {
		return credential[len(scheme):]
	}
	return credential
}
