package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// Rule is a check of your own on the calls of some tools. It has a Schema or Forbid.
//
// A call that a rule rejects is repaired and re-asked as other invalid calls. If the attempts run
// out it is not passed to the client, which does not know the rule: middleware.Pass means
// middleware.DropInvalid then, unless it is the setting of a ToolRule. So it is for each invalid
// call of a tool that a rule or the Hook is for, because another fault may have kept the rule from
// running.
type Rule struct {
	Name     string `toml:"name,omitempty"`     // for notes and reports; "" means its number, from 1
	Tool     string `toml:"tool,omitempty"`     // a * matches any text; "" means every tool
	Upstream string `toml:"upstream,omitempty"` // the name of one; "" means all
	Client   string `toml:"client,omitempty"`   // the name of one of Config.Clients; "" means all
	// Schema is laid over the tool's own schema: see argsvalidate.Restrict. It is a map[string]any, or
	// the name of a file with a schema in JSON.
	Schema  any    `toml:"schema,omitempty"`
	Forbid  bool   `toml:"forbid,omitempty"`  // rejects every call: see argsvalidate.Forbid
	Message string `toml:"message,omitempty"` // of Forbid, for the model

	compiled argsvalidate.Rule // nil for a rule whose file was not read
}

// Hook is a service of your own that checks calls, with an HTTP request for each. It gets the calls that
// are valid by their schemas and by the rules, with their arguments: see docs/rules.md. In the mode
// Observe it is asked after the answer. It is not asked about tools whose ToolRule has that mode.
type Hook struct {
	URL      string      `toml:"url,omitempty"`       // of the requests; "" means no hook
	Tools    []string    `toml:"tools,omitempty"`     // names, in which a * matches any text; nil means all
	Timeout  Duration    `toml:"timeout,omitempty"`   // which the calls of a message share in equal parts; default 2s
	FailOpen bool        `toml:"fail_open,omitempty"` // a call passes if the hook fails; false makes it invalid
	Headers  HeaderRules `toml:"headers,omitempty"`   // of the requests
}

// ruleSet holds the rules of a Config, ready to check calls.
type ruleSet struct {
	rules []Rule
	hook  *hook // nil without one
}

// compile returns the rule, or nil for one whose schema is in a file that is not to be read.
func (r Rule) compile(files bool) (rule argsvalidate.Rule, err error) {
	var raw []byte
	file, inFile := r.Schema.(string)
	switch {
	case r.Forbid == (r.Schema != nil):
		return nil, &ConfigError{Err: errors.New("must have either schema or forbid")}
	case r.Forbid:
		return argsvalidate.Forbid(cmp.Or(r.Tool, "*"), r.Message), nil
	case r.Message != "":
		return nil, invalid("message", "is for forbid; the reply to other calls says what the schema wants")
	case inFile && !files:
		return nil, nil
	case inFile:
		raw, err = os.ReadFile(file)
	default:
		raw, err = json.Marshal(r.Schema)
	}
	if err == nil {
		rule, err = argsvalidate.Restrict(cmp.Or(r.Tool, "*"), raw)
	}
	if err != nil {
		return nil, invalid("schema", "%s", strings.TrimPrefix(err.Error(), "argsvalidate: Restrict: "))
	}
	return rule, nil
}

// ruleSet compiles the rules. files means that the files of schemas and the environment are read.
func (c Config) ruleSet(files bool, dial dialFunc) (s ruleSet, err error) {
	for i, r := range c.Rules {
		r.Name = cmp.Or(r.Name, fmt.Sprint(i+1))
		if r.compiled, err = r.compile(files); r.Upstream != "" && !slices.ContainsFunc(c.Upstreams, func(u Upstream) bool { return u.name() == r.Upstream }) {
			err = invalid("upstream", "no upstream has the name %q", r.Upstream)
		} else if r.Client != "" && !slices.ContainsFunc(c.Clients, func(k Client) bool { return k.Name == r.Client }) {
			err = invalid("client", "no [[client]] has the name %q", r.Client)
		}
		if err != nil {
			return s, within("rule", i, r.Name, err)
		}
		s.rules = append(s.rules, r)
	}
	if h := c.Hook; !reflect.ValueOf(h).IsZero() {
		if err = cmp.Or(Upstream{URL: h.URL}.validateAddress(), h.Headers.validate()); err == nil && (h.Timeout < 0 || isTooShort(h.Timeout)) {
			err = invalid("timeout", `must be a duration of at least 1 ms, such as "2s"`)
		} else if err == nil && files {
			h.Headers, err = h.Headers.expand()
		}
		if e := asConfigError(err); err != nil {
			return s, &ConfigError{Path: "hook." + e.Path, Err: fmt.Errorf("hook: %w", e.Err)}
		}
		s.hook = &hook{Hook: h, base: &headerRules{h.Headers, newBase(Timeouts{Refused: Off}, dial)}, failed: func(string, int64) {}}
	}
	return s, nil
}

