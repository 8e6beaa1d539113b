package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// owns checks that a text holds no tag but that of x.
func (w *World) owns(what string, x *exchange, text string) {
	for _, tag := range tags.FindAllString(text, -1) {
		if w.byTag[tag] != nil && tag != x.tag {
			w.fail("(iii)", "%s: %s holds the secret of %s", x.tag, what, tag)
			return
		}
	}
}

// harm returns what has happened to x without a fault of its client or its provider, or "".
func (w *World) harm(x *exchange) string {
	switch {
	case !w.set.calm:
		return "the network"
	case !w.stopping.IsZero() && (x.sum.end.IsZero() || x.sum.end.After(w.stopping)):
		return "the drain"
	}
	return ""
}

// hasKey reports whether the key of x was valid, and whether it was so all the time.
func (w *World) hasKey(x *exchange) (valid, certain bool) {
	const settled = time.Second
	if x.key != x.client.key {
		return false, true
	}
	valid, certain = true, true
	for _, k := range w.keys {
		if k.at.Before(x.sum.start.Add(-settled)) {
			valid = k.valid[x.client.name]
		} else if k.at.Before(x.sum.end.Add(settled)) && k.valid[x.client.name] != valid {
			certain = false
		}
	}
	return valid, certain
}

// check checks what the client of x saw.
func (w *World) check(x *exchange) {
	o := &x.sum
	w.owns("the answer", x, fmt.Sprint(o.header, o.trailer, o.body))
	w.mu.Lock()
	defer w.mu.Unlock()
	fail := func(format string, args ...any) {
		w.failLocked("(ii)", "%s %s %s: %s\n    got %d %v %v, error %v, %q\n    sent %s", x.tag, x.format.Name, x.does, fmt.Sprintf(format, args...), o.status, o.header, o.trailer, o.err, clip(o.body), x.told())
	}
	valid, certain := w.hasKey(x)
	if certain && o.status != 0 && valid == (o.own("X-Toolmend-Error") == "client_key") {
		fail("the key is valid: %t", valid)
	}
	if o.own("X-Toolmend-Error") == "client_key" || o.status == 0 && !valid {
		return
	}
	why := x.hazard()
	if o.err != nil {
		if why == "" {
			fail("the answer did not arrive, and nothing was wrong")
		}
		return
	}
	if why == "" && o.status >= 400 && !x.refused() && !w.mayRaise(x) && !w.isFull(x) {
		fail("an error, and nothing was wrong")
	}
	w.checkWhole(x, fail)
}

// refused reports whether the provider has refused a request.
func (x *exchange) refused() bool {
	return slices.ContainsFunc(x.sent, func(p *reply) bool { return p.kind == kindRefuse })
}

// mayRaise reports whether an answer may become an error because it is invalid.
func (w *World) mayRaise(x *exchange) bool {
	return w.set.exhausted != "pass" && slices.ContainsFunc(x.sent, func(p *reply) bool { return p.kind == kindBad || p.kind == kindUnknown || p.kind == kindGarbage })
}

// isFull reports whether the status 429 of the gateway can be right.
func (w *World) isFull(x *exchange) bool {
	if x.sum.own("X-Toolmend-Error") != "too_many_requests" {
		return false
	}
	n := 0
	for _, other := range w.exchanges {
		if other != x && other.to == x.to && other.began && other.sum.start.Before(x.sum.end) {
			n++
		}
	}
	return n >= w.set.places
}

