package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Validate returns the first invalid field as an error that begins with its key
// in the file, such as `upstream "local": mode`. It does not read files or the
// environment; New does.
func (c Config) Validate() error {
	if err := c.Settings.validate(); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	if len(c.Upstreams) == 0 {
		return errors.New("gateway: upstream: at least one is required")
	}
	for _, addr := range []struct{ key, value string }{{"listen", c.Listen}, {"admin_listen", c.AdminListen}} {
		if _, _, err := net.SplitHostPort(addr.value); err != nil && addr.value != "" {
			return fmt.Errorf("gateway: %s: %w", addr.key, err)
		}
	}
	if err := c.Access.validate(); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	if err := validateClients(c.Clients); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	names, defaults := map[string]bool{}, 0
	rest := map[string]string{} // by prefix, the upstream of models that no other one serves
	for i, u := range c.Upstreams {
		if err := u.validate(c.Settings); err != nil {
			return fmt.Errorf("gateway: upstream %q: %w", cmp.Or(u.name(), fmt.Sprint(i+1)), err)
		}
		if names[u.name()] {
			return fmt.Errorf("gateway: upstream %q: name: another upstream has it", u.name())
		}
		names[u.name()] = true
		if u.Models == nil {
			if other, ok := rest[u.Prefix]; ok {
				return fmt.Errorf("gateway: upstream %q: prefix: upstream %q has the same one, and neither has models: give one of them another prefix, or models", u.name(), other)
			}
			rest[u.Prefix] = u.name()
		}
		for _, addr := range []string{cmp.Or(c.Listen, defaultListen), c.AdminListen} {
			if sameAddress(u.URL, addr) {
				return fmt.Errorf("gateway: upstream %q: url: is the gateway's own address; name the provider", u.name())
			}
		}
		if u.Default {
			defaults++
		}
	}
	switch {
	case defaults > 1:
		return errors.New("gateway: upstream: more than one is marked default")
	case slices.ContainsFunc(c.Record.Headers, isCredential):
		return errors.New("gateway: record: headers: must not name a header that holds a credential")
	case c.Record.MaxSize < 0 || c.Record.Files < 0:
		return errors.New("gateway: record: max_size and files must not be negative")
	case c.Page.Memory < 0:
		return errors.New("gateway: page: memory must not be negative")
	}
	return nil
}

func (u Upstream) validate(base Settings) error {
	to, err := url.Parse(u.URL)
	switch {
	case err != nil:
		return errors.New("url: must be a URL") // the error of url.Parse would show a password in it
	case to.Scheme != "http" && to.Scheme != "https" || to.Host == "":
		return errors.New("url: must be absolute, with http or https")
	case to.User != nil || to.RawQuery != "" || to.Fragment != "":
		return errors.New("url: must not have a user, a query or a fragment; credentials belong into headers")
	case u.Prefix != "" && (!strings.HasPrefix(u.Prefix, "/") || strings.HasSuffix(u.Prefix, "/")):
		return fmt.Errorf("prefix: must begin with a slash and not end with one, got %q", u.Prefix)
	case u.Prefix == ownPath || strings.HasPrefix(u.Prefix, ownPath+"/"):
		return fmt.Errorf("prefix: %s belongs to the gateway", ownPath)
	case u.MaxConcurrent < 0:
		return fmt.Errorf("max_concurrent: must not be negative, got %d", u.MaxConcurrent)
	}
	if err := u.Headers.validate(); err != nil {
		return err
	}
	if d := u.Timeouts; isTooShort(d.Connect) || isTooShort(d.Refused) || isTooShort(d.Header) || isTooShort(d.Idle) {
		return errors.New("timeouts: must be durations of at least 1 ms, such as \"10s\"; a number without a unit is in nanoseconds")
	}
	if err := u.Timeouts.validate(); err != nil {
		return err
	}
	if err := u.Settings.over(base).validate(); err != nil {
		return err
	}
	for _, m := range u.ModelRules {
		if m.Match == "" {
			return errors.New("model: match: must not be empty")
		}
		if err := m.Settings.over(u.Settings.over(base)).validate(); err != nil {
			return fmt.Errorf("model %q: %w", m.Match, err)
		}
	}
	tools := map[string]bool{}
	for _, t := range u.ToolRules {
		if err := t.validate(); err != nil {
			return fmt.Errorf("tool %q: %w", t.Name, err)
		}
		if tools[t.Name] {
			return fmt.Errorf("tool %q: name: another rule has it", t.Name)
		}
		tools[t.Name] = true
	}
	return nil
}

// name returns the name of the upstream for people.
func (u Upstream) name() string {
	if u.Name != "" {
		return u.Name
	}
	to, err := url.Parse(u.URL)
	if err != nil {
		return ""
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
	return strings.EqualFold(u.Hostname(), host) || isLoopback(u.Host) && (everywhere || isLoopback(addr))
}

// isLoopback reports whether only programs on this machine reach addr.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}

// oneOf returns an error if a word is not a key of words.
func oneOf[K ~string, V any](key string, got K, words map[K]V) error {
	if _, ok := words[got]; ok {
		return nil
	}
	var all []string
	for w := range words {
		if w != "" {
			all = append(all, fmt.Sprintf("%q", string(w)))
		}
	}
	slices.Sort(all)
	return fmt.Errorf("%s: must be one of %s, got %q", key, strings.Join(all, ", "), string(got))
}

// isCredential reports whether a header of this name holds a credential.
func isCredential(name string) bool {
	switch http.CanonicalHeaderKey(strings.TrimSpace(name)) {
	case "Authorization", "Proxy-Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Cookie", "X-Toolmend-Key":
		return true
	}
	return false
}

// validateClients returns the first invalid client as an error.
func validateClients(clients []Client) error {
	names := map[string]bool{}
	for i, c := range clients {
		switch {
		case c.Name == "":
			return fmt.Errorf("client %q: name: must not be empty", fmt.Sprint(i+1))
		case len(c.Name) > 64 || strings.ContainsFunc(c.Name, func(r rune) bool { return r <= ' ' || r > '~' }):
			return fmt.Errorf("client %q: name: must be at most 64 printable ASCII characters without spaces", c.Name)
		case names[c.Name]:
			return fmt.Errorf("client %q: name: another client has it; put further keys of one client into its key_file, one a line", c.Name)
		case c.KeyFile == "":
			return fmt.Errorf("client %q: key_file: must not be empty", c.Name)
		}
		names[c.Name] = true
	}
	return nil
}