// add adds to o the rules for an upstream and its client, and the hook if asks is set.
func (s ruleSet) add(o *argsvalidate.Options, u Upstream, asks bool) {
	for _, r := range s.rules {
		if (r.Upstream == "" || r.Upstream == u.name()) && (r.Client == "" || r.Client == u.client) {
			o.Rules = append(o.Rules, argsvalidate.Named(r.Name, r.compiled))
		}
	}
	if s.hook == nil || !asks {
		return
	}
	h := *s.hook
	h.of, h.Timeout = u, cmp.Or(h.Timeout, Duration(2*time.Second))
	o.Rules = append(o.Rules, argsvalidate.Named("hook", h))
	if o.RuleTimeout, o.OnRuleError = time.Duration(h.Timeout)+time.Second, argsvalidate.AsIssue; h.FailOpen {
		o.OnRuleError = argsvalidate.Ignore
	}
}

// AddRules adds to o the Rules of c for the requests of a client to an upstream, and its Hook if asks
// is set. It reads the files of schemas.
func (c Config) AddRules(o *argsvalidate.Options, upstream, client string, asks bool) error {
	if !asks {
		c.Hook = Hook{}
	}
	s, err := c.ruleSet(true, nil)
	s.add(o, Upstream{Name: upstream, client: client}, true)
	return err
}

// validator returns the options of argsvalidate for an upstream. asks means that calls are sent to the hook.
func (u Upstream) validator(s Settings, asks bool) argsvalidate.Options {
	o := s.validator(u.ToolRules)
	if u.rules.add(&o, u, asks); o.OnExhausted == middleware.Pass {
		o.RejectedCalls = middleware.DropInvalid
	}
	return o
}

// hook asks a Hook about calls.
type hook struct {
	Hook
	base   http.RoundTripper
	of     Upstream                     // to which the requests go
	failed func(reason string, n int64) // counts failures
}

// maxHookAnswer is the largest answer of a hook in bytes, maxHookFindings how many of its findings count,
// and maxHookText how many bytes of a message.
const maxHookAnswer, maxHookFindings, maxHookText = 64 << 10, 20, 500

// Covers reports whether calls of a tool are sent to the hook.
func (h hook) Covers(tool string) bool {
	return (h.Tools == nil || slices.ContainsFunc(h.Tools, func(t string) bool { return text.Match(t, tool) })) &&
		!slices.ContainsFunc(h.of.ToolRules, func(t ToolRule) bool { return t.Name == tool && t.Mode == Observe })
}

// The reasons for which a hook fails, in the metrics.
const hookTimeout, hookError = "timeout", "error"

// Check sends a call to the hook. A failure counts, unless the client of the call is gone.
func (h hook) Check(ctx context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) {
	if !h.Covers(c.Name) {
		return nil, nil
	}
	issues, err := h.ask(ctx, c)
	if errors.Is(err, context.DeadlineExceeded) {
		h.failed(hookTimeout, 1)
	} else if err != nil && ctx.Err() == nil {
		h.failed(hookError, 1)
	}
	return issues, err
}

// ask returns what the hook finds about a call. Any answer but the one that docs/rules.md shows is an
// error. No redirect is followed.
func (h hook) ask(ctx context.Context, c *argsvalidate.Call) (issues []middleware.Issue, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(h.Timeout)/time.Duration(1+len(c.Siblings)))
	defer cancel()
	client, _ := ctx.Value(clientName{}).(string)
	body, err := json.Marshal(map[string]any{"client": cmp.Or(client, h.of.client), "upstream": h.of.name(),
		"tool": map[string]any{"name": c.Name, "parameters": c.Tool.Parameters}, "call": map[string]any{"id": c.ID, "arguments": json.RawMessage(c.Arguments)}})
	if err != nil { // the arguments are nested too deeply
		return nil, err
	}
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body)) // the URL is valid
	r.Header.Set("Content-Type", "application/json")
	resp, err := h.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer := struct {
		Findings []struct{ Pointer, Message string }
	}{}
	if got, err := io.ReadAll(io.LimitReader(resp.Body, maxHookAnswer+1)); err != nil || resp.StatusCode != http.StatusOK {
		return nil, cmp.Or(err, fmt.Errorf("status %d", resp.StatusCode))
	} else if len(got) > maxHookAnswer || json.Unmarshal(got, &answer) != nil || answer.Findings == nil {
		return nil, errors.New(`the answer is not {"findings": […]}, or is too long`)
	}
	for _, f := range answer.Findings[:min(len(answer.Findings), maxHookFindings)] {
		if !strings.HasPrefix(f.Pointer, "/") || len(f.Pointer) > maxHookText {
			f.Pointer = ""
		}
		clean := func(s string) string { return text.Clip(text.Defuse(text.OneLine(s)), maxHookText) }
		issues = append(issues, middleware.Issue{Pointer: clean(f.Pointer), Message: clean(cmp.Or(f.Message, "not allowed"))})
	}
	return issues, nil
}
