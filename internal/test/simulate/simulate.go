// Package simulate runs a whole gateway on a network in memory, with clients and providers that
// misbehave, all decided by one seed. Time is that of testing/synctest: an hour passes at once.
//
// The caller starts the gateway, because the command's own server is what is tested: with its
// reload, its drain, its log and its page. See docs/simulation.md.
package simulate

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
)

// gatewayHost is the host of the gateway on the network.
const gatewayHost = "gateway"

// Gateway is a gateway that runs.
type Gateway struct {
	// PagePath returns the path of the page.
	PagePath func() string
	// Handler serves the gateway's own pages.
	Handler http.Handler
	// Stopped gets whether all requests were finished, when the server has stopped after SIGTERM.
	Stopped <-chan bool
	// Close releases what the gateway holds, after it has stopped.
	Close func()
}

// World is one run: what the gateway is given, and what becomes of it.
type World struct {
	// ConfigFile is the configuration file.
	ConfigFile string
	// Listener is where the clients arrive.
	Listener net.Listener
	// Signals is where the signals of the operator arrive.
	Signals chan os.Signal
	// Meter counts.
	Meter metric.MeterProvider

	seed      uint64
	net       *network
	dir       string
	set       settings
	clients   []*client
	upstreams []*upstream
	exchanges []*exchange
	byTag     map[string]*exchange
	replies   int
	reader    *sdk.ManualReader
	over      chan struct{}
	events    []string
	start     time.Time
	took      time.Duration

	mu         sync.Mutex
	log        []byte
	violations []string
	stopping   time.Time // when SIGTERM was sent
	keys       []change
	turbulent  bool           // the network does harm
	sums       map[string]int // of the counters
}

// change is when the keys of clients changed.
type change struct {
	at    time.Time
	valid map[string]bool // by the name of the client
}

// Dial opens the connections of the gateway to providers.
func (w *World) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	name, _, _ := net.SplitHostPort(address)
	w.net.mu.Lock()
	h := w.net.hosts[name]
	w.net.mu.Unlock()
	return w.net.dial(ctx, name, h != nil && h.two)
}

// Write takes lines of the log.
func (w *World) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, p...)
	return len(p), nil
}

// fail notes a violation of an invariant.
func (w *World) fail(invariant, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failLocked(invariant, format, args...)
}

func (w *World) failLocked(invariant, format string, args ...any) {
	after := time.Since(w.start)
	if w.took > 0 { // outside of the run
		after = w.took
	}
	w.violations = append(w.violations, fmt.Sprintf("%s %s: %s", after, invariant, fmt.Sprintf(format, args...)))
}

func (w *World) isOver() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// Prepare must be called once in a process, before the first run and before anything verifies
// certificates.
func Prepare(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("SSL_CERT_FILE has no effect here, and the providers have a certificate of their own")
	}
	_, pem := certificate()
	file := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(file, pem, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", file)
	t.Setenv("SSL_CERT_DIR", t.TempDir())
	for _, k := range []string{"HTTP_PROXY", "HTTPS_PROXY", "TOOLMEND_CLIENT_KEY"} {
		t.Setenv(k, "")
		_ = os.Unsetenv(k)
	}
	t.Setenv("GOGC", "off") // so that no collection empties the pools in the middle of a run
}

// Result is what a run has shown.
type Result struct {
	Violations            []string // of invariants
	Exchanges, ModelCalls int
	Time                  time.Duration // simulated
}

// Run runs a seed. It must not run concurrently with another test.
func Run(t *testing.T, seed uint64, start func(*World) (*Gateway, error)) (r Result) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	w := &World{seed: seed, byTag: map[string]*exchange{}, dir: t.TempDir(), over: nil}
	pools := countPools()
	defer func() {
		if v := recover(); v != nil { // synctest panics if goroutines are left that wait
			r.Violations = append(w.violations, fmt.Sprintf("(v): %v", v))
		}
	}()
	watch := time.AfterFunc(patienceOfTest, func() { // the time of synctest is frozen while a goroutine waits for a mutex
		buf := make([]byte, 4<<20)
		fmt.Fprintf(os.Stderr, "seed %d does not end: its goroutines\n%s\n", seed, buf[:runtime.Stack(buf, true)])
		os.Exit(2)
	})
	defer watch.Stop()
	synctest.Test(t, func(t *testing.T) { w.run(start) })
	if faults := pools(); !dropsAtRandom {
		for _, p := range faults {
			w.fail("(v)", "%s", p)
		}
	}
	r = Result{Violations: w.violations, Time: w.took}
	for _, x := range w.exchanges {
		if x.began {
			r.Exchanges++
		}
		r.ModelCalls += x.received
	}
	return r
}

