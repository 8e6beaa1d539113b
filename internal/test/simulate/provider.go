package simulate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	mathrand "math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolmend/toolmend/internal/test/strict"
)

// upstream is a provider.
type upstream struct {
	world  *World
	name   string
	two    bool // HTTP/2, over TLS
	host   *host
	server *http.Server

	mu      sync.Mutex
	serving map[*exchange]int
}

// url returns the address for the configuration.
func (u *upstream) url() string {
	if u.two {
		return "https://" + u.host.name
	}
	return "http://" + u.host.name
}

// certificate is the certificate of the providers, and its PEM form for SSL_CERT_FILE. The time of a
// test begins in the year 2000.
var certificate = sync.OnceValues(func() (tls.Certificate, []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	t := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "simulated"}, DNSNames: []string{"*.test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, &t, &t, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
})

// start serves the provider.
func (u *upstream) start() {
	u.serving = map[*exchange]int{}
	u.server = &http.Server{Handler: u, ErrorLog: log.New(io.Discard, "", 0), IdleTimeout: 5 * time.Minute}
	if !u.two {
		go func() { _ = u.server.Serve(u.host) }()
		return
	}
	c, _ := certificate()
	u.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{c}}
	go func() { _ = u.server.ServeTLS(u.host, "", "") }()
}

// ServeHTTP answers as the plan of the exchange says.
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	world := u.world
	tag := tags.FindString(string(body))
	x := world.byTag[tag]
	if x == nil {
		if r.URL.Path == probePath {
			u.probe(w)
			return
		}
		world.fail("(iii)", "a provider got a request of an unknown client: %s %s %.200q", r.Method, r.URL, body)
		return
	}
	p := u.take(x, r, body)
	defer u.leave(x)
	kind, frames := x.frames(p)
	world.keep(x, p, frames)
	u.write(w, r, p, kind, frames, x)
}

// take checks a request, counts it and returns the reply to it.
func (u *upstream) take(x *exchange, r *http.Request, body []byte) *reply {
	world := u.world
	text := fmt.Sprint(r.URL, r.Header, string(body))
	world.owns("a request to a provider", x, text)
	for _, c := range world.clients {
		if bytes.Contains([]byte(text), []byte(c.key)) {
			world.fail("(iii)", "%s: the client key of %s reached a provider", x.tag, c.name)
		}
	}
	if x.to != u {
		world.fail("(iii)", "%s: the request for %s reached %s", x.tag, x.to.name, u.name)
	}
	damaged := slices.ContainsFunc(x.replies[:min(x.received, len(x.replies))], func(p *reply) bool { return p.kind == kindGarbage })
	if why := x.format.Refuse(body, strict.Rules{Answers: world.replies + 1}); why != "" && !damaged { // what was damaged may come back so
		world.fail("(ii)", "%s: the provider refuses request %d: %s\n%s", x.tag, x.received, why, body)
	}
	world.mu.Lock()
	defer world.mu.Unlock()
	if x.sum.status != 0 && !x.sum.end.IsZero() && x.sum.err == nil {
		world.failLocked("(i)", "%s: a model call was made after the client had the whole answer", x.tag)
	}
	p := x.replies[min(x.received, len(x.replies)-1)]
	x.received++
	x.sent = append(x.sent, p)
	if most := world.set.attempts + 1; x.received > most { // heal may add one
		world.failLocked("(iv)", "%s: model call %d of at most %d", x.tag, x.received, most)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.serving[x]++
	busy := 0
	for other := range u.serving {
		if len(other.lines) == 0 { // its place is taken
			busy++
		}
	}
	if busy > world.set.places {
		world.failLocked("(v)", "%s serves %d requests, and max_concurrent is %d", u.name, busy, world.set.places)
	}
	return p
}

func (u *upstream) leave(x *exchange) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.serving[x]--; u.serving[x] == 0 {
		delete(u.serving, x)
	}
}

// keep stores the bytes of an answer.
func (w *World) keep(x *exchange, p *reply, frames []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b bytes.Buffer
	for _, f := range frames {
		b.WriteString(f)
	}
	x.bodies[p] = b.String()
}

// write sends an answer, with what the plan does to it.
func (u *upstream) write(w http.ResponseWriter, r *http.Request, p *reply, kind string, frames []string, x *exchange) {
	if !u.pause(r, p.before) {
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Request-Id", x.tag)
	if p.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "3")
	}
	if p.breakAt == 0 {
		panic(http.ErrAbortHandler)
	}
	if len(frames) == 1 && p.r.IntN(2) == 0 {
		w.Header().Set("Content-Length", strconv.Itoa(len(frames[0])))
	}
	w.WriteHeader(p.status)
	flush := http.NewResponseController(w).Flush
	written := 0
	for i, f := range frames {
		for len(f) > 0 {
			k := len(f)
			for _, at := range []int{p.stallAt, p.breakAt} {
				if at > written && at < written+k {
					k = at - written
				}
			}
			if _, err := io.WriteString(w, f[:k]); err != nil {
				return
			}
			f = f[k:]
			written += k
			_ = flush()
			if written == p.stallAt && !u.pause(r, p.stall) {
				return
			}
			if written == p.breakAt {
				u.world.mu.Lock()
				x.whole[p] = strings.TrimSpace(x.bodies[p][written:]) == "" // a reader needs no white space after the last event
				u.world.mu.Unlock()
				if p.r.IntN(2) == 0 {
					_ = u.pause(r, upTo(p.r, 100*time.Millisecond))
				}
				panic(http.ErrAbortHandler)
			}
		}
		if p.between > 0 && i < len(frames)-1 && p.r.IntN(3) == 0 && !u.pause(r, upTo(p.r, p.between)) {
			return
		}
	}
	u.world.mu.Lock()
	x.whole[p] = true
	u.world.mu.Unlock()
}

// pause waits, and reports whether somebody still waits for the answer.
func (u *upstream) pause(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return r.Context().Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	case <-u.world.over:
		return false
	}
}

// probePath is the path of the requests that count the free places.
const probePath = "/v1/probe"

// probe answers late, so that all probes are there at one time.
func (u *upstream) probe(w http.ResponseWriter) {
	time.Sleep(20 * time.Second)
	w.WriteHeader(http.StatusNoContent)
}

// cutter returns a function that decides after how many bytes a connection to a provider breaks.
func cutter(often int) func(r *mathrand.Rand) int {
	return func(r *mathrand.Rand) int {
		if r.IntN(often) > 0 {
			return -1
		}
		return r.IntN(pick(r, 100, 3000, 20000))
	}
}
