package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"syscall"
)

// Refused is the code of the response if the upstream refuses connections. The
// response then has X-Should-Retry: false, as for a host that does not exist and
// for a certificate that is not valid. After other network errors the client may
// try again.
const Refused = "upstream_refused"

// unreachable responds for an upstream that did not respond. It leaves out the
// error, which may contain the URL and with it a key.
func unreachable(w http.ResponseWriter, r *http.Request, err error, refuse Refuse) {
	final := func(code, message string) {
		w.Header().Set("X-Should-Retry", "false")
		refuse(w, r, http.StatusBadGateway, code, message)
	}
	var dns *net.DNSError
	switch cause := Cause(err); {
	case cause == "refused":
		final(Refused, "the upstream refuses connections; check that it runs, and its address")
	case errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
		refuse(w, r, http.StatusGatewayTimeout, "upstream_timeout", "the upstream did not answer in time")
	case errors.As(err, &dns) && dns.IsNotFound:
		final("upstream_unknown_host", "the host of the upstream does not exist; check the upstream's address")
	case cause == "dns":
		refuse(w, r, http.StatusBadGateway, "upstream_unreachable", "the host of the upstream cannot be looked up; check the network, and the upstream's address")
	case cause == "tls":
		final("upstream_tls", "there is no TLS connection to the upstream; check its certificate, and http or https in its address")
	default:
		refuse(w, r, http.StatusBadGateway, "upstream_unreachable", "the connection to the upstream broke before the answer was complete")
	}
}

// Cause returns why there is no connection to the upstream: "refused", "dns",
// "tls", or "" for another reason.
func Cause(err error) string {
	var (
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		alert       tls.AlertError
		noTLS       tls.RecordHeaderError
	)
	switch {
	case isRefused(err):
		return "refused"
	case errors.As(err, &dns):
		return "dns"
	case errors.As(err, &certificate), errors.As(err, &alert), errors.As(err, &noTLS), errors.Is(err, http.ErrSchemeMismatch):
		return "tls"
	}
	return ""
}

// isRefused reports whether the other side refused a connection. The number is
// the error of Windows, which package syscall does not translate.
func isRefused(err error) bool {
	const windows = syscall.Errno(10061)
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, windows)
}
