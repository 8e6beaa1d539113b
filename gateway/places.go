package gateway

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// placeWait is how long a request waits for a place.
const placeWait = 5 * time.Second

// places limits the requests to an upstream that are served at one time. A
// request keeps its place until its response was sent, re-asks included. A reload keeps
// the places, so that requests of the configuration before it count.
type places struct {
	mu      sync.Mutex
	limit   int // 0 means none
	taken   int
	waiting []chan struct{} // the longest first; one that is closed has a place
}

// resize sets the limit. Requests beyond it keep their places.
func (p *places) resize(limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = limit
	p.fill()
}

// fill lets requests in while there are places. p.mu is locked.
func (p *places) fill() {
	for len(p.waiting) > 0 && (p.limit == 0 || p.taken < p.limit) {
		close(p.waiting[0])
		p.waiting = p.waiting[1:]
		p.taken++
	}
}

// enter returns nil if the caller has a place, else a channel that is closed when it has one.
func (p *places) enter() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit == 0 || p.taken < p.limit {
		p.taken++
		return nil
	}
	place := make(chan struct{})
	p.waiting = append(p.waiting, place)
	return place
}

// leave gives up a place, or the wait for one.
func (p *places) leave(place chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, place); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return
	}
	p.taken--
	p.fill()
}

// around returns h with the limit. A request that waits for more than placeWait
// gets the status 429 in the format of its path.
func (p *places) around(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		place := p.enter()
		defer p.leave(place)
		if place == nil {
			h.ServeHTTP(w, r)
			return
		}
		timeout := time.NewTimer(placeWait)
		defer timeout.Stop()
		select {
		case <-place:
			h.ServeHTTP(w, r)
		case <-r.Context().Done(): // the client has disconnected
			panic(http.ErrAbortHandler)
		case <-timeout.C:
			w.Header().Set("Retry-After", strconv.Itoa(int(placeWait.Seconds())))
			refuse(w, r, http.StatusTooManyRequests, "too_many_requests",
				"the upstream serves as many requests as max_concurrent allows, and none of them ended while this one waited; try again later, or raise max_concurrent")
		}
	})
}
