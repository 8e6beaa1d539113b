package serve

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// checkUpstream returns an error if the value of --upstream is not a URL.
func checkUpstream(value string) error {
	u, err := url.Parse(value)
	switch {
	case value == "" || err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https"):
		return nil
	case strings.Contains(value, "://"):
		return fmt.Errorf("--upstream %q is not a URL with http or https, such as https://api.anthropic.com", value)
	}
	return fmt.Errorf("--upstream %q is not a URL; write https://%s", value, value)
}

// checkListen returns an error if the value of --listen is not an address to listen on.
func checkListen(value string) error {
	if _, _, err := net.SplitHostPort(value); value != "" && err != nil {
		return fmt.Errorf("--listen: must be HOST:PORT, such as %s, got %q", defaultListen, value)
	}
	return nil
}

// namesIn returns the keys of the table of the configuration that holds the key
// path.
func namesIn(path []string) []string {
	table := typeAt(path[:len(path)-1])
	if table != nil && table.Kind() == reflect.Slice {
		table = table.Elem()
	}
	if table == nil || table.Kind() != reflect.Struct {
		return nil
	}
	return slices.Sorted(maps.Keys(keysIn(table)))
}

// typeAt returns the type of a key of the configuration, or nil without such a
// key.
func typeAt(path []string) reflect.Type {
	at := reflect.TypeFor[config]()
	for _, name := range path {
		if at.Kind() == reflect.Slice {
			at = at.Elem()
		}
		if at.Kind() != reflect.Struct || keysIn(at)[name] == nil {
			return nil
		}
		at = keysIn(at)[name]
	}
	return at
}

// keysIn returns the keys of a table, with their types.
func keysIn(table reflect.Type) map[string]reflect.Type {
	keys := map[string]reflect.Type{}
	for f := range table.Fields() {
		if f.Anonymous {
			maps.Copy(keys, keysIn(f.Type))
		} else if name, _, _ := strings.Cut(f.Tag.Get("toml"), ","); name != "" && name != "-" {
			keys[name] = f.Type
		}
	}
	return keys
}
