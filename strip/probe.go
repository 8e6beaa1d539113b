package strip

import (
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// probes is a set of the values that a schema is asked about.
type probes uint8

const (
	aNull probes = 1 << iota
	emptyObject
	emptyArray
	aText     // a string that no enum or const names
	anObject  // with members
	anArray   // with elements
	allProbes = 1<<iota - 1
	anyValue  = probes(0) // in reach: no branch is left out, also none that only lists strings
)

// probeOf returns the probe for an empty value of that kind.
func probeOf(k rawjson.Kind) probes {
	switch k {
	case rawjson.Null:
		return aNull
	case rawjson.Object:
		return emptyObject
	case rawjson.Array:
		return emptyArray
	}
	return aText
}

// typeProbes is what the value of a type keyword lets through; everything for
// a value that means nothing.
func typeProbes(v rawjson.Value) probes {
	names := []rawjson.Value{v}
	if v.Kind() == rawjson.Array {
		names = names[:0]
		for e := range v.Each() {
			names = append(names, e)
		}
	}
	if len(names) == 0 {
		return allProbes
	}
	var p probes
	for _, name := range names {
		switch name.Str() {
		case "null":
			p |= aNull
		case "object":
			p |= emptyObject | anObject
		case "array":
			p |= emptyArray | anArray
		case "string":
			p |= aText
		case "boolean", "number", "integer":
		default:
			return allProbes
		}
	}
	return p
}

// listed is what an enum or const lets through that names v.
func listed(v rawjson.Value) probes {
	switch v.Kind() {
	case rawjson.Null:
		return aNull
	case rawjson.Object:
		if v.Empty() {
			return emptyObject
		}
		return anObject
	case rawjson.Array:
		if v.Empty() {
			return emptyArray
		}
		return anArray
	}
	return 0
}

// positive reports whether v is a number above 0.
func positive(v rawjson.Value) bool {
	if v.Kind() != rawjson.Number {
		return false
	}
	f, _ := strconv.ParseFloat(v.Raw(), 64) // past the range it is ±Inf
	return f > 0
}

// lets returns the probes that s admits, as far as it can be told: a probe that
// is missing is refused for certain. A schema that contains itself admits what
// the rest of it does.
func (s *sub) lets() probes {
	if s.judged {
		return s.admits
	}
	s.judged, s.admits = true, allProbes // for a schema that leads back here
	p := s.own
	for _, other := range s.same {
		p &= other.lets()
	}
	for _, u := range s.unions {
		var any probes
		for _, branch := range u.branches {
			any |= branch.lets()
		}
		p &= any
	}
	s.admits = p
	return p
}
