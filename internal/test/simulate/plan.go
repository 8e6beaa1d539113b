package simulate

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/test/strict"
)

// A tag names the exchange that a text belongs to: the client, and which of its exchanges. Each
// text of an exchange holds its tag and no other: the prompt, the text and the calls of each scripted
// answer, the words of a refusal, the headers. So a tag in a wrong place is a leak.
func tagOf(client, n int) string {
	return fmt.Sprintf("zq%02d%02d%06xqz", client, n, hash(fmt.Sprint(client, n))&0xffffff)
}

var tags = regexp.MustCompile(`zq[0-9a-f]{10}qz`)

// kinds of scripted answers.
const (
	kindText    = "text"
	kindCall    = "call"
	kindMend    = "mend" // a number as text, which has one reading
	kindBad     = "bad"  // a required property is missing
	kindUnknown = "unknown tool"
	kindRefuse  = "refuse" // a status from 400 to 503
	kindGarbage = "garbage"
)

// reply is a scripted answer.
type reply struct {
	kind   string
	n      int // of all replies of the run
	status int
	text   string
	calls  []strict.Call
	truth  []strict.Call // what the calls are after the repairs
	whole  bool          // a whole body, whatever the client asked for

	before  time.Duration // the first byte
	between time.Duration // two frames, at most
	stallAt int           // byte; -1 means never
	stall   time.Duration
	breakAt int // byte; -1 means never
	r       *rand.Rand
}

// lame reports whether the reply does not arrive as it was meant.
func (r *reply) lame() bool { return r.breakAt >= 0 || r.kind == kindGarbage || r.stall > time.Minute }

// What clients do.
const (
	doesRead      = "read"
	doesCancel    = "cancel"         // at a time
	doesLeave     = "leave"          // after some bytes
	doesUpload    = "upload slowly"  // and to the end
	doesStall     = "stall"          // in the upload, for ever
	doesReadLate  = "read slowly"    //
	doesNotRead   = "read nothing"   //
	doesVanish    = "vanish"         // without a word to the other side
	doesReconnect = "new connection" // for each exchange
)

// exchange is a request of a client, what becomes of it, and what the provider will say.
type exchange struct {
	tag      string
	client   *client
	format   format
	streams  bool
	to       *upstream
	does     string
	after    time.Duration // doesCancel, doesVanish
	bytes    int           // doesLeave
	think    time.Duration // before it
	large    bool          // the answer fills what buffers hold
	replies  []*reply
	key      string
	body     string
	sum      outcome
	received int // requests that the provider got whole
	sent     []*reply
	whole    map[*reply]bool // sent to the last byte
	bodies   map[*reply]string
	began    bool
	lines    []logLine
}

// outcome is what the client saw.
type outcome struct {
	start, end time.Time
	gone       time.Time // when the client went away on purpose
	status     int       // 0 without a response
	header     map[string][]string
	trailer    map[string][]string
	body       string
	err        error
}

// own returns the value of a header or trailer.
func (o *outcome) own(name string) string {
	for _, m := range []map[string][]string{o.header, o.trailer} {
		if v := m[name]; len(v) > 0 {
			return v[0]
		}
	}
	return ""
}

// settings are what a seed draws for the whole run.
type settings struct {
	clients, exchanges int
	calm               bool // nothing but clients and providers does harm
	mode               string
	hold               string
	attempts           int
	places             int
	drain              time.Duration
	drainAt            time.Duration // 0 means when all clients have ended
	exhausted          string
	pressure           bool // a client that does not read lets the gateway wait; see network.listen
}

func hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}

// source returns the random numbers of one part of the run, which do not depend on how many other
// parts have drawn.
func (w *World) source(part string) *rand.Rand { return rand.New(rand.NewPCG(w.seed, hash(part))) }

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// draw decides the settings and all exchanges.
func (w *World) draw() {
	r := w.source("settings")
	w.set = settings{
		clients: 2 + r.IntN(4), exchanges: 2 + r.IntN(4), calm: r.IntN(2) == 0,
		mode: pick(r, "enforce", "enforce", "enforce", "repair", "observe"), hold: pick(r, "calls", "calls", "all"), attempts: 1 + r.IntN(3),
		places: 2 + r.IntN(4), drain: pick(r, 2*time.Second, 30*time.Second, 10*time.Minute), exhausted: pick(r, "pass", "pass", "drop", "raise"),
	}
	w.set.pressure = r.IntN(3) == 0
	if r.IntN(3) == 0 {
		w.set.drainAt = time.Second + upTo(r, time.Minute)
	}
	for i := range w.set.clients {
		c := &client{world: w, number: i, two: r.IntN(2) == 0, r: w.source(fmt.Sprint("client", i))}
		c.name = fmt.Sprintf("client-%d", i)
		c.key = fmt.Sprintf("key-of-%s-%x", c.name, hash(c.name))
		w.clients = append(w.clients, c)
		for n := range 1 + c.r.IntN(w.set.exchanges) {
			c.exchanges = append(c.exchanges, w.drawExchange(c, n))
		}
	}
}

