package mend_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
)

// TestHostile has arguments of almost a megabyte that give the rules as much to do as
// they can. Validation is not counted: its bounds are its own.
func TestHostile(t *testing.T) {
	const size = 1<<20 - 1<<12
	manyKeys := func(value string) string {
		var b strings.Builder
		for i := 0; b.Len() < size-100; i++ {
			b.WriteString(`"k` + strings.Repeat("x", i%50) + strings.Repeat("y", i%7) + `": ` + value + ", ")
		}
		return "{" + b.String() + `"z": 1}`
	}
	closed := properties(true, "kx!", str, "ky", str, "a", ints)
	for name, args := range map[string]string{
		"a long list":   `{"a": [` + strings.Repeat(`"1", `, size/5) + `"1"]}`,
		"many keys":     manyKeys(`"v"`),
		"nested values": `{"a": ` + strings.Repeat(`[`, 60) + strings.Repeat(`"1",`, size/4) + `1` + strings.Repeat(`]`, 60) + `}`,
		"a long text":   `{"a": "[` + strings.Repeat("'x', ", size/5) + `]"}`,
		"Python":        `{'a': [` + strings.Repeat(`'1', None, `, size/11) + `]}`,
		"a long number": `{"a": [` + strings.Repeat("1", size) + `]}`,
	} {
		in := input(t, closed, args, mend.All())
		validate := in.Validate
		var validating time.Duration
		in.Validate = func(args string) []middleware.Issue {
			start := time.Now()
			defer func() { validating += time.Since(start) }()
			return validate(args)
		}
		start := time.Now()
		mend.Arguments(in)
		own := time.Since(start) - validating
		t.Logf("%s: %d issues, %v, and %v of validation", name, len(in.Issues), own, validating)
		require.Less(t, own, 3*time.Second, name)
	}
}
