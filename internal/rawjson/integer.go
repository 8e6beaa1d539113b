package rawjson

import (
	"strconv"
	"strings"
)

// maxExponent is the largest exponent that Integer writes out.
const maxExponent = 10_000

// Integer returns the digits of a whole number, without point and exponent:
// "5" for 5.0, "10" for 1e1. ok is false for a number that is not whole, one
// whose exponent is past 10,000, and any other value.
func (v Value) Integer() (digits string, ok bool) {
	if v.Kind() != Number {
		return "", false
	}
	sign, mantissa, exponent := "", v.Raw(), 0
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	if i := strings.IndexAny(mantissa, "eE"); i >= 0 {
		n, err := strconv.Atoi(mantissa[i+1:])
		if err != nil && strings.Trim(mantissa[:i], "0.") != "" {
			return "", false
		}
		mantissa, exponent = mantissa[:i], n
	}
	before, after, _ := strings.Cut(mantissa, ".")
	all := strings.TrimLeft(before+after, "0")
	if all == "" {
		return "0", true
	}
	trimmed := strings.TrimRight(all, "0")
	zeros := len(all) - len(trimmed) + exponent - len(after) // to be written after trimmed
	if zeros < 0 || exponent > maxExponent {
		return "", false
	}
	return sign + trimmed + strings.Repeat("0", zeros), true
}
