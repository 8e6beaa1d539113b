package schema_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/schema"
)

// each joins what format makes of 0 to n-1.
func each(n int, format string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(format, "%d", fmt.Sprint(i)) + ",")
	}
	return strings.TrimSuffix(b.String(), ",")
}

// compileAttacks are schemas that are cheap to send and dear to compile.
var compileAttacks = []struct {
	name, schema string
	refused      bool // as too expensive
}{
	{"1,450 properties, a definition each", `{"properties":{` + each(1450, `"p%d":{"$ref":"#/$defs/d%d"}`) + `},"$defs":{` + each(1450, `"d%d":{"type":"string"}`) + `}}`, false},
	{"10,000 properties", `{"properties":{` + each(10_000, `"p%d":{}`) + `}}`, true},
	{"2,900 properties", `{"properties":{` + each(2900, `"p%d":{"type":"string"}`) + `}}`, false},
	{"1,000 anchors", `{"$defs":{` + each(1000, `"x%d":{"$anchor":"a%d"},"y%d":{"$ref":"#a%d"}`) + `}}`, true},
	{"1,000 ids", `{"$defs":{` + each(1000, `"x%d":{"$id":"a%d"},"y%d":{"$ref":"a%d"}`) + `}}`, true},
	{"1,000 references to other places", `{"properties":{` + each(1000, `"x%d":{"$ref":"#/z/%d"}`) + `},"z":[` + each(1000, `{}`) + `]}`, true},
	{"allOf doubled 100 times", doubled(100), true},
	{"anyOf of 900", `{"anyOf":[` + each(900, `{"const":%d}`) + `]}`, false},
	{"anyOf of 1,100", `{"anyOf":[` + each(1100, `{"const":%d}`) + `]}`, true},
	{"100 levels, invalid leaf", nested(`{"not":`, `{"type":"strin"}`, `}`, 100), false},
	{"60 levels, 300 invalid leaves", nested(`{"not":`, `{"anyOf":[`+each(300, `{"type":"strin"}`)+`]}`, `}`, 60), false},
	{"100 levels, 1,000 invalid leaves", nested(`{"not":`, `{"anyOf":[`+each(1000, `{"type":"strin"}`)+`]}`, `}`, 100), true},
	{"enum of 100,000", `{"enum":[` + each(100_000, `%d`) + `]}`, false},
	{"draft 7, enum of 4,000 that hash alike", `{"$schema":"http://json-schema.org/draft-07/schema#","enum":` + strings.TrimSuffix(strings.TrimPrefix(colliding(4000), `{"a":`), "}") + `}`, true},
	{"required, 80,000 names", `{"required":[` + each(80_000, `"k%d"`) + `]}`, false},
	{"default of 1 MB", `{"default":[` + each(400_000, `1`) + `]}`, false},
	{"900 patterns of 1,000 states", `{"anyOf":[` + each(900, `{"pattern":"[a-z]{1,999}%d"}`) + `]}`, false},
	{"60,000 unknown keywords", `{` + each(60_000, `"%d":{}`) + `}`, false},
	{"number of 1,000 digits", `{"multipleOf":` + strings.Repeat("7", 1000) + `}`, false},
	{"number with a huge exponent", `{"multipleOf":1e-999999}`, false},
}

// Compile takes at most some 0.5 s on any schema, as does saying that it is
// not valid. The bound here leaves room for slow machines and the race detector.
func TestHostileSchemas(t *testing.T) {
	t.Log("| schema | bytes | outcome | ms |")
	for _, a := range compileAttacks {
		start := time.Now()
		_, err := schema.Compile([]byte(a.schema), schema.Options{})
		took := time.Since(start)
		outcome := "compiled"
		if err != nil {
			outcome = strings.Split(err.Error(), ":")[0]
		}
		t.Logf("| %s | %d | %s | %.1f |", a.name, len(a.schema), outcome, float64(took)/1e6)
		if a.refused {
			require.ErrorIs(t, err, schema.ErrExpensive, a.name)
		} else {
			require.NotErrorIs(t, err, schema.ErrExpensive, a.name)
		}
		require.Less(t, took, 10*time.Second, a.name)
	}
}
