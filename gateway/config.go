package gateway

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
	"github.com/toolmend/toolmend/transport"
)

// Config is the configuration of a Gateway. The zero value with one Upstream
// works: it validates, repairs and re-asks, on a loopback address.
//
// The tags are the keys of the configuration file of `toolmend serve`.
type Config struct {
	// Listen is the address of the listener, as net.Listen takes it. A Gateway
	// does not listen itself. It needs the address to decide what is safe: on an
	// address that is not loopback, New demands a client key. "" means
	// 127.0.0.1:7777.
	Listen string `toml:"listen,omitempty"`
	// AdminListen is the address of the metrics and the page. "" means Listen if
	// that is loopback, else none.
	AdminListen string `toml:"admin_listen,omitempty"`
	// MaxMemory limits the bytes that all messages need while they are read: see
	// transport.Memory. 0 means 512 MiB.
	MaxMemory int64 `toml:"max_memory,omitempty"`

	Settings // for all upstreams

	Access    Access     `toml:"access,omitempty"`
	Clients   []Client   `toml:"client,omitempty"`
	Record    Record     `toml:"record,omitempty"`
	Page      Page       `toml:"page,omitempty"`
	Rules     []Rule     `toml:"rule,omitempty"`
	Hook      Hook       `toml:"hook,omitempty"`
	Upstreams []Upstream `toml:"upstream"`
}

// Client is somebody who may use the gateway, with keys of their own.
type Client struct {
	// Name is for logs and metrics: at most 64 printable characters without spaces.
	Name string `toml:"name"`
	// KeyFile is a file with the key, or with several keys, one a line. Each of them
	// is accepted, so that a key can be replaced without a gap. See Access for the
	// places in which a client may send it.
	KeyFile string `toml:"key_file"`

	ClientLimits // no limits by default
}

// Upstream is a provider or a server, and the requests that go to it. A request
// goes to the upstream with the longest Prefix of its path. Of several with that
// prefix, it goes to the first whose Models match the model that the request
// names, else to the one without Models, else to the one marked Default.
type Upstream struct {
	Name string `toml:"name,omitempty"` // for logs and metrics; "" means the host of URL
	// URL is absolute. The path of a request is appended to its path. A version of the API at its
	// end, such as /v1 or /v1beta, is added to the paths of requests that name none.
	URL string `toml:"url"`
	// Prefix is removed from the path before the request goes on. It begins
	// with a slash and does not end with one. "" matches every path.
	Prefix string `toml:"prefix,omitempty"`
	// Models are the models that the upstream serves. A * matches any text. nil
	// means all.
	Models []string `toml:"models,omitempty"`
	// Default marks the upstream of requests that name no model, or one that no
	// upstream serves. An only upstream is the default.
	Default bool `toml:"default,omitempty"`

	Settings // override the settings of Config

	Headers       HeaderRules `toml:"headers,omitempty"`
	Timeouts      Timeouts    `toml:"timeouts,omitempty"`
	MaxConcurrent int         `toml:"max_concurrent,omitempty"` // requests at one time; 0 means no limit
	// ModelRules change the settings for some models of the upstream. The first
	// that matches counts.
	ModelRules []ModelRule `toml:"model,omitempty"`
	ToolRules  []ToolRule  `toml:"tool,omitempty"`

	rules  ruleSet // of the Config
	client string  // for which rules are selected
}

