package schema_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/schema"
)

// TestFormats: of the formats, those that are asserted are validated and named in messages, and no
// others.
func TestFormats(t *testing.T) {
	t.Parallel()
	off, safe, all := schema.Options{}, schema.Options{SafeFormats: true}, schema.Options{Formats: true}
	for name, c := range map[string]struct {
		format, value string
		off, safe     bool // the value is invalid
		words         string
	}{
		"a date":           {"date", "tomorrow", false, true, "a date, for example 2026-05-01"},
		"IPv4":             {"ipv4", "1.2.3", false, true, "format ipv4"},
		"IPv6":             {"ipv6", "1::2::3", false, true, "format ipv6"},
		"without a zone":   {"date-time", "2026-05-01T10:00:00", false, false, "RFC 3339, for example 2026-05-01T10:00:00Z"},
		"a name of a file": {"uri", "webarena.pdf", false, false, "format uri"},
		"no hyphens":       {"uuid", "0123456789abcdef0123456789abcdef", false, false, "format uuid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, dialect := range []string{"", `"$schema": "http://json-schema.org/draft-07/schema#", `} {
				for o, invalid := range map[schema.Options]bool{off: c.off, safe: c.safe, all: true} {
					s, err := schema.Compile([]byte(`{`+dialect+`"type": "object", "properties": {"d": {"type": "string", "format": "`+c.format+`"}}, "required": ["d"]}`), o)
					require.NoError(t, err)
					require.Equal(t, invalid, len(s.Validate(parse(t, `{"d": "`+c.value+`"}`))) > 0)
					for _, args := range []string{`{}`, `{"d": 5}`} {
						issues := s.Validate(parse(t, args))
						require.Len(t, issues, 1)
						if invalid && args == `{}` {
							require.Contains(t, issues[0].Message, c.words)
						} else if !invalid {
							require.NotContains(t, issues[0].Message, c.words)
						}
					}
				}
			}
		})
	}
}
