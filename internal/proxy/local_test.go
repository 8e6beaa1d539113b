package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/proxy"
)

func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"localhost": true, "LOCALHOST:80": true, "127.0.0.1": true, "127.8.9.1:80": true, "::1": true, "[::1]": true, "[::1]:80": true,
		"": false, ":80": false, "0.0.0.0:80": false, "[::]:80": false, "localhost.evil.example:80": false, "127.0.0.1.evil.example": false, "10.0.0.1:80": false,
	} {
		require.Equal(t, want, proxy.IsLoopback(address), address)
	}
}

func TestCrossSite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		origin, site string
		want         bool
	}{
		"no browser":               {"", "", false},
		"the same origin":          {"http://localhost:80", "same-origin", false},
		"an address that is typed": {"", "none", false},
		"another port":             {"http://localhost:81", "", true},
		"another site":             {"https://evil.example", "", true},
		"no origin":                {"null", "", true},
		"a site without Origin":    {"", "cross-site", true},
		"a subdomain":              {"", "same-site", true},
		"an allowed one":           {"https://good.example", "cross-site", false},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost:80/", nil)
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		require.Equal(t, c.want, proxy.CrossSite(r, "https://good.example"), name)
	}
}