// checkWhole checks an answer that arrived to its last byte.
func (w *World) checkWhole(x *exchange, fail func(format string, args ...any)) {
	o := &x.sum
	kind := strings.Join(o.header["Content-Type"], "")
	a := x.format.decode(x.streams && !strings.HasPrefix(kind, "application/json"), o.body)
	status, own := o.own("X-Toolmend-Status"), o.own("X-Toolmend-Error")
	marked := status == "invalid" || status == "unchecked"
	for _, p := range x.sent {
		if o.body == x.bodies[p] && (o.status == p.status) && (x.whole[p] || w.set.mode == "observe") && (w.set.mode == "observe" || p.kind != kindBad && p.kind != kindUnknown || marked) {
			return // the provider's
		}
	}
	switch {
	case own != "" || o.status >= 400:
		if !a.failed || a.broken != "" {
			fail("an error that is not one of its format: %s", a.broken)
		}
		if own == "" && !x.refused() && w.set.mode != "observe" {
			fail("an error of the gateway without its code")
		}
		return
	case w.set.mode == "observe":
		fail("the mode observe changes the answer")
		return
	case a.failed:
		return
	case marked:
	case a.broken != "":
		fail("unmarked, and it cannot be read: %s", a.broken)
	case !a.finished:
		fail("unmarked, and it has no end")
	}
	for _, c := range a.calls {
		if !valid(c) && !marked {
			fail("an invalid call that is not marked: %v", c)
			return
		}
	}
	if slices.ContainsFunc(x.sent, func(p *reply) bool { return p.kind == kindGarbage }) {
		return
	}
	var from *reply
	text := a.text
	for _, p := range x.sent {
		if equal(a.calls, p.truth) || equal(a.calls, p.calls) {
			from = p
		}
		if p.text != "" {
			text = strings.ReplaceAll(text, p.text, "")
		}
	}
	switch {
	case from == nil && len(a.calls) > 0:
		fail("calls that no answer had: %v", a.calls)
	case from != nil && !x.whole[from] && !marked && len(a.calls) > 0:
		fail("calls of an answer that broke off")
	case strings.TrimSpace(text) != "":
		fail("text that no answer had, or a part of one: %q", clip(text))
	case status == "invalid" && !slices.ContainsFunc(x.sent, func(p *reply) bool { return p.kind == kindBad || p.kind == kindUnknown }):
		fail("marked invalid, and no answer was")
	}
}

func clip(s string) string {
	if len(s) > 3000 {
		return s[:1500] + "…" + s[len(s)-1500:]
	}
	return s
}

// told describes what the provider did.
func (x *exchange) told() string {
	var all []string
	for _, p := range x.sent {
		all = append(all, fmt.Sprintf("%s %d (whole %t, break %d of %d, stall %d %s) %q", p.kind, p.status, x.whole[p], p.breakAt, len(x.bodies[p]), p.stallAt, p.stall, clip(x.bodies[p])))
	}
	return strings.Join(all, "\n    then ")
}

// logLine is a line of the log about a model call.
type logLine struct {
	Msg, Client, Upstream, Mode, Format, Status, Error string
	Time                                               time.Time
	Code                                               int            `json:"http_status"`
	Attempts                                           int            `json:"attempts"`
	Duration                                           float64        `json:"duration_ms"`
	Key                                                string         `json:"client_key"`
	Issues                                             map[string]int `json:"issues"`
	Repairs                                            map[string]int `json:"repairs"`
	Panic                                              any            `json:"panic"`
}

// checkEnd checks the log, the metrics and the record, when all is written.
func (w *World) checkEnd() {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := map[string]int{}
	for line := range bytes.Lines(w.log) {
		w.checkLine(line, counts)
	}
	for _, x := range w.exchanges {
		w.checkLog(x)
	}
	w.checkMetrics(counts)
	w.checkRecord()
}

// checkLine checks a line of the log by itself.
func (w *World) checkLine(line []byte, counts map[string]int) {
	for _, c := range w.clients {
		if bytes.Contains(line, []byte(c.key)) {
			w.failLocked("(iii)", "the log has a client key: %s", line)
		}
	}
	var l logLine
	if err := json.Unmarshal(line, &l); err != nil {
		w.failLocked("(iv)", "a line of the log that is not JSON: %s", line)
		return
	}
	if l.Panic != nil || strings.Contains(l.Msg, "panic") {
		w.failLocked("(i)", "a panic: %s", line)
	}
	if l.Msg != "model call" {
		if tag := tags.FindString(string(line)); tag != "" {
			w.failLocked("(iii)", "the log has a secret: %s", line)
		}
		return
	}
	x := w.byTag[l.Client]
	if x == nil {
		w.failLocked("(iv)", "a line about an unknown client: %s", line)
		return
	}
	if n := len(tags.FindAll(line, -1)); n != 1 {
		w.failLocked("(iii)", "the log has a secret: %s", line)
	}
	x.lines = append(x.lines, l)
	counts[strings.Join([]string{l.Upstream, l.Mode, l.Format, fmt.Sprint(l.Code), l.Status, l.Error, l.Key}, "|")]++
}

