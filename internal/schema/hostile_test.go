package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
)

// attack is a schema and arguments that are cheap to send and expensive to validate.
type attack struct {
	name, schema, args string
	outcome            string // the code of the first issue or of the error, "valid" for none
}

const mib = 1 << 20

// list is an object whose only property is an array of that element, as often
// as it fits into n bytes.
func list(element string, n int) string {
	return `{"a":[` + strings.Repeat(element+",", (n-8)/(len(element)+1)-1) + element + `]}`
}

// nested repeats open and close around inner, n times.
func nested(open, inner, closing string, n int) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(closing, n)
}

// colliding returns lists of different brackets, which v5's hash cannot tell
// apart.
func colliding(n int) string {
	var items []string
	for i := range n {
		var b strings.Builder
		for bit := range 12 {
			if i>>bit&1 == 1 {
				b.WriteString("[],[[]],")
			} else {
				b.WriteString("[[]],[],")
			}
		}
		items = append(items, "["+strings.TrimSuffix(b.String(), ",")+"]")
	}
	return `{"a":[` + strings.Join(items, ",") + `]}`
}

func numbers(n int) string {
	var b strings.Builder
	b.WriteString(`{"a":[0`)
	for i := 1; b.Len() < n-12; i++ {
		fmt.Fprintf(&b, ",%d", i)
	}
	return b.String() + "]}"
}

func longEnum(n int) string {
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprintf(`"value %d"`, i)
	}
	return "[" + strings.Join(values, ",") + "]"
}

const (
	tree      = `{"type":"object","properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"object","properties":{"a":{"$ref":"#/$defs/t"}}}}}`
	branching = `{"properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"array","items":{"anyOf":[{"$ref":"#/$defs/t"},{"$ref":"#/$defs/t"}]}}}}`
	ofStrings = `{"properties":{"a":{"items":{"type":"string"}}}}`
)

// doubled is a chain of definitions, each of which applies the next one twice.
func doubled(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	return b.String() + fmt.Sprintf(`"d%d":{"required":["x"]}}}`, n)
}