// patienceOfTest is the real time after which a run is given up.
const patienceOfTest = 2 * time.Minute

// run is the life of a gateway.
func (w *World) run(start func(*World) (*Gateway, error)) {
	w.start, w.over = time.Now(), make(chan struct{})
	w.net = newNetwork(w.seed)
	for i, name := range []string{"one", "two"} {
		u := &upstream{world: w, name: name, two: i == 1, host: w.net.listen(name+".test", i == 1)}
		u.start()
		w.upstreams = append(w.upstreams, u)
	}
	w.draw()
	// A write waits for a mutex while a keep-alive waits for its client, see listen.
	w.Listener = w.net.listen(gatewayHost, !w.set.pressure)
	w.reader = sdk.NewManualReader()
	meters := sdk.NewMeterProvider(sdk.WithReader(w.reader))
	w.Meter, w.Signals, w.ConfigFile = meters, make(chan os.Signal, 8), filepath.Join(w.dir, "toolmend.toml")
	w.turbulent = !w.set.calm
	w.writeKeys()
	w.configure(nil)
	g, err := start(w)
	if err != nil {
		w.fail("", "the gateway does not start: %v", err)
		return
	}
	var clients sync.WaitGroup
	for _, c := range w.clients {
		clients.Go(c.run)
	}
	operator := make(chan struct{})
	go func() { w.operate(); close(operator) }()
	ended := make(chan struct{})
	go func() { clients.Wait(); close(ended) }()
	if w.set.drainAt > 0 {
		select {
		case <-time.After(w.set.drainAt):
		case <-ended:
		}
	} else {
		<-ended
	}
	if w.set.drainAt == 0 {
		w.quiet()
		w.probePlaces()
	}
	w.browse(g)
	w.stop(g)
	close(w.over)
	<-ended
	<-operator
	time.Sleep(time.Minute)
	g.Close()
	w.checkEnd()
	for _, u := range w.upstreams {
		_ = u.server.Close()
	}
	time.Sleep(20 * time.Minute)
	_ = meters.Shutdown(context.Background())
	synctest.Wait()
	w.checkLeft()
	w.took = time.Since(w.start)
}

// quiet ends the faults of the network, and waits until nothing of them is left.
func (w *World) quiet() {
	w.mu.Lock()
	w.set.calm, w.events = true, append(w.events, "quiet")
	w.mu.Unlock()
	for _, h := range []*host{w.Listener.(*host), w.upstreams[0].host, w.upstreams[1].host} {
		h.set(false, false)
		h.mu.Lock()
		h.cut = nil
		h.mu.Unlock()
	}
	time.Sleep(30 * time.Minute)
}

// probePlaces sends as many requests as each upstream serves at one time. A place that somebody
// has kept leaves one of them without.
func (w *World) probePlaces() {
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return w.net.dial(ctx, gatewayHost, false)
	}}
	defer tr.CloseIdleConnections()
	var all sync.WaitGroup
	for _, u := range w.upstreams {
		for range w.set.places {
			all.Go(func() {
				req, _ := http.NewRequest(http.MethodPost, "http://127.0.0.1:7777/"+u.name+probePath, strings.NewReader("{}"))
				req.Header.Set("X-Toolmend-Key", w.clients[0].key)
				resp, err := tr.RoundTrip(req)
				if err != nil {
					w.fail("(v)", "a probe of the places of %s: %v", u.name, err)
					return
				}
				text, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusNoContent {
					w.fail("(v)", "a place of %s is not free in the end: status %d, %s", u.name, resp.StatusCode, text)
				}
			})
		}
	}
	all.Wait()
}

// stop sends SIGTERM, and waits for the end.
func (w *World) stop(g *Gateway) {
	w.mu.Lock()
	w.stopping = time.Now()
	w.mu.Unlock()
	w.Signals <- syscall.SIGTERM
	limit := time.NewTimer(w.set.drain + 2*time.Second)
	defer limit.Stop()
	select {
	case <-g.Stopped:
	case <-limit.C:
		w.fail("(i)", "the drain takes longer than drain_timeout, %s", w.set.drain)
		w.Signals <- syscall.SIGTERM
		<-g.Stopped
	}
}

// writeKeys writes a file with the key of each client.
func (w *World) writeKeys() {
	for _, c := range w.clients {
		if err := os.WriteFile(filepath.Join(w.dir, c.name), []byte(c.key), 0o600); err != nil {
			panic(err)
		}
	}
}

