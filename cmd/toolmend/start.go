package main

import (
	"fmt"
	"io"
	"net"
	"net/url"
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

// writeStart tells the user what to set in the agent. admin is nil without
// admin_listen. page is Gateway.PagePath.
func writeStart(w io.Writer, c config, addr, admin net.Addr, page string) {
	base := urlFor(c, addr)
	fmt.Fprintf(w, "toolmend listens on %s\n\n", base)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, u := range c.Upstreams {
		to := u.URL
		if u.Mode != "" {
			to += " (mode " + string(u.Mode) + ")"
		}
		fmt.Fprintf(t, "  %s%s\tto %s\n", base, u.Prefix, to)
	}
	t.Flush()
	var others []string
	for _, m := range []gateway.Mode{gateway.Enforce, gateway.Repair, gateway.Observe} {
		if m != c.Mode {
			others = append(others, "--mode "+string(m))
		}
	}
	fmt.Fprintf(w, "\nmode %s: %s.\nChange it with %s.\n", c.Mode, modeText[c.Mode], strings.Join(others, " or "))
	fmt.Fprint(w, "\nSet in the agent:\n\n")
	example := first(c.Upstreams)
	at := base + example.Prefix
	env := "toolmend env "
	if at != "http://"+defaultListen {
		env += "--url " + at + " "
	}
	for _, a := range []struct{ of, name, set string }{
		{"anthropic", "Claude Code", "ANTHROPIC_BASE_URL=" + at + " claude"},
		{"openai", "Codex", "see " + env + "codex"},
		{"openai", "opencode", "see " + env + "opencode"},
		{"openai", "qwen-code", "OPENAI_BASE_URL=" + at + "/v1 qwen --auth-type openai"},
		{"openai", "OpenAI SDKs", "OPENAI_BASE_URL=" + at + "/v1"},
		{"anthropic", "Anthropic SDKs", "ANTHROPIC_BASE_URL=" + at},
	} {
		if of := makerOf(example.URL); of == "" || of == a.of {
			fmt.Fprintf(t, "  %s\t%s\n", a.name, a.set)
		}
	}
	t.Flush()
	fmt.Fprintln(w)
	if own := adminURL(c, addr, admin); own != "" {
		if page != "" {
			fmt.Fprintf(w, "Page:    %s%s\n", own, page)
		}
		fmt.Fprintf(w, "Metrics: %s/_toolmend/metrics\n\n", own)
	}
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

// adminURL returns the address of the gateway's own pages, or "": without
// admin_listen they are on the main listener only if other machines cannot reach
// that.
func adminURL(c config, addr, admin net.Addr) string {
	if admin != nil {
		return urlFor(config{}, admin)
	}
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return urlFor(c, addr)
	}
	return ""
}

// first returns the upstream that the start message uses as the example.
func first(upstreams []gateway.Upstream) gateway.Upstream {
	for _, u := range upstreams {
		if u.Default {
			return u
		}
	}
	return upstreams[0]
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
