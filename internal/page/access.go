package page

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
)

// Access is who may read the page. The token and the key each open it.
type Access struct {
	// Token is part of the address that opens the page. See NewToken.
	Token string
	// Key is the password for HTTP Basic authentication, with any user name.
	// "" means that no key opens the page.
	Key string
}

// NewToken returns a random token of 130 bits, in characters that need no escape.
func NewToken() string { return strings.ToLower(rand.Text()) }

// tokenParameter is the parameter of the query that holds the token.
const tokenParameter = "token"

// guard lets a request with the token or the key through.
type guard struct {
	root   string
	token  [sha256.Size]byte
	key    *[sha256.Size]byte // nil if there is no key
	cookie string             // name
	secret string             // value of the cookie
}

// newGuard returns a guard for the paths below root. The cookie's name and value
// derive from the token. The name differs between gateways, because a browser sends a
// cookie to all ports of a host. The value does not reveal the token.
func newGuard(root string, a Access) *guard {
	g := &guard{root: root, token: sha256.Sum256([]byte(a.Token))}
	name, value := sha256.Sum256([]byte("name "+a.Token)), sha256.Sum256([]byte("value "+a.Token))
	g.cookie, g.secret = "toolmend-"+hex.EncodeToString(name[:4]), hex.EncodeToString(value[:])
	if a.Key != "" {
		sum := sha256.Sum256([]byte(a.Key))
		g.key = &sum
	}
	return g
}

// admits reports whether r may be served.
func (g *guard) admits(r *http.Request) bool {
	if c, err := r.Cookie(g.cookie); err == nil && same(c.Value, sha256.Sum256([]byte(g.secret))) {
		return true
	}
	_, password, ok := r.BasicAuth()
	return ok && g.key != nil && same(password, *g.key)
}

// enter answers a request with the token: the browser gets the cookie and is sent
// to the same address without the token, so that the token does not stay in its
// address bar. enter reports whether it has answered.
func (g *guard) enter(w http.ResponseWriter, r *http.Request) bool {
	query := r.URL.Query()
	if token := query.Get(tokenParameter); token == "" || !same(token, g.token) {
		return false
	}
	query.Del(tokenParameter)
	http.SetCookie(w, &http.Cookie{
		Name: g.cookie, Value: g.secret, Path: g.root + "/",
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
	to := url.URL{Path: "/" + strings.TrimLeft(r.URL.Path, "/"), RawQuery: query.Encode()} // two slashes would begin a host
	w.Header().Set("Location", to.RequestURI())
	w.WriteHeader(http.StatusSeeOther)
	return true
}

// same compares in a time that does not depend on either text.
func same(token string, want [sha256.Size]byte) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], want[:]) == 1
}