// checkLog compares the lines about an exchange with what happened to it.
func (w *World) checkLog(x *exchange) {
	o := &x.sum
	fail := func(invariant, format string, args ...any) {
		w.failLocked(invariant, "%s %s %s: %s\n    lines %+v\n    got %d %v %v, error %v, body %q, after %s, HTTP/2 %t\n    sent %s", x.tag, x.format.Name, x.does, fmt.Sprintf(format, args...), x.lines, o.status, o.header, o.trailer, o.err, clip(o.body), o.end.Sub(o.start), x.client.two, x.told())
	}
	refused := o.own("X-Toolmend-Error") == "client_key"
	switch {
	case len(x.lines) > 1:
		fail("(iv)", "%d lines for one request", len(x.lines))
	case len(x.lines) == 1 && refused:
		fail("(iv)", "a line for a refused request")
	case len(x.lines) == 0 && (len(x.sent) > 0 || o.status != 0 && !refused):
		fail("(iv)", "no line")
	}
	if len(x.lines) != 1 {
		return
	}
	l := x.lines[0]
	if o.status != 0 && l.Code != o.status {
		fail("(iv)", "another status in the log")
	}
	if o.status != 0 && o.err == nil && w.set.mode != "observe" && l.Status != o.own("X-Toolmend-Status") {
		fail("(iv)", "another status of the calls in the log")
	}
	if l.Attempts < len(x.sent) && l.Code != http.StatusTooManyRequests && w.set.mode != "observe" {
		fail("(iv)", "fewer attempts than the provider got")
	}
	if n := o.own("X-Toolmend-Attempts"); n != "" && o.err == nil && n != fmt.Sprint(l.Attempts) && w.set.mode != "observe" {
		fail("(iv)", "other attempts than the client was told")
	}
	if took, most := time.Duration(l.Duration*float64(time.Millisecond)), w.limit(x); took > most {
		fail("(i)", "it took %s, and %s is the most", took, most)
	}
	if !o.gone.IsZero() && x.does != doesVanish && x.does != doesNotRead && l.Time.Sub(o.gone) > w.afterGone() {
		fail("(i)", "it ended %s after its client had gone", l.Time.Sub(o.gone))
	}
}

// limit returns how long x may take in the gateway.
func (w *World) limit(x *exchange) time.Duration {
	d := 10 * time.Second
	switch x.does {
	case doesUpload, doesStall:
		d += time.Minute + time.Duration(len(x.body))*time.Second/500
	case doesReadLate:
		d += time.Duration(len(x.sum.body)/500+10) * 400 * time.Millisecond
	case doesNotRead:
		d += 6 * time.Minute
	case doesVanish:
		d += 6 * time.Minute
	}
	for _, p := range x.sent {
		d += p.before + min(p.stall, 31*time.Second) + time.Duration(10+strings.Count(x.bodies[p], "\n"))*p.between + time.Second
	}
	if w.turbulent {
		d += time.Duration(w.set.attempts+1) * (2*time.Minute + 3*connectTimeout)
	}
	return d
}

// checkMetrics compares the counter of requests with the log.
func (w *World) checkMetrics(log map[string]int) {
	var data metricdata.ResourceMetrics
	if err := w.reader.Collect(context.Background(), &data); err != nil {
		w.failLocked("(iv)", "metrics: %v", err)
		return
	}
	counts := map[string]int{}
	sums := map[string]int{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			points, ok := m.Data.(metricdata.Sum[int64])
			if !ok {
				continue
			}
			for _, p := range points.DataPoints {
				sums[m.Name] += int(p.Value)
				if m.Name != "toolmend.gateway.requests" || p.Value == 0 {
					continue
				}
				var labels []string
				for _, k := range []string{"upstream", "mode", "format", "http_status", "status", "error", "client_key"} {
					v, _ := p.Attributes.Value(attributeKey(k))
					labels = append(labels, v.Emit())
				}
				counts[strings.Join(labels, "|")] += int(p.Value)
			}
		}
	}
	if !maps.Equal(counts, log) {
		w.failLocked("(iv)", "the metrics count %v, and the log %v", counts, log)
	}
	refused, invalid, repairs := 0, 0, 0
	for _, x := range w.exchanges {
		if x.sum.own("X-Toolmend-Error") == "client_key" {
			refused++
		}
		for _, l := range x.lines {
			for _, n := range l.Issues {
				invalid += n
			}
			for _, n := range l.Repairs {
				repairs += n
			}
		}
	}
	if n := sums["toolmend.gateway.refused"]; n < refused {
		w.failLocked("(iv)", "%d requests were refused, and %d are counted", refused, n)
	}
	if n := sums["toolmend.gateway.invalid_calls"]; n != invalid {
		w.failLocked("(iv)", "the log has %d invalid calls, and %d are counted", invalid, n)
	}
	if n := sums["toolmend.gateway.repairs"]; n != repairs {
		w.failLocked("(iv)", "the log has %d repairs, and %d are counted", repairs, n)
	}
	if n := sums["toolmend.gateway.panics"]; n != 0 {
		w.failLocked("(i)", "%d panics", n)
	}
	w.sums = sums
}

