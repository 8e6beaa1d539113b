package gateway

import (
	"net/http"
	"strconv"
	"time"
)

// placeWait is how long a request waits for a place.
const placeWait = 5 * time.Second

// places limits the requests to an upstream that are served at one time. A
// request keeps its place until its response was sent, re-asks included. A capacity
// of 0 means no limit.
type places chan struct{}

// around returns h with the limit. A request that waits for more than placeWait
// gets the status 429 in the format of its path.
func (p places) around(h http.Handler) http.Handler {
	if cap(p) == 0 {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		timeout := time.NewTimer(placeWait)
		defer timeout.Stop()
		select {
		case p <- struct{}{}:
			defer func() { <-p }()
			h.ServeHTTP(w, r)
		case <-r.Context().Done(): // the client has disconnected
			panic(http.ErrAbortHandler)
		case <-timeout.C:
			w.Header().Set("Retry-After", strconv.Itoa(int(placeWait.Seconds())))
			refuse(w, r, http.StatusTooManyRequests, "too_many_requests",
				"the upstream serves "+strconv.Itoa(cap(p))+" requests at one time, and none of them ended while this one waited; try again later, or raise max_concurrent")
		}
	})
}
