package rawjson

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Canonical returns a text that is the same for two JSON texts that differ only
// in white space, in the order of keys, or in the spelling of strings or numbers. Of a text that
// is not JSON within the default limits, only white space is made the same. The result is for comparing: it need not be JSON.
func Canonical(text string) string {
	doc, err := Parse(text, Limits{})
	if err != nil {
		return strings.Join(strings.Fields(text), " ")
	}
	return doc.Canonical()
}

// Canonical is Canonical of d's text.
func (d *Doc) Canonical() string {
	var b strings.Builder
	canonical(&b, d.Root())
	return b.String()
}

// canonical writes v. Duplicate keys keep their order, because readers differ on which
// of them counts. It recurses, within the depth of Limits.
func canonical(b *strings.Builder, v Value) {
	switch v.Kind() {
	case Object:
		members := slices.Collect(v.Each())
		slices.SortStableFunc(members, func(x, y Value) int { return strings.Compare(x.Key(), y.Key()) })
		b.WriteByte('{')
		for _, m := range members {
			writeExact(b, m.Key())
			b.WriteByte(':')
			canonical(b, m)
			b.WriteByte(',')
		}
		b.WriteByte('}')
	case Array:
		b.WriteByte('[')
		for item := range v.Each() {
			canonical(b, item)
			b.WriteByte(',')
		}
		b.WriteByte(']')
	case String:
		writeExact(b, Exact(v.Raw()))
	case Number:
		b.WriteString(NumberKey(v.Raw()))
	default:
		b.WriteString(v.Raw())
	}
}

// writeExact is WriteQuoted, but different texts stay different.
func writeExact(b *strings.Builder, s string) {
	if utf8.ValidString(s) {
		WriteQuoted(b, s)
		return
	}
	b.WriteString(strconv.Quote(s))
}

// NumberKey returns a text that is the same for two JSON numbers exactly if they
// are equal: the digits without zeros at both ends, and an exponent.
func NumberKey(s string) string {
	sign, digits, exponent, ok := decimal(s)
	switch {
	case !ok:
		return s
	case digits == "":
		return "0"
	case exponent == 0:
		return sign + digits
	}
	return sign + digits + "e" + strconv.Itoa(exponent)
}