// attacks are in the table of docs/measured/hostile-input.md.
var attacks = []attack{
	{"1 huge exponent", `{"properties":{"a":{"type":"integer"}}}`, `{"a":1e3000000}`, "number"},
	{"100,000 huge exponents", `{"properties":{"a":{"items":{"type":"integer"}}}}`, list("1e1000000", mib), "number"},
	{"exponents of 400", `{"properties":{"a":{"items":{"type":"integer","maximum":5}}}}`, list("1e400", mib), "unchecked"},
	{"1,000 exponents of 400", `{"properties":{"a":{"items":{"type":"integer","maximum":5}}}}`, list("1e400", 6_000), "maximum"},
	{"1 MB of digits", `{"properties":{"a":{"type":"integer"}}}`, `{"a":` + strings.Repeat("7", mib-6) + `}`, "number"},
	{"numbers of 1,000 digits, multipleOf", `{"properties":{"a":{"items":{"multipleOf":0.01}}}}`, list(strings.Repeat("7", 999), mib), "valid"},
	{"100 numbers of 1,000 digits, multipleOf", `{"properties":{"a":{"items":{"multipleOf":0.01}}}}`, list(strings.Repeat("7", 999), 100_000), "valid"},
	{"10 MB of [", ofStrings, strings.Repeat("[", 10*mib), "size"},
	{"1 MB of [", ofStrings, strings.Repeat("[", mib), "depth"},
	{"64 levels, invalid leaf, recursive schema", tree, nested(`{"a":`, `1`, `}`, 63), "type"},
	{"64 levels, 1,000 invalid leaves", strings.ReplaceAll(tree, `"type":"object","properties":{"a":{"$ref":"#/$defs/t"}}}}}`, `"properties":{"a":{"$ref":"#/$defs/t"}},"additionalProperties":{"type":"string"}}}}`),
		nested(`{"a":`, `{"b":[`+strings.Repeat(`1,`, 100)+`1],`+strings.TrimSuffix(keys(1000), ",")+`}`, `}`, 62), "type"},
	{"anyOf of two recursive branches, 62 levels", branching, `{"a":` + nested("[", "1", "]", 62) + `}`, "unchecked"},
	{"the same, 8 levels", branching, `{"a":` + nested("[", "1", "]", 8) + `}`, "anyOf"},
	{"the same, valid, 62 levels", branching, `{"a":` + nested("[", "", "]", 62) + `}`, "valid"},
	{"10,000 bad items", ofStrings, list("1", 20_000), "type"},
	{"500,000 bad items", ofStrings, list("1", mib), "type"},
	{"500,000 good items", `{"properties":{"a":{"items":{"type":"integer"}}}}`, list("1", mib), "valid"},
	{"enum of 2,000, 10,000 bad items", `{"properties":{"a":{"items":{"enum":` + longEnum(2000) + `}}}}`, list(`"x"`, 40_000), "enum"},
	{"enum of 2,000, 100 bad items", `{"properties":{"a":{"items":{"enum":` + longEnum(2000) + `}}}}`, list(`"x"`, 400), "enum"},
	{"60,000 unknown keys", `{"additionalProperties":false,"properties":{"k":{}}}`, "{" + strings.TrimSuffix(keys(60_000), ",") + "}", "additionalProperties"},
	{"10,000 unknown keys", `{"additionalProperties":false,"properties":{"k":{}}}`, "{" + strings.TrimSuffix(keys(10_000), ",") + "}", "additionalProperties"},
	{"allOf doubled 18 times", doubled(18), `{}`, "too expensive"},
	{"allOf doubled 7 times", doubled(7), `{}`, "required"},
	{"uniqueItems, 150,000 numbers", `{"properties":{"a":{"uniqueItems":true}}}`, numbers(mib), "valid"},
	{"uniqueItems, 2,000 numbers", `{"properties":{"a":{"uniqueItems":true}}}`, numbers(10_000), "valid"},
	{"uniqueItems, 4,000 equal hashes", `{"properties":{"a":{"uniqueItems":true}}}`, colliding(4000), "valid"},
	{"pattern ^(a+)+$ on 1 MB", `{"properties":{"a":{"pattern":"^(a+)+$"}}}`, `{"a":"` + strings.Repeat("a", mib-20) + `!"}`, "unchecked"},
	{"pattern of 1,000 states on 1 MB", `{"properties":{"a":{"pattern":"(x+x+){1,300}y"}}}`, `{"a":"` + strings.Repeat("x", mib-20) + `"}`, "unchecked"},
	{"pattern ^[a-z]+$ on 100 KB", `{"properties":{"a":{"pattern":"^[a-z]+$"}}}`, `{"a":"` + strings.Repeat("a", 100_000) + `!"}`, "pattern"},
	{"500 KB key above 1,000 bad items", `{"additionalProperties":{"items":{"type":"string"}}}`, `{"` + strings.Repeat("k", mib/2) + `":[` + strings.Repeat("1,", 999) + `1]}`, "type"},
	{"1 MB string for an integer", `{"properties":{"a":{"type":"integer"}}}`, `{"a":"` + strings.Repeat("é", mib/2-10) + `"}`, "type"},
	{"20 numbers with uniqueItems, 1 MB of them", `{"properties":{"a":{"items":{"uniqueItems":true}}}}`, list("["+strings.Repeat("1,", 19)+"2]", mib), "uniqueItems"},
}

func keys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"key %d":1,`, i)
	}
	return b.String()
}

// validate does what argsvalidate does with arguments.
func (a attack) validate(s *schema.Schema) string {
	if s.SurelyValid(a.args, rawjson.Limits{}, schema.AllowEmpty, false) {
		return "valid"
	}
	doc, err := rawjson.Parse(a.args, rawjson.Limits{})
	if err != nil {
		return string(err.(*rawjson.Error).Code)
	}
	if issues := s.Validate(doc.Root()); len(issues) > 0 {
		return issues[0].Code
	}
	return "valid"
}

func (a attack) compile(tb testing.TB) *schema.Schema {
	s, err := schema.Compile([]byte(a.schema), schema.Options{})
	if a.outcome == "too expensive" {
		require.ErrorIs(tb, err, schema.ErrExpensive)
		return nil
	}
	require.NoError(tb, err, a.name)
	return s
}

// Every attack has a definite end. What each costs is in the log, and in
// docs/measured/hostile-input.md; the bound here leaves room for slow machines and the
// race detector.
func TestHostileInstances(t *testing.T) {
	const slow = 2 * time.Second
	t.Logf("| attack | bytes | outcome | ms | x json.Valid |")
	for _, a := range attacks {
		s := a.compile(t)
		if s == nil {
			continue
		}
		best, outcome := time.Hour, ""
		for range 3 {
			start := time.Now()
			outcome = a.validate(s)
			best = min(best, time.Since(start))
		}
		raw := []byte(a.args)
		valid := time.Hour
		for range 3 {
			start := time.Now()
			json.Valid(raw)
			valid = min(valid, time.Since(start))
		}
		t.Logf("| %s | %d | %s | %.2f | %.1f |", a.name, len(a.args), outcome, float64(best)/1e6, float64(best)/float64(valid))
		assert.Equal(t, a.outcome, outcome, a.name)
		assert.Less(t, best, slow, a.name)
	}
}
