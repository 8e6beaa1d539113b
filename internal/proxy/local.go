package proxy

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// IsLoopback reports whether only programs on this machine reach an address, which
// is a host with or without a port.
func IsLoopback(address string) bool {
	host := HostOf(address)
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// HostOf returns an address without its port and without the brackets of IPv6.
func HostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
}

// CrossSite reports whether a browser sent r for a page of another origin than r's
// own and the allowed ones. Origin is missing in simple requests of some browsers,
// and Sec-Fetch-Site in older ones, so both are checked.
//
// Source: the Fetch Metadata specification, and net/http.CrossOriginProtection,
// which lets safe methods pass.
func CrossSite(r *http.Request, allowed ...string) bool {
	origins := r.Header["Origin"]
	for _, o := range origins {
		if slices.Contains(allowed, o) {
			continue
		}
		if u, err := url.Parse(o); err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return true
		}
	}
	if len(origins) > 0 && slices.Contains(allowed, origins[0]) {
		return false
	}
	return slices.ContainsFunc(r.Header["Sec-Fetch-Site"], func(s string) bool { return s != "same-origin" && s != "none" })
}
