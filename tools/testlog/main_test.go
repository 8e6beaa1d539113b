package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const events = `{"Action":"run","Package":"p","Test":"TestGood"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"=== RUN   TestGood\n"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"    a_test.go:1: a log\n"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"--- PASS: TestGood (0.00s)\n"}
{"Action":"pass","Package":"p","Test":"TestGood"}
{"Action":"output","Package":"p","Test":"TestBad","Output":"=== RUN   TestBad\n"}
{"Action":"output","Package":"p","Test":"TestBad/part","Output":"=== RUN   TestBad/part\n"}
{"Action":"output","Package":"p","Test":"TestBad/part","Output":"    a_test.go:2: wrong\n"}
{"Action":"output","Package":"p","Test":"TestBad","Output":"--- FAIL: TestBad (0.00s)\n"}
{"Action":"fail","Package":"p","Test":"TestBad/part"}
{"Action":"fail","Package":"p","Test":"TestBad"}
{"Action":"output","Package":"p","Test":"TestAway","Output":"    a_test.go:3: no data\n"}
{"Action":"output","Package":"p","Test":"TestAway","Output":"--- SKIP: TestAway (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestAway"}
{"Action":"skip","Package":"p","Test":"TestSilent/part"}
{"Action":"output","Package":"p","Test":"TestPanics","Output":"panic: oh\n"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
{"Action":"build-output","ImportPath":"q","Output":"q.go:1: syntax error\n"}
{"Action":"output","Package":"r","Output":"PASS\n"}
{"Action":"output","Package":"r","Output":"ok  \tr\t0.1s\n"}
{"Action":"skip","Package":"s"}
not JSON
`

func TestConvert(t *testing.T) {
	t.Parallel()
	var out, skipped strings.Builder
	require.NoError(t, convert(strings.NewReader(events), &out, &skipped))
	require.Equal(t, `    a_test.go:2: wrong
--- FAIL: TestBad (0.00s)
FAIL
FAIL	p	0.1s
panic: oh
q.go:1: syntax error
ok  	r	0.1s
not JSON
`, out.String())
	require.Equal(t, "no data\tp.TestAway\nno reason given\tp.TestSilent/part\n", skipped.String())
}

func TestSummary(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "skipped")
	var out strings.Builder
	require.NoError(t, run(file, true, nil, &out))
	require.Equal(t, "== 0 tests skipped\n", out.String())

	require.NoError(t, run(file, false, strings.NewReader(events), &out))
	require.NoError(t, run(file, false, strings.NewReader(events), &out), "a test that two runs skip counts once")
	out.Reset()
	require.NoError(t, run(file, true, nil, &out))
	require.Equal(t, `== 2 tests skipped
   1  no data (p.TestAway)
   1  no reason given (p.TestSilent/part)
`, out.String())
}
