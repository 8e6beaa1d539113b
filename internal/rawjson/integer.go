package rawjson

import (
	"strconv"
	"strings"
)

// maxZeros is how many zeros Integer writes that the text of the number does not have.
const maxZeros = 10_000

// Integer returns the digits of a whole number, without point and exponent:
// "5" for 5.0, "10" for 1e1. ok is false for a number that is not whole, one
// to which an exponent adds more than 10,000 zeros, and any other value.
func (v Value) Integer() (digits string, ok bool) {
	if v.Kind() != Number {
		return "", false
	}
	sign, digits, zeros, ok := decimal(v.Raw())
	switch {
	case digits == "":
		return "0", ok
	case !ok || zeros < 0 || zeros > max(maxZeros, len(v.Raw())):
		return "", false
	}
	return sign + digits + strings.Repeat("0", zeros), true
}

// decimal returns the sign of a JSON number, its digits without zeros at both ends ("" for 0), and
// the exponent of the last digit. ok is false if the exponent is larger than an int.
func decimal(number string) (sign, digits string, exponent int, ok bool) {
	mantissa, negative := strings.CutPrefix(number, "-")
	if negative {
		sign = "-"
	}
	if i := strings.IndexAny(mantissa, "eE"); i >= 0 {
		n, err := strconv.Atoi(mantissa[i+1:])
		if err != nil && strings.Trim(mantissa[:i], "0.") != "" {
			return sign, mantissa, 0, false
		}
		mantissa, exponent = mantissa[:i], n
	}
	before, after, _ := strings.Cut(mantissa, ".")
	all := strings.TrimLeft(before+after, "0")
	digits = strings.TrimRight(all, "0")
	return sign, digits, exponent + len(all) - len(digits) - len(after), true
}
