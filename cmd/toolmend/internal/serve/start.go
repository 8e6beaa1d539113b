package serve

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/toolmend/toolmend/gateway"
)

// modeText are the modes in words.
var modeText = map[gateway.Mode]string{
	gateway.Enforce: "validates and repairs tool calls, and asks the model again",
	gateway.Repair:  "validates and repairs tool calls, without a second model call",
	gateway.Observe: "changes nothing, and counts what the other modes would do",
}

// writeStart tells the user what to set in the agents: a block for each upstream. base is the
// address of the gateway, own that of its own pages, and page Gateway.PagePath.
func writeStart(w io.Writer, c config, base, own, page string) {
	fmt.Fprintf(w, "toolmend listens on %s\n\n", base)
	for _, u := range c.Upstreams {
		writeUpstream(w, c, u, base+u.Prefix)
	}
	if own != "" {
		if page != "" {
			fmt.Fprintf(w, "Page:    %s%s\n", own, page)
		}
		fmt.Fprintf(w, "Metrics: %s/_toolmend/metrics\n\n", own)
	}
}

// writeUpstream writes the block of an upstream that clients reach at an address.
func writeUpstream(w io.Writer, c config, u gateway.Upstream, at string) {
	fmt.Fprintf(w, "%s  to %s", at, u.URL)
	if len(u.Models) > 0 {
		fmt.Fprintf(w, ", for the models %s", strings.Join(u.Models, ", "))
	}
	mode := cmp.Or(u.Mode, c.Mode)
	change := ""
	if u.Mode == "" {
		var others []string
		for _, m := range []gateway.Mode{gateway.Enforce, gateway.Repair, gateway.Observe} {
			if m != mode {
				others = append(others, "--mode "+string(m))
			}
		}
		change = "; change it with " + strings.Join(others, " or ")
	}
	if slices.ContainsFunc(u.ModelRules, func(r gateway.ModelRule) bool { return cmp.Or(r.Mode, mode) != mode }) {
		change += "; some models have another mode"
	}
	fmt.Fprintf(w, "\n\n  mode %s: %s%s\n  key: %s\n\n", mode, modeText[mode], change, keyFor(c, u))
	env := "toolmend env "
	if at != "http://"+defaultListen {
		env += "--url " + at + " "
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, a := range []struct{ of, name, set string }{
		{"anthropic", "Claude Code", "ANTHROPIC_BASE_URL=" + at + " claude"},
		{"openai", "Codex", "see " + env + "codex"},
		{"openai", "opencode", "see " + env + "opencode"},
		{"openai", "qwen-code", "OPENAI_BASE_URL=" + at + "/v1 qwen --auth-type openai"},
		{"openai", "OpenAI SDKs", "OPENAI_BASE_URL=" + at + "/v1"},
		{"anthropic", "Anthropic SDKs", "ANTHROPIC_BASE_URL=" + at},
	} {
		if of := makerOf(u.URL); of == "" || of == a.of {
			fmt.Fprintf(t, "  %s\t%s\n", a.name, a.set)
		}
	}
	t.Flush()
	fmt.Fprintln(w)
}

// keyFor says which key clients of an upstream send.
func keyFor(c config, u gateway.Upstream) string {
	var names []string
	for _, client := range c.Clients {
		names = append(names, client.Name)
	}
	clientKey := "the client key"
	if len(names) > 0 {
		clientKey = "a client key (of " + strings.Join(names, ", ") + ")"
	}
	sets := false
	for name := range u.Headers.Set {
		sets = sets || slices.Contains([]string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"}, http.CanonicalHeaderKey(name))
	}
	switch _, env := os.LookupEnv("TOOLMEND_CLIENT_KEY"); {
	case c.Access.ClientKeyFile == "" && !env && len(names) == 0 && sets:
		return "any; the gateway sends the upstream's"
	case c.Access.ClientKeyFile == "" && !env && len(names) == 0:
		return "the upstream's, which the gateway passes on"
	case c.Access.KeyHeaderOnly:
		return "the upstream's, and " + clientKey + " in the header X-Toolmend-Key"
	}
	return clientKey + ", in place of the upstream's"
}

// makerOf returns whose format an upstream speaks, "anthropic" or "openai", or ""
// if its host does not say so.
func makerOf(upstream string) string {
	u, err := url.Parse(upstream)
	if err != nil {
		return ""
	}
	for _, maker := range []string{"anthropic", "openai"} {
		if strings.Contains(strings.ToLower(u.Hostname()), maker) {
			return maker
		}
	}
	return ""
}

// adminURL returns the address of the gateway's own pages without admin_listen, or "": they are on
// the main listener only if other machines cannot reach that.
func adminURL(c config, addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return urlFor(c, addr)
	}
	return ""
}

// urlFor returns the address of a listener for clients on this machine.
func urlFor(c config, addr net.Addr) string {
	host, port, _ := net.SplitHostPort(addr.String())
	return baseURL(c, host, port)
}

// baseURL returns the URL of an address to listen on.
func baseURL(c config, host, port string) string {
	scheme := "http"
	if c.TLSCert != "" {
		scheme = "https"
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}