func (w *World) drawExchange(c *client, n int) *exchange {
	r := w.source(fmt.Sprint("exchange", c.number, n))
	x := &exchange{
		tag: tagOf(c.number, n), client: c, format: pick(r, formats...), streams: r.IntN(3) > 0, to: pick(r, w.upstreams...),
		think: upTo(r, 20*time.Second), large: r.IntN(6) == 0, key: c.key, whole: map[*reply]bool{}, bodies: map[*reply]string{},
		does: pick(r, doesRead, doesRead, doesRead, doesRead, doesRead, doesCancel, doesLeave, doesUpload, doesStall, doesReadLate, doesNotRead, doesVanish, doesReconnect),
	}
	x.large = x.large || x.does == doesNotRead
	if r.IntN(12) == 0 {
		x.key = "no-key-of-anybody-at-all"
	}
	x.after, x.bytes = pick(r, upTo(r, 100*time.Millisecond), upTo(r, 5*time.Second), upTo(r, time.Minute)), r.IntN(2000)
	prompt := "Read a file for " + x.tag + "."
	if x.does == doesUpload || x.does == doesStall || r.IntN(8) == 0 {
		prompt += strings.Repeat(" And "+x.tag+".", 1+r.IntN(4000))
	}
	x.body = x.format.body(prompt, x.streams)
	for i := range 4 {
		x.replies = append(x.replies, w.drawReply(x, r, i))
	}
	w.exchanges = append(w.exchanges, x)
	w.byTag[x.tag] = x
	return x
}

// drawReply draws the i-th answer to an exchange.
func (w *World) drawReply(x *exchange, r *rand.Rand, i int) *reply {
	w.replies++
	p := &reply{n: w.replies, status: 200, stallAt: -1, breakAt: -1, r: rand.New(rand.NewPCG(r.Uint64(), 1)),
		kind: pick(r, kindText, kindText, kindCall, kindCall, kindCall, kindMend, kindBad, kindBad, kindUnknown, kindRefuse, kindGarbage)}
	secret := fmt.Sprintf("%s-%d", x.tag, i)
	path := fmt.Sprintf(`{"file_path":"/home/%s"`, secret)
	call := func(name, arguments string) strict.Call { return strict.Call{Name: name, Arguments: arguments} }
	switch p.kind {
	case kindText:
		p.text = "This is said to " + secret + "."
	case kindCall, kindGarbage:
		p.calls = []strict.Call{call("read_file", path+`}`)}
		if r.IntN(4) == 0 {
			p.calls = append(p.calls, call("read_file", path+`,"lines":7}`))
		}
		p.truth = p.calls
	case kindMend:
		p.calls, p.truth = []strict.Call{call("read_file", path+`,"lines":"5"}`)}, []strict.Call{call("read_file", path+`,"lines":5}`)}
	case kindBad:
		p.calls = []strict.Call{call("read_file", fmt.Sprintf(`{"wrong":"/home/%s"}`, secret))}
	case kindUnknown:
		p.calls = []strict.Call{call("no_such_tool_at_all", path+`}`)}
	case kindRefuse:
		p.status, p.text = pick(r, 400, 401, 404, 429, 500, 503), "The request of "+secret+" is refused."
	}
	if p.calls != nil && r.IntN(2) == 0 {
		p.text = "Looking for " + secret + "."
	}
	if x.large && p.text != "" && p.kind != kindRefuse {
		p.text += strings.Repeat(" More for "+secret+".", 20+r.IntN(6000))
	}
	p.before, p.between = pick(r, 0, upTo(r, time.Second), upTo(r, 20*time.Second)), pick(r, 0, time.Millisecond, 200*time.Millisecond, 2*time.Second)
	p.whole = r.IntN(12) == 0
	if r.IntN(6) == 0 {
		p.stallAt, p.stall = r.IntN(3000), pick(r, 5*time.Second, 25*time.Second, time.Hour)
	}
	if r.IntN(6) == 0 {
		p.breakAt = r.IntN(pick(r, 10, 400, 4000))
	}
	return p
}

// frames returns what the provider writes.
func (x *exchange) frames(p *reply) (kind string, frames []string) {
	a := strict.Answer{N: p.n, Text: p.text, Calls: p.calls, Input: 10 + p.n}
	switch {
	case p.kind == kindRefuse:
		return "application/json", []string{x.format.Fail(p.status, p.text)}
	case x.streams && !p.whole:
		kind = x.format.Kind
		for _, f := range x.format.Frames(a) {
			frames = append(frames, f.Text)
		}
	default:
		kind, frames = "application/json", []string{x.format.Whole(a)}
	}
	if p.kind == kindGarbage {
		frames = mangle(p.r, frames)
	}
	return kind, frames
}

// mangle damages an answer.
func mangle(r *rand.Rand, frames []string) []string {
	for range 1 + r.IntN(3) {
		switch at := r.IntN(len(frames)); r.IntN(5) {
		case 0:
			b := []byte(frames[at])
			b[r.IntN(len(b))] ^= byte(1 << r.IntN(8))
			frames[at] = string(b)
		case 1:
			from := r.IntN(len(frames[at]))
			frames[at] = frames[at][:from] + frames[at][min(len(frames[at]), from+1+r.IntN(40)):] + " "
		case 2:
			other := r.IntN(len(frames))
			frames[at], frames[other] = frames[other], frames[at]
		case 3:
			frames = slices.Insert(frames, at, frames[at])
		case 4:
			noise := make([]byte, 1+r.IntN(60))
			for i := range noise {
				noise[i] = byte(r.IntN(256))
			}
			frames = slices.Insert(frames, at, string(noise))
		}
	}
	return frames
}

// hazard returns why an exchange may fail, or "".
func (x *exchange) hazard() string {
	for _, p := range x.sent {
		if p.lame() {
			return "the provider"
		}
	}
	why := ""
	if x.does != doesRead && x.does != doesReconnect && x.does != doesUpload && x.does != doesReadLate {
		why = x.does
	}
	return cmp.Or(why, x.client.world.harm(x))
}
