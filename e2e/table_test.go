package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The table shows what ended a program, and no text that differs from run to run.
func TestQuoted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ output, message, want string }{
		"the front's message":  {"boom\nKeyError: 'a'\nthe tool failed\n", "the tool failed", ": `the tool failed`"},
		"an exception":         {"Traceback\n  File x\nKeyError: 'path'\nDuring task with name 'tools' and id 'ee8c'\n", "", ": `KeyError: 'path'`"},
		"the last one":         {"TypeError: one\nopenai.APIStatusError: two\n    at x\n", "", ": `openai.APIStatusError: two`"},
		"none":                 {"one\ntwo | three\n", "", ": `two / three`"},
		"an event of an agent": {`{"type":"end"}`, "", ""},
	} {
		require.Equal(t, c.want, result{message: c.message, output: output{text: c.output}}.quoted(), name)
	}
}
