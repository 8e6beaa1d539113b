package rawjson

import (
	"slices"
	"strings"
)

// Canonical returns a text that is the same for two JSON texts that differ only
// in white space, in the order of keys, in the spelling of strings or in that of
// integers. Of a text that is not JSON within the default limits, only white
// space is made the same. The result is for comparing: it need not be JSON.
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
			WriteQuoted(b, m.Key())
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
		WriteQuoted(b, v.Str())
	default:
		if digits, ok := v.Integer(); ok && len(digits) <= maxDigits {
			b.WriteString(digits)
			return
		}
		b.WriteString(v.Raw())
	}
}

// maxDigits is how long an integer may get that Canonical writes without its
// exponent. 1e1000000 would be a megabyte.
const maxDigits = 32
