package serve

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/gateway"
)

// Defaults of what the gateway leaves to its server.
const (
	defaultListen = "127.0.0.1:7777"
	defaultDrain  = gateway.Duration(30 * time.Second)
)

// config is the configuration file: the gateway's part, and what its server
// needs.
type config struct {
	gateway.Config

	// TLSCert and TLSKey are files in PEM form. Both or none are set. They are
	// read again with the configuration.
	TLSCert string `toml:"tls_cert,omitempty"`
	TLSKey  string `toml:"tls_key,omitempty"`
	// DrainTimeout limits how long requests that have begun may take after the
	// signal to stop. "off" waits for all of them.
	DrainTimeout gateway.Duration `toml:"drain_timeout,omitempty"`
	LogLevel     string           `toml:"log_level,omitempty"` // debug, info, warn or error; default info
}

// setDefaults fills in what has no other default.
func (c *config) setDefaults() {
	c.Listen = cmp.Or(c.Listen, defaultListen)
	c.Mode = cmp.Or(c.Mode, gateway.Enforce)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, defaultDrain)
	c.LogLevel = cmp.Or(c.LogLevel, "info")
}

// validate returns the first invalid field as a *gateway.ConfigError.
func (c *config) validate() error {
	if err := c.Validate(); err != nil {
		return err
	}
	if _, ok := levels[c.LogLevel]; !ok {
		return invalid("log_level", "must be debug, info, warn or error, got %q", c.LogLevel)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return invalid("tls_cert", "tls_cert and tls_key need each other")
	}
	if c.TLSCert != "" {
		if _, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey); err != nil {
			return invalid("tls_cert", "%w", err)
		}
	}
	return nil
}

// invalid returns the error of a key.
func invalid(key, format string, args ...any) error {
	return &gateway.ConfigError{Path: key, Err: fmt.Errorf(key+": "+format, args...)}
}

// numbered is the number of an element in the path of an entry.
var numbered = regexp.MustCompile(`#\d+`)

// readConfig reads a file. A key that config does not have is an error. The
// second result is the text of the file.
func readConfig(path string) (config, []byte, error) {
	doc, err := os.ReadFile(path)
	if err != nil {
		return config{}, nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	c, err := decodeConfig(path, doc)
	return c, doc, err
}

// decodeConfig is readConfig for the text of the file.
func decodeConfig(path string, doc []byte) (c config, err error) {
	for _, e := range entriesOf(doc) {
		key := numbered.ReplaceAllString(e.path, "")
		if err := checkNumber(key, e); err != nil {
			return c, fmt.Errorf("%s:%d: %s: %w", path, e.line, key, err)
		}
	}
	err = toml.NewDecoder(bytes.NewReader(doc)).DisallowUnknownFields().Decode(&c)
	var unknown *toml.StrictMissingError
	var wrong *toml.DecodeError
	switch {
	case errors.As(err, &unknown):
		var all []error
		for i := range unknown.Errors {
			e := &unknown.Errors[i]
			row, column := e.Position()
			all = append(all, fmt.Errorf("%s:%d:%d: unknown key %s%s", path, row, column, strings.Join(e.Key(), "."), cli.Meant("", e.Key()[len(e.Key())-1], namesIn(e.Key()))))
		}
		return c, errors.Join(all...)
	case errors.As(err, &wrong):
		row, column := wrong.Position()
		return c, fmt.Errorf("%s:%d:%d: %s", path, row, column, explain(wrong.Error(), wrong.Key(), doc, row))
	case err != nil:
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// placed is the place in a file at the beginning of an error.
var placed = regexp.MustCompile(`(?m)^(options(:\d+)*: |gateway: )?(upstream "options": |upstream\.)?`)

// AddRules adds to o the rules of a configuration file, as gateway.Config.AddRules does.
func AddRules(file string, o *argsvalidate.Options, upstream, client string, hook bool) error {
	c, doc, err := readConfig(file)
	if err == nil {
		err = c.AddRules(o, upstream, client, hook)
	}
	return located(file, doc, err)
}

// ReadSettings reads the settings for model calls out of values, which another program wrote as JSON, with the
// rules for tools in the key tool. A json.Number is a number. Keys, words and errors are the configuration file's.
func ReadSettings(values map[string]any) (gateway.Settings, []gateway.ToolRule, error) {
	upstream := map[string]any{"url": "http://options"}
	top := map[string]any{"upstream": []any{upstream}}
	known := keysIn(reflect.TypeFor[gateway.Settings]())
	for key, value := range values {
		switch {
		case key == "tool":
			upstream[key] = value
		case known[key] == nil && typeAt([]string{key}) != nil:
			return gateway.Settings{}, nil, fmt.Errorf("%s: is for the gateway only", key)
		default:
			top[key] = value
		}
	}
	var doc bytes.Buffer
	if err := toml.NewEncoder(&doc).SetMarshalJSONNumbers(true).Encode(top); err != nil {
		return gateway.Settings{}, nil, err
	}
	c, err := decodeConfig("options", doc.Bytes())
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return gateway.Settings{}, nil, errors.New(strings.ReplaceAll(placed.ReplaceAllString(err.Error(), ""), "unknown key upstream.", "unknown key "))
	}
	return c.Settings, c.Upstreams[0].ToolRules, nil
}

// checkNumber refuses a number that go-toml would read as something else than its writer meant:
// into a word's constant or a duration, 0 as a key that is not there, a number of MB as bytes.
func checkNumber(key string, e entry) error {
	t, name := typeAt(strings.Split(key, ".")), key[strings.LastIndex(key, ".")+1:]
	if t == nil || e.kind != unstable.Integer && (e.kind != unstable.Float || t != durationType) {
		return nil
	}
	n, err := strconv.ParseInt(e.value, 0, 64)
	switch {
	case t.Kind() == reflect.Uint8 || t == durationType:
		return fmt.Errorf("must be %s, got a number", wanted(strings.Split(key, ".")))
	case err == nil && n == 0 && !slices.Contains([]string{"retries", "loop_after", "max_concurrent"}, name):
		return errors.New("must be at least 1, got 0; leave it out for its default")
	case err == nil && 0 <= n && n < 1<<10 && slices.Contains([]string{"max_body", "max_size", "memory", "max_memory"}, name):
		return fmt.Errorf("is in bytes, and must be at least 1024, got %d", n)
	}
	return nil
}

// reference is a part of a header value that holds no secret: the name of an
// environment variable, or of a scheme in front of it.
var reference = regexp.MustCompile(`^([A-Za-z]+ )?\$\{[^}]+\}$`)

// hidden takes the place of a header value that may be a secret. A file with it
// does not start, because no such variable is set.
const hidden = "${HIDDEN_VALUE}"

// printConfig writes c as TOML, without secrets.
func printConfig(w io.Writer, c config) error {
	c.Upstreams = append([]gateway.Upstream(nil), c.Upstreams...)
	headers := []*gateway.HeaderRules{&c.Hook.Headers}
	for i := range c.Upstreams {
		headers = append(headers, &c.Upstreams[i].Headers)
	}
	for _, h := range headers {
		h.Set = maps.Clone(h.Set)
		for name, value := range h.Set {
			if !reference.MatchString(value) {
				h.Set[name] = hidden
			}
		}
	}
	text, err := toml.Marshal(c)
	if err != nil {
		return err
	}
	_, err = w.Write(append(bytes.TrimSpace(text), '\n'))
	return err
}
