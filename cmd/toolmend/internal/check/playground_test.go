package check_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/check"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/recordedtest"
	"github.com/toolmend/toolmend/middleware"
)

// asked is what the playground and the command are both asked.
type asked struct {
	Tool string `json:"tool"`
	Call string `json:"call"`
}

// TestPlayground holds that the playground says of recorded calls what the command says.
// PLAYGROUND is the folder that `make site` builds the playground into.
func TestPlayground(t *testing.T) {
	dir := os.Getenv("PLAYGROUND")
	if dir == "" {
		t.Skip("no PLAYGROUND: make site-test runs this test")
	}
	info, err := os.Stat(filepath.Join(dir, "toolmend.wasm.gz"))
	require.NoError(t, err)
	t.Logf("the validator is %d bytes, packed", info.Size())
	require.LessOrEqual(t, info.Size(), int64(3_600_000), "packed bytes of the validator")

	const each = 250
	valid, invalid := recordedCalls(t)
	var requests []asked
	for _, calls := range [][]asked{valid, invalid} {
		for i := range each {
			requests = append(requests, calls[i*len(calls)/each])
		}
	}
	var in bytes.Buffer
	encoder := json.NewEncoder(&in)
	for _, r := range requests {
		require.NoError(t, encoder.Encode(r))
	}
	node := exec.Command("node", filepath.Join(dir, "..", "..", "playground", "try.mjs"), dir)
	node.Stdin, node.Stderr = &in, os.Stderr
	out, err := node.Output()
	require.NoError(t, err)
	answers := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	require.Len(t, answers, len(requests))

	file, verdicts := filepath.Join(t.TempDir(), "tools.json"), map[string]int{}
	for i, r := range requests {
		require.NoError(t, os.WriteFile(file, []byte(r.Tool), 0o600))
		var stdout, stderr bytes.Buffer
		code := check.Try(t.Context(), []string{"-json", "-tool", file, "-call", "-"}, strings.NewReader(r.Call), &stdout, &stderr)
		require.NotEqual(t, cli.ExitFailed, code, stderr.String())
		var got struct {
			Error  string
			Result json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(answers[i]), &got), answers[i])
		require.Empty(t, got.Error, r.Call)
		require.Equal(t, strings.TrimSuffix(stdout.String(), "\n"), string(got.Result), r.Call)
		var verdict struct {
			Final string `json:"final"`
		}
		require.NoError(t, json.Unmarshal(got.Result, &verdict))
		verdicts[verdict.Final]++
	}
	t.Logf("%d calls, by final verdict: %v", len(requests), verdicts)
}

// recordedCalls returns the recorded calls that another validator found valid and invalid.
func recordedCalls(t *testing.T) (valid, invalid []asked) {
	type tool struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	}
	recordedtest.Each(t, func(l recorded.Line, turns []recorded.Turn) {
		var record struct {
			Oracle []struct{ V string } `json:"oracle"`
		}
		require.NoError(t, json.Unmarshal(l.Text, &record))
		var tools []tool
		for _, known := range turns[0].Tools {
			if known.Kind != middleware.KindFunction {
				return
			}
			tools = append(tools, tool{known.Name, known.Description, known.Parameters})
		}
		var list []byte
		for i, c := range turns[0].Calls {
			if i >= len(record.Oracle) || c.Kind != middleware.KindFunction {
				continue
			}
			into := &invalid
			if record.Oracle[i].V == "ok" {
				into = &valid
			}
			if list == nil {
				var err error
				list, err = json.Marshal(tools)
				require.NoError(t, err)
			}
			call, err := json.Marshal(map[string]string{"name": c.Name, "arguments": c.Arguments})
			require.NoError(t, err)
			*into = append(*into, asked{string(list), string(call)})
		}
	})
	return valid, invalid
}
