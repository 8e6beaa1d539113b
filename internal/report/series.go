package report

import "time"

// maxBuckets is the number of buckets of a Series.
const maxBuckets = 120

// Series counts calls by the time of their step. It has at most 120 buckets: if a
// time lies outside, the buckets become twice as wide. The zero Series is empty.
type Series struct {
	Start   time.Time     `json:"start,omitzero"` // of the first bucket
	Width   time.Duration `json:"width_ns,omitzero"`
	Buckets []Bucket      `json:"buckets,omitzero"`
}

// Bucket counts the calls of a span of time.
type Bucket struct {
	Calls     int `json:"calls"`
	Unchecked int `json:"unchecked"` // not validated
	Bad       int `json:"bad"`       // not valid as sent
	Repaired  int `json:"repaired"`  // the part of Bad that is valid in the end
	Final     int `json:"final"`     // the part of Bad that is not
}

// Add counts a call. A call without a time, or with one that no log has (before 1970
// or after 2200), is not counted.
func (s *Series) Add(t time.Time, c *Call) {
	if t.Year() < 1970 || t.Year() > 2200 {
		return
	}
	b := s.bucket(t)
	b.Calls++
	if c.AsSent.Unchecked() {
		b.Unchecked++
	}
	if c.AsSent.Failed() {
		b.Bad++
		if c.Final.Good() {
			b.Repaired++
		} else {
			b.Final++
		}
	}
}

// bucket returns the bucket of t. It makes the buckets wider until t fits.
func (s *Series) bucket(t time.Time) *Bucket {
	if s.Buckets == nil {
		s.Width = time.Second
		s.Start = t.Truncate(s.Width)
		s.Buckets = make([]Bucket, 1, maxBuckets)
	}
	for t.Before(s.Start) {
		missing := int64(s.Start.Sub(t)/s.Width) + 1
		if missing+int64(len(s.Buckets)) > maxBuckets {
			s.widen()
			continue
		}
		s.Start = s.Start.Add(-time.Duration(missing) * s.Width)
		s.Buckets = append(make([]Bucket, missing, maxBuckets), s.Buckets...)
	}
	for t.Sub(s.Start)/s.Width >= maxBuckets {
		s.widen()
	}
	i := int(t.Sub(s.Start) / s.Width)
	for len(s.Buckets) <= i {
		s.Buckets = append(s.Buckets, Bucket{})
	}
	return &s.Buckets[i]
}

// widen makes the buckets twice as wide. A bucket starts at a multiple of its width.
func (s *Series) widen() {
	s.Width *= 2
	start := s.Start.Truncate(s.Width)
	shift := int(s.Start.Sub(start) / (s.Width / 2)) // 0 or 1
	wide := make([]Bucket, (len(s.Buckets)+shift+1)/2, maxBuckets)
	for i, b := range s.Buckets {
		w := &wide[(i+shift)/2]
		w.Calls += b.Calls
		w.Unchecked += b.Unchecked
		w.Bad += b.Bad
		w.Repaired += b.Repaired
		w.Final += b.Final
	}
	s.Start, s.Buckets = start, wide
}
