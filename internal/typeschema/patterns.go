package typeschema

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

// The texts that types of the standard library decode from, as patterns that
// RE2 and ECMA 262 read alike. Where the library takes more, such as 1:02 for
// an hour and a minute, the pattern is the stricter.
var (
	// RFC 4648, section 4, with padding.
	base64Text = regexp.MustCompile(`^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`)
	// RFC 3339, section 5.6, without leap seconds, with the days of each month.
	dateTime = regexp.MustCompile(`^([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))` +
		`|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)` +
		`T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`)
	address     = regexp.MustCompile("^(" + ipv4 + "|" + ipv6() + ")$")
	booleanText = regexp.MustCompile(`^(true|false)$`)
	// Numbers of RFC 8259 that are surely in range, by the bits of the float.
	floatText = map[int]*regexp.Regexp{
		32: regexp.MustCompile(`^-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,40})?([eE](-[0-9]{1,3}|\+?1?[0-9]))?$`),
		64: regexp.MustCompile(`^-?(0|[1-9][0-9]{0,99})(\.[0-9]{1,100})?([eE](-[0-9]{1,3}|\+?[0-9]{1,2}))?$`),
	}
)

const (
	octet = `(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`
	ipv4  = octet + `(\.` + octet + `){3}`
)

// ipv6 returns the pattern of an address without a zone: IPv6address of
// RFC 3986, appendix A.
func ipv6() string {
	const h = `[0-9a-fA-F]{1,4}`
	const last = `(` + h + `:` + h + `|` + ipv4 + `)`
	forms := []string{`(` + h + `:){6}` + last}
	for left := range 6 { // "::" after at most that many groups
		forms = append(forms, fmt.Sprintf(`%s::(%s:){%d}%s`, upToGroups(h, left), h, 5-left, last))
	}
	forms = append(forms, upToGroups(h, 6)+`::`+h, upToGroups(h, 7)+`::`)
	return strings.Join(forms, "|")
}

func upToGroups(h string, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(`((%s:){0,%d}%s)?`, h, n-1, h)
}

// integerText returns the pattern of the whole numbers from min to max in
// canonical form: no sign but a minus, no leading zero, no -0. Nil bounds are
// none.
func integerText(min, max *big.Rat) *regexp.Regexp {
	forms := []string{"0"}
	add := func(sign string, bound *big.Rat) {
		switch {
		case bound == nil:
			forms = append(forms, sign+`[1-9][0-9]*`)
		case bound.Sign() != 0:
			for _, f := range upTo(new(big.Int).Abs(bound.Num()).String()) {
				forms = append(forms, sign+f)
			}
		}
	}
	add("", max)
	add("-", min)
	return regexp.MustCompile(`^(` + strings.Join(forms, "|") + `)$`)
}

// upTo returns patterns of the numbers from 1 to max.
func upTo(max string) []string {
	var forms []string
	if len(max) > 1 { // fewer digits
		forms = append(forms, fmt.Sprintf(`[1-9][0-9]{0,%d}`, len(max)-2))
	}
	for i, c := range max { // as many digits, the first smaller one at i
		lo := '0'
		if i == 0 {
			lo = '1'
		}
		rest := ""
		if n := len(max) - i - 1; n > 0 {
			rest = fmt.Sprintf(`[0-9]{%d}`, n)
		}
		if c > lo {
			forms = append(forms, fmt.Sprintf(`%s[%c-%c]%s`, max[:i], lo, c-1, rest))
		}
	}
	return append(forms, max)
}
