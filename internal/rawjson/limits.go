package rawjson

import (
	"fmt"
	"math"
)

// Limits bound what is read. A zero field means the default, a negative one no
// limit.
type Limits struct {
	Bytes    int // of the whole text; default 1 MiB
	Depth    int // of nested arrays and objects; default 64
	Number   int // characters of one number; default 1,000
	Exponent int // of one number, as written, either sign; default 400
	Values   int // arrays, objects and scalars in all; default no limit

	AnyBytes bool // strings may hold bytes that are not UTF-8
}

// Defaults for Limits. Depth, number length and exponent keep
// jsonschema/v5 within milliseconds: it takes 1.5 ms for an invalid value at
// depth 64 and seconds at depth 1,000, and it panics on 1e3000000.
const (
	DefaultBytes    = 1 << 20
	DefaultDepth    = 64
	DefaultNumber   = 1000
	DefaultExponent = 400
)

// unlimited replaces a negative limit: no count exceeds it.
const unlimited = math.MaxInt32 - 1

// WithDefaults returns l with its zero fields filled in and its negative ones
// out of the way.
func (l Limits) WithDefaults() Limits {
	fill := func(v *int, def int) {
		switch {
		case *v == 0:
			*v = def
		case *v < 0:
			*v = unlimited
		}
	}
	fill(&l.Bytes, DefaultBytes)
	fill(&l.Depth, DefaultDepth)
	fill(&l.Number, DefaultNumber)
	fill(&l.Exponent, DefaultExponent)
	fill(&l.Values, unlimited)
	l.Bytes = min(l.Bytes, unlimited) // offsets are int32
	return l
}

// Code is why a text was refused.
type Code string

// The codes.
const (
	Syntax   Code = "syntax"        // not JSON
	Trailing Code = "trailing_data" // JSON, then more
	UTF8     Code = "utf8"          // a string that is not UTF-8
	Size     Code = "size"          // past Limits.Bytes or Limits.Values
	Depth    Code = "depth"         // past Limits.Depth
	Digits   Code = "number"        // past Limits.Number or Limits.Exponent
)

// Error is why a text was refused.
type Error struct {
	Code   Code
	Offset int    // in bytes
	What   string // what is wrong there, without the text itself
	AtEnd  bool   // the text ended too early
}

// Error returns what is wrong and where. A text that is too large has no where.
func (e *Error) Error() string {
	if e.Code == Size {
		return e.What
	}
	return fmt.Sprintf("%s at offset %d", e.What, e.Offset)
}
