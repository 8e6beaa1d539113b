package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/proxy"
	"github.com/toolmend/toolmend/internal/text"
)

// ConfigError is an invalid value in a Config.
type ConfigError struct {
	// Path is the key in the configuration file, such as upstream#2.model#1.mode:
	// the elements of an array of tables are numbered from 1. If the error is of
	// several keys, it is the path of their table, "" at the top.
	Path string
	Err  error // begins with the key in words, such as `upstream "local": mode`
}

// Error returns the text of Err.
func (e *ConfigError) Error() string { return "gateway: " + e.Err.Error() }

// Unwrap returns Err.
func (e *ConfigError) Unwrap() error { return e.Err }

// invalid returns the error of a key, whose tables are joined with dots.
func invalid(key, format string, args ...any) error {
	return &ConfigError{Path: key, Err: fmt.Errorf(strings.ReplaceAll(key, ".", ": ")+": "+format, args...)}
}

// within returns the error of an element of an array of tables as one of the
// table that holds the array. n counts from 0.
func within(array string, n int, name string, err error) error {
	e := asConfigError(err)
	return &ConfigError{
		Path: strings.TrimSuffix(fmt.Sprintf("%s#%d.%s", array, n+1, e.Path), "."),
		Err:  fmt.Errorf("%s %q: %w", array, name, e.Err),
	}
}

// asConfigError returns err as a ConfigError. The errors of other packages have no path.
func asConfigError(err error) *ConfigError {
	if e, ok := errors.AsType[*ConfigError](err); ok {
		return e
	}
	return &ConfigError{Err: err}
}

// Validate returns the first invalid field as a *ConfigError. It does not read
// files or the environment; New does.
func (c Config) Validate() error {
	if err := c.validate(); err != nil {
		return asConfigError(err)
	}
	return nil
}

func (c Config) validate() error {
	if err := c.Settings.validate(); err != nil {
		return err
	}
	if len(c.Upstreams) == 0 {
		return invalid("upstream", "at least one is required")
	}
	if err := cmp.Or(
		validateListen("listen", c.Listen), validateListen("admin_listen", c.AdminListen),
		c.Access.validate(), validateClients(c.Clients), c.validateUpstreams(),
	); err != nil {
		return err
	}
	if _, err := c.ruleSet(false, nil); err != nil {
		return err
	}
	listen := cmp.Or(c.Listen, defaultListen)
	switch {
	case sameAddress("http://"+c.AdminListen, listen) || sameAddress("http://"+listen, c.AdminListen):
		return invalid("admin_listen", "must not be the address of listen, got %q", c.AdminListen)
	case slices.ContainsFunc(c.Record.Headers, func(k string) bool { return !headerName.MatchString(k) }):
		return invalid("record.headers", "must be names of headers, got %q", c.Record.Headers)
	case slices.ContainsFunc(c.Record.Headers, isCredential):
		return invalid("record.headers", "must not name a header that holds a credential")
	case c.Record.MaxSize < 0 || c.Record.Files < 0:
		return invalid("record", "max_size and files must not be negative")
	case c.MaxMemory < 0:
		return invalid("max_memory", "must not be negative")
	case c.Page.Memory < 0:
		return invalid("page", "memory must not be negative")
	}
	return nil
}

// validateListen returns the error of the address of a listener, nil for "".
func validateListen(key, addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if addr != "" && (err != nil || !isPort(port)) {
		return invalid(key, "must be HOST:PORT, such as %s, got %q", defaultListen, addr)
	}
	return nil
}

// isPort reports whether text is the number of a port.
func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// validateUpstreams returns the first error of an upstream, or of several together.
func (c Config) validateUpstreams() error {
	names, defaults := map[string]bool{}, 0
	rest := map[string]string{} // by prefix, the upstream of models that no other one serves
	for i, u := range c.Upstreams {
		wrong := func(err error) error { return within("upstream", i, cmp.Or(u.name(), fmt.Sprint(i+1)), err) }
		if err := u.validate(c.Settings); err != nil {
			return wrong(err)
		}
		if names[u.name()] {
			return wrong(invalid("name", "another upstream has it"))
		}
		names[u.name()] = true
		if u.Models == nil {
			if other, ok := rest[u.Prefix]; ok {
				return wrong(invalid("prefix", "upstream %q has the same one, and neither has models: give one of them another prefix, or models", other))
			}
			rest[u.Prefix] = u.name()
		}
		for _, addr := range []string{cmp.Or(c.Listen, defaultListen), c.AdminListen} {
			if sameAddress(u.URL, addr) {
				return wrong(invalid("url", "is the gateway's own address; name the provider"))
			}
		}
		if u.Default {
			defaults++
		}
	}
	if defaults > 1 {
		return invalid("upstream", "more than one is marked default")
	}
	return nil
}