// checkRecord compares the record with the log: what is not in it was counted as dropped.
func (w *World) checkRecord() {
	files, _ := filepath.Glob(w.recordFile() + "*")
	lines := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(text) {
			var l struct{ Client string }
			if err := json.Unmarshal(line, &l); err != nil || w.byTag[l.Client] == nil {
				w.failLocked("(iv)", "a line of the record that cannot be read: %v %.300q", err, line)
				continue
			}
			lines++
			w.ownsLocked("the record", w.byTag[l.Client], string(line))
		}
		for _, c := range w.clients {
			if bytes.Contains(text, []byte(c.key)) {
				w.failLocked("(iii)", "the record has a client key")
			}
		}
	}
	attempts := 0
	for _, x := range w.exchanges {
		for _, l := range x.lines {
			attempts += l.Attempts
		}
	}
	if lines > attempts || lines < attempts && len(files) < 5 && w.sums["toolmend.gateway.dropped"] == 0 {
		w.failLocked("(iv)", "the record has %d answers, the log %d, and %d were dropped", lines, attempts, w.sums["toolmend.gateway.dropped"])
	}
}

func (w *World) ownsLocked(what string, x *exchange, text string) {
	w.mu.Unlock()
	defer w.mu.Lock()
	w.owns(what, x, text)
}

// browse opens the page and the probes.
func (w *World) browse(g *Gateway) {
	get := func(address, cookie string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, address, nil)
		r.Host = "127.0.0.1:7777"
		if cookie != "" {
			r.Header.Set("Cookie", cookie)
		}
		rec := httptest.NewRecorder()
		g.Handler.ServeHTTP(rec, r)
		return rec
	}
	if c := get("/_toolmend/readyz", "").Code; c != http.StatusOK {
		w.fail("(iv)", "readyz answers %d", c)
	}
	if c := get("/_toolmend/", "").Code; c == http.StatusOK {
		w.fail("(iii)", "the page opens without its key")
	}
	cookie, _, _ := strings.Cut(get(g.PagePath(), "").Header().Get("Set-Cookie"), ";")
	var list struct{ Steps []struct{ Number int } }
	body := get("/_toolmend/?format=json", cookie).Body.String()
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		w.fail("(iv)", "the page: %v %.200q", err, body)
	}
	for _, s := range list.Steps {
		text := get(fmt.Sprintf("/_toolmend/steps/%d?format=json", s.Number), cookie).Body.String()
		if tag := tags.FindString(text); w.byTag[tag] != nil {
			w.owns("the page", w.byTag[tag], text)
		}
	}
	for _, c := range w.clients {
		if strings.Contains(body, c.key) {
			w.fail("(iii)", "the page has a client key")
		}
	}
}

// checkLeft checks that nothing is left.
func (w *World) checkLeft() {
	for _, name := range w.net.left() {
		w.fail("(v)", "the connection %s is open", name)
	}
	for _, name := range openFiles(w.dir) {
		w.fail("(v)", "the file %s is open", name)
	}
	for _, g := range leftGoroutines() {
		w.fail("(v)", "a goroutine is left:\n%s", g)
	}
}

// afterGone returns how long an exchange may go on after its client has gone. net/http notices that
// over HTTP/1 only when it has read the whole request, for which a connection to the provider is needed.
func (w *World) afterGone() time.Duration {
	if w.turbulent {
		return 30 * time.Second
	}
	return 5 * time.Second
}
