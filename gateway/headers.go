package gateway

import (
	"errors"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/proxy"
)

// framing are the headers that belong to a connection or to a body.
var framing = []string{"Host", "Connection", "Content-Length", "Transfer-Encoding", "Trailer", "Te", "Upgrade", "Keep-Alive", "Expect"}

var (
	headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$") // token of RFC 9110, section 5.6.2
	variable   = regexp.MustCompile(`\$\{([^}]*)\}`)
)

// validate returns the first invalid rule as an error. It never shows a value.
func (r HeaderRules) validate() error {
	names, set := slices.Sorted(maps.Keys(r.Set)), map[string]bool{}
	for _, k := range names {
		if canonical := http.CanonicalHeaderKey(k); set[canonical] {
			return invalid("headers", "%s: is set twice", canonical)
		} else {
			set[canonical] = true
		}
	}
	for _, k := range append(names, r.Remove...) {
		if !headerName.MatchString(k) {
			return invalid("headers", "%q: not a valid name", k)
		}
		if slices.Contains(framing, http.CanonicalHeaderKey(k)) {
			return invalid("headers", "%s: is set by HTTP itself", k)
		}
	}
	for _, k := range names {
		if err := validValue(r.Set[k]); err != nil {
			return invalid("headers", "%s: %w", k, err)
		}
		if strings.Contains(variable.ReplaceAllString(r.Set[k], ""), "${") {
			return invalid("headers", "%s: the value has \"${\" without its \"}\"", k)
		}
	}
	return nil
}

// expand returns the rules with the values of the environment in them. White
// space around a variable's value is removed: files and shells add line ends.
func (r HeaderRules) expand() (HeaderRules, error) {
	out := HeaderRules{Set: map[string]string{}, Remove: r.Remove}
	for _, k := range slices.Sorted(maps.Keys(r.Set)) {
		var missing string
		value := variable.ReplaceAllStringFunc(r.Set[k], func(ref string) string {
			name := variable.FindStringSubmatch(ref)[1]
			v := strings.TrimSpace(os.Getenv(name))
			if v == "" {
				missing = name
			}
			return v
		})
		if missing != "" {
			return out, invalid("headers", "%s: the environment variable %s is not set, or empty", k, missing)
		}
		if err := validValue(value); err != nil {
			return out, invalid("headers", "%s: %w", k, err)
		}
		out.Set[k] = value
	}
	return out, nil
}

// validValue refuses control characters, with which a value could end its line.
func validValue(v string) error {
	if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return errors.New("the value has control characters")
	}
	return nil
}

// headerRules applies the header rules of an upstream, and removes the headers
// for the gateway itself. The rules reach this upstream alone: a RoundTripper
// follows no redirect.
type headerRules struct {
	rules HeaderRules
	base  http.RoundTripper
}

// RoundTrip sends the request with the header rules applied.
func (h *headerRules) RoundTrip(r *http.Request) (*http.Response, error) {
	own := func(k string, _ []string) bool { return strings.HasPrefix(k, "X-Toolmend-") }
	changes := len(h.rules.Remove)+len(h.rules.Set) > 0
	for k := range r.Header {
		changes = changes || own(k, nil)
	}
	if !changes {
		return h.base.RoundTrip(r)
	}
	out := r.WithContext(r.Context())
	out.Header = r.Header.Clone()
	maps.DeleteFunc(out.Header, own)
	for _, k := range h.rules.Remove {
		out.Header.Del(k)
	}
	for k, v := range h.rules.Set {
		out.Header.Set(k, v)
	}
	if len(h.rules.Set) > 0 || !proxy.IsSigned(out) {
		out.Host = "" // a client must not send the gateway's key to a host of its own choice
	}
	return h.base.RoundTrip(out)
}