// validateAddress returns the first error of where an upstream is and which paths it serves.
func (u Upstream) validateAddress() error {
	to, err := url.Parse(u.URL)
	switch {
	case err != nil:
		return invalid("url", "must be a URL") // the error of url.Parse would show a password in it
	case to.Scheme != "http" && to.Scheme != "https" || to.Hostname() == "":
		return invalid("url", "must be absolute, with http or https")
	case to.Port() == "0" || to.Port() != "" && !isPort(to.Port()):
		return invalid("url", "must have a port from 1 to 65535, got %s", to.Port())
	case to.User != nil || to.RawQuery != "" || to.Fragment != "":
		return invalid("url", "must not have a user, a query or a fragment; credentials belong into headers")
	case u.Prefix != "" && (!strings.HasPrefix(u.Prefix, "/") || strings.HasSuffix(u.Prefix, "/")):
		return invalid("prefix", "must begin with a slash and not end with one, got %q", u.Prefix)
	case u.Prefix != "" && path.Clean(u.Prefix) != u.Prefix || strings.ContainsAny(u.Prefix, "?#%\\"):
		return invalid("prefix", "must be a path without \"..\", \".\", empty segments, escapes, ? and #, because no request would have it, got %q", u.Prefix)
	case u.Prefix == ownPath || strings.HasPrefix(u.Prefix, ownPath+"/"):
		return invalid("prefix", "%s belongs to the gateway", ownPath)
	}
	return nil
}

func (u Upstream) validate(base Settings) error {
	if err := u.validateAddress(); err != nil {
		return err
	}
	if u.MaxConcurrent < 0 {
		return invalid("max_concurrent", "must not be negative, got %d", u.MaxConcurrent)
	}
	if err := cmp.Or(u.Headers.validate(), u.Timeouts.validate(), u.Settings.over(base).validate()); err != nil {
		return err
	}
	for i, m := range u.ModelRules {
		if m.Match == "" {
			return within("model", i, m.Match, invalid("match", "must not be empty"))
		}
		if err := m.Settings.over(u.Settings.over(base)).validate(); err != nil {
			return within("model", i, m.Match, err)
		}
	}
	tools := map[string]bool{}
	for i, t := range u.ToolRules {
		if err := t.validate(); err != nil {
			return within("tool", i, t.Name, err)
		}
		if tools[t.Name] {
			return within("tool", i, t.Name, invalid("name", "another rule has it"))
		}
		tools[t.Name] = true
	}
	return nil
}

// name returns the name of the upstream for people.
func (u Upstream) name() string {
	to, err := url.Parse(u.URL)
	if u.Name != "" || err != nil {
		return u.Name
	}
	return to.Host + u.Prefix
}

// isTooShort reports whether d was probably meant to be a number of seconds.
func isTooShort(d Duration) bool { return 0 < d && d < Duration(time.Millisecond) }

// sameAddress reports whether a URL leads to the listener at addr, going by the
// words: the same port, and the same host or both on this machine.
func sameAddress(to, addr string) bool {
	u, err := url.Parse(to)
	host, port, splitErr := net.SplitHostPort(addr)
	if err != nil || splitErr != nil || port == "0" || u.Port() != port {
		return false
	}
	ip := net.ParseIP(host)
	everywhere := host == "" || ip != nil && ip.IsUnspecified()
	return strings.EqualFold(u.Hostname(), host) || proxy.IsLoopback(u.Host) && (everywhere || proxy.IsLoopback(addr))
}

// oneOf returns the error of a key whose value is not one of the words; "" is valid.
func oneOf[K ~string](key string, got K, words ...K) error {
	if got == "" || slices.Contains(words, got) {
		return nil
	}
	var all []string
	for _, w := range words {
		all = append(all, string(w))
	}
	return invalid(key, "%w", text.OneOf(string(got), all...))
}

// isCredential reports whether a header of this name holds a credential.
func isCredential(name string) bool {
	name = http.CanonicalHeaderKey(strings.TrimSpace(name))
	return isAPIKey(name) || slices.Contains([]string{"Proxy-Authorization", "Cookie", keyHeader}, name)
}

// validateClients returns the first invalid client as an error.
func validateClients(clients []Client) error {
	names := map[string]bool{}
	for i, c := range clients {
		var err error
		switch {
		case c.Name == "":
			err = invalid("name", "must not be empty")
		case len(c.Name) > 64 || strings.ContainsFunc(c.Name, func(r rune) bool { return r <= ' ' || r > '~' }):
			err = invalid("name", "must be at most 64 printable ASCII characters without spaces")
		case names[c.Name]:
			err = invalid("name", "another client has it; put further keys of one client into its key_file, one a line")
		case c.KeyFile == "":
			err = invalid("key_file", "must not be empty")
		case c.RequestsPerMinute < 0:
			err = invalid("requests_per_minute", "must not be negative, got %d", c.RequestsPerMinute)
		case c.ModelCallsPerMinute < 0:
			err = invalid("model_calls_per_minute", "must not be negative, got %d", c.ModelCallsPerMinute)
		case c.TokensPerMinute < 0:
			err = invalid("tokens_per_minute", "must not be negative, got %d", c.TokensPerMinute)
		}
		if err != nil {
			return within("client", i, cmp.Or(c.Name, fmt.Sprint(i+1)), err)
		}
		names[c.Name] = true
	}
	return nil
}