// configure writes the configuration, without the clients whose keys were revoked.
func (w *World) configure(revoked map[string]bool, more ...string) {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if w.set.pressure {
		more = []string{`keep_alive = "off"`}
	}
	p("mode = %q\nhold = %q\nattempts = %d\non_exhausted = %q\ndrain_timeout = %q\n%s", w.set.mode, w.set.hold, w.set.attempts, w.set.exhausted, w.set.drain, strings.Join(more, "\n"))
	p("[access]\nkey_header_only = true\n[record]\nfile = %q\ncontent = true\nmax_size = 20000", w.recordFile())
	valid := map[string]bool{}
	for _, c := range w.clients {
		if !revoked[c.name] {
			valid[c.name] = true
			p("[[client]]\nname = %q\nkey_file = %q", c.name, filepath.Join(w.dir, c.name))
		}
	}
	for _, u := range w.upstreams {
		p("[[upstream]]\nname = %q\nurl = %q\nprefix = %q\nmax_concurrent = %d\ntimeouts = { header = \"60s\", idle = \"30s\" }", u.name, u.url(), "/"+u.name, w.set.places)
	}
	if err := os.WriteFile(w.ConfigFile, []byte(b.String()), 0o600); err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys = append(w.keys, change{time.Now(), valid})
}

func (w *World) recordFile() string { return filepath.Join(w.dir, "record.jsonl") }

// operate does what an operator and the network do, until the end.
func (w *World) operate() {
	r := w.source("operator")
	revoked := map[string]bool{}
	if !w.set.calm {
		for _, u := range w.upstreams {
			if r.IntN(2) == 0 {
				u.host.mu.Lock()
				u.host.cut = cutter(3)
				u.host.mu.Unlock()
			}
		}
		if h := w.Listener.(*host); r.IntN(3) == 0 {
			h.mu.Lock()
			h.cut = cutter(6)
			h.mu.Unlock()
		}
	}
	for range r.IntN(12) {
		t := time.NewTimer(upTo(r, 15*time.Second))
		select {
		case <-t.C:
		case <-w.over:
			t.Stop()
			return
		}
		u := pick(r, w.upstreams...)
		event := pick(r, "reload", "reload", "revoke", "wrong file", "full disk", "page", "refuse", "silence", "reset", "reset clients")
		w.mu.Lock()
		calm, stopping := w.set.calm, !w.stopping.IsZero()
		w.events = append(w.events, fmt.Sprintf("%s %s", time.Since(w.start), event))
		w.mu.Unlock()
		if stopping {
			return
		}
		switch {
		case event == "reload":
			w.configure(revoked, pick(r, "", `keep_alive = "3s"`, `keep_alive = "off"`))
			w.Signals <- syscall.SIGHUP
		case event == "revoke":
			name := w.clients[r.IntN(len(w.clients))].name
			if revoked[name] = !revoked[name]; name == w.clients[0].name {
				revoked[name] = false // its key is the key of the probes
			}
			w.configure(revoked)
			w.Signals <- syscall.SIGHUP
		case event == "wrong file":
			_ = os.WriteFile(w.ConfigFile, []byte("attempts = \"no number\"\n"), 0o600)
			w.Signals <- syscall.SIGHUP
		case event == "full disk": // what is full cannot be moved away
			_ = os.MkdirAll(w.recordFile()+".0/x", 0o700)
			time.Sleep(upTo(r, 30*time.Second))
			_ = os.RemoveAll(w.recordFile() + ".0")
		case calm:
		case event == "refuse":
			u.host.set(true, false)
			time.Sleep(upTo(r, 15*time.Second))
			u.host.set(false, false)
		case event == "silence":
			u.host.set(false, true)
			time.Sleep(upTo(r, 2*time.Minute))
			u.host.set(false, false)
		case event == "reset":
			u.host.resetAll()
		case event == "reset clients":
			w.Listener.(*host).resetAll()
		}
	}
}

// leftGoroutines returns the goroutines of this run that have not ended, but for the caller.
func leftGoroutines() (left []string) {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	all := strings.Split(string(buf), "\n\n")
	for _, g := range all[1:] {
		if head, _, _ := strings.Cut(g, "\n"); strings.Contains(head, "synctest bubble") && !strings.Contains(g, "internal/synctest.Run(") && !strings.Contains(g, "testingSynctestTest(") {
			left = append(left, g)
		}
	}
	return left
}

func sortConns(all []*conn) {
	sort.Slice(all, func(i, j int) bool { return all[i].serial < all[j].serial })
}

// openFiles returns the open files below a folder.
func openFiles(dir string) (open []string) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, dir) {
			open = append(open, to)
		}
	}
	slices.Sort(open)
	return open
}

var _ io.Writer = (*World)(nil)