// Settings configure what happens to model calls. A zero field of a ModelRule has the value of
// its Upstream, a zero field of an Upstream the value of Config, and a zero field of Config the
// default.
type Settings struct {
	Mode        Mode                   `toml:"mode,omitempty"`         // default Enforce
	Attempts    int                    `toml:"attempts,omitempty"`     // model calls of a step in Enforce, the first one included; default 3
	Retries     *int                   `toml:"retries,omitempty"`      // further calls after a failure of the provider; default 0
	OnExhausted middleware.OnExhausted `toml:"on_exhausted,omitempty"` // default middleware.Pass, which marks the answer: X-Toolmend-Status
	// Repairs are the local repairs: "default", "all" or "none", or names of
	// rules of package mend.
	Repairs []string `toml:"repairs,omitempty"`
	// Rescue are the markups of package rescue in which calls are read from
	// the text of an answer: names of markups, "auto" for all, or "none", the
	// default.
	Rescue    []string               `toml:"rescue,omitempty"`
	Escalate  string                 `toml:"escalate,omitempty"`  // the model of the last attempt of a step; see argsvalidate.Advanced. "none", the default, escalates nothing
	Constrain argsvalidate.Constrain `toml:"constrain,omitempty"` // of re-asks; default argsvalidate.NoConstraint. Tools that are Destructive are not constrained
	// LoopAfter is the number of equal failing calls after which the same call is
	// re-asked: see argsvalidate.NoLoops. 0 turns that off, which is the default.
	LoopAfter *int `toml:"loop_after,omitempty"`
	// Heal are the rules of package heal, by which a request that the upstream refused is
	// changed and sent once more: names of rules, or "default" for all, or "none". Only mode Enforce heals.
	Heal            []string                     `toml:"heal,omitempty"`
	Strip           strip.Mode                   `toml:"strip,omitempty"`            // default strip.Optional
	Batch           batch.Policy                 `toml:"batch,omitempty"`            // default batch.ReissueAll
	UnknownTools    argsvalidate.UnknownTools    `toml:"unknown_tools,omitempty"`    // default argsvalidate.RejectUnknown
	UnusableSchemas argsvalidate.UnusableSchemas `toml:"unusable_schemas,omitempty"` // default argsvalidate.PassUnusable; RejectUnusable also refuses requests that offer tools on a path of no format
	EmptyAnswers    argsvalidate.EmptyAnswers    `toml:"empty_answers,omitempty"`    // default argsvalidate.EmptyDefault
	RaiseTokens     Tokens                       `toml:"raise_tokens,omitempty"`     // default Unbounded; argsvalidate.NoRaise turns it off. See argsvalidate.Advanced
	Formats         Formats                      `toml:"formats,omitempty"`          // default IgnoreFormats
	Unreadable      Refusal                      `toml:"unreadable,omitempty"`       // default Reject; see transport.Options.PassUnreadable
	Hold            Hold                         `toml:"hold,omitempty"`             // default HoldCalls
	KeepAlive       Duration                     `toml:"keep_alive,omitempty"`       // longest silence in a stream; default 8s; "off" turns keep-alives off
	ReaskTimeout    Duration                     `toml:"reask_timeout,omitempty"`    // of a re-ask, until its first byte; default 60s; "off" means no limit. See transport.Options.ReaskTimeout
	ModelCalls      int                          `toml:"model_calls,omitempty"`      // for one request of a client; default 10
	MaxBody         int64                        `toml:"max_body,omitempty"`         // bytes; default 64 MiB, which is the largest value
	Limits          CallLimits                   `toml:"limits,omitempty"`
	WebSockets      WebSockets                   `toml:"websockets,omitempty"` // default RefuseWebSockets
}

// CallLimits are the fields of argsvalidate.Limits of these names. 0 inherits.
type CallLimits struct {
	Bytes    int `toml:"bytes,omitempty"`
	Depth    int `toml:"depth,omitempty"`
	Number   int `toml:"number,omitempty"`
	Exponent int `toml:"exponent,omitempty"`
	Calls    int `toml:"calls,omitempty"`
	Turns    int `toml:"turns,omitempty"`
}

// ModelRule changes the settings for the models that match Match.
type ModelRule struct {
	Match    string `toml:"match"` // a * matches any text
	Settings        // override the settings of the Upstream
}

// ToolRule changes the settings for one tool. A zero field inherits.
type ToolRule struct {
	Name string `toml:"name"`
	// Mode Enforce has no effect if the mode of the request is another one. Repair makes no
	// re-ask for this tool alone. Observe passes its calls without a repair or a re-ask.
	Mode        Mode                   `toml:"mode,omitempty"`
	Attempts    int                    `toml:"attempts,omitempty"`
	OnExhausted middleware.OnExhausted `toml:"on_exhausted,omitempty"`
	Repairs     []string               `toml:"repairs,omitempty"`
	Strip       strip.Mode             `toml:"strip,omitempty"`
	Aliases     map[string]string      `toml:"aliases,omitempty"` // other names of declared properties
	// Destructive marks a tool whose effects cannot be undone. If the model wrote
	// a call to it as text, Settings.Rescue re-asks instead of making the call; and
	// Settings.Heal does not make up a result of such a call.
	Destructive bool `toml:"destructive,omitempty"`
	Polling     bool `toml:"polling,omitempty"` // the tool is meant to be called again: Settings.LoopAfter leaves it alone
}

// HeaderRules change the headers of requests to an upstream. In a value, ${NAME} is replaced by
// the environment variable NAME without the white space around it; New returns an error if
// nothing is left. Remove comes before Set.
type HeaderRules struct {
	Set    map[string]string `toml:"set,omitempty"`
	Remove []string          `toml:"remove,omitempty"`
}

// Timeouts limit the phases of a request to an upstream. 0 means the default.
type Timeouts struct {
	Connect Duration `toml:"connect,omitempty"` // of one attempt to connect; default 5s
	// Refused is how long a connection that the upstream refuses is tried again.
	// Nothing has been sent by then. Default 10s; "off" tries once.
	Refused Duration `toml:"refused,omitempty"`
	Header  Duration `toml:"header,omitempty"` // from the request's last byte to the response's headers; default 10m
	Idle    Duration `toml:"idle,omitempty"`   // between two reads of a response; default 5m
}

// validate returns the first invalid field as an error that begins with its key.
func (t Timeouts) validate() error {
	if isTooShort(t.Connect) || isTooShort(t.Refused) || isTooShort(t.Header) || isTooShort(t.Idle) {
		return invalid("timeouts", "must be durations of at least 1 ms, such as \"10s\"")
	}
	for i, d := range []Duration{t.Connect, t.Refused, t.Header, t.Idle} {
		if d < 0 && d != Off {
			return invalid("timeouts."+[]string{"connect", "refused", "header", "idle"}[i], "must not be negative, got %s", d)
		}
	}
	return nil
}

// Access limits who may use the gateway. The zero Access is for loopback only.
type Access struct {
	// ClientKeyFile is a file with the key that clients without a name must send, or
	// with several keys, one a line. The environment variable TOOLMEND_CLIENT_KEY is
	// used if it is "". Config.Clients are clients with names.
	ClientKeyFile string `toml:"client_key_file,omitempty"`
	// KeyHeaderOnly accepts the key only in the header X-Toolmend-Key, so that
	// the client's own credential goes to the upstream. Otherwise a client may
	// also send the key where it sends its API key. Then each upstream needs a
	// header rule that sets its credential, or one that removes it if the
	// upstream needs none.
	KeyHeaderOnly bool     `toml:"key_header_only,omitempty"`
	AllowHosts    []string `toml:"allow_hosts,omitempty"`   // further values of Host on a loopback listener, without a port
	AllowOrigins  []string `toml:"allow_origins,omitempty"` // values of Origin of allowed browser requests
}

// Record configures the recording of the upstreams' answers.
type Record struct {
	File    string `toml:"file,omitempty"`     // "" records nothing
	Content bool   `toml:"content,omitempty"`  // record the messages of requests and answers too
	MaxSize int64  `toml:"max_size,omitempty"` // bytes of one file; default 100 MB
	// Headers are the request headers that are recorded. Headers that hold
	// credentials are refused.
	Headers []string `toml:"headers,omitempty"`
	Files   int      `toml:"files,omitempty"` // files that are kept; default 5
}

// Mode is what the gateway does with a model call.
type Mode string

// The modes.
const (
	// Enforce validates and repairs tool calls, and re-asks the model.
	Enforce Mode = "enforce"
	// Repair validates and repairs, and never makes a second model call.
	Repair Mode = "repair"
	// Observe changes nothing. It validates a copy of the answer and counts what
	// the other modes would have done.
	Observe Mode = "observe"
)

// Refusal is whether an answer that cannot be read is refused.
type Refusal string

// The settings.
const (
	Reject Refusal = "reject"
	PassOn Refusal = "pass"
)

// Formats are the values of "format" in the schemas of tools that calls must obey.
type Formats string

// The settings; see argsvalidate.Advanced.
const (
	IgnoreFormats Formats = "off"
	SafeFormats   Formats = "safe"
	AllFormats    Formats = "all"
)

// Hold is how much of a streamed answer waits until it is validated.
type Hold string

// The settings; see transport.Options.Hold.
const (
	HoldCalls Hold = "calls" // text flows, calls wait
	HoldAll   Hold = "all"
)

// WebSockets is what happens to a WebSocket upgrade on the path of a model call. The calls of a
// WebSocket cannot be validated.
type WebSockets string

// The settings. Observe always passes upgrades.
const (
	RefuseWebSockets WebSockets = "refuse" // with status 426; clients fall back to HTTP
	PassWebSockets   WebSockets = "pass"
)

// Tokens is a number of tokens, or argsvalidate.NoRaise. Its text is a number, "off" or
// "unbounded".
type Tokens int

// Unbounded is more tokens than any request has.
const Unbounded Tokens = math.MaxInt32

// UnmarshalText reads a number, "off" or "unbounded".
func (t *Tokens) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 0, 0)
	switch string(text) {
	case "off":
		n, err = argsvalidate.NoRaise, nil
	case "unbounded":
		n, err = int64(Unbounded), nil
	}
	if *t = Tokens(n); err != nil {
		return fmt.Errorf("must be a number, \"off\" or \"unbounded\", got %q", text)
	}
	return nil
}

// Duration is a time.Duration whose text is "10s" or "off".
type Duration time.Duration

// Off is the Duration that turns something off.
const Off = Duration(transport.Off)

// or returns d, or what 0 means. It returns 0 for Off.
func (d Duration) or(zero time.Duration) time.Duration {
	switch d {
	case 0:
		return zero
	case Off:
		return 0
	}
	return time.Duration(d)
}

// UnmarshalText reads a duration such as "10s", or "off".
func (d *Duration) UnmarshalText(text []byte) error {
	if string(text) == "off" {
		*d = Off
		return nil
	}
	v, err := time.ParseDuration(string(text))
	if err != nil || v <= 0 {
		return fmt.Errorf("must be a positive duration such as \"10s\", or \"off\", got %q", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText returns the text of String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String returns the text of the duration.
func (d Duration) String() string {
	if d == Off {
		return "off"
	}
	return time.Duration(d).String()
}
