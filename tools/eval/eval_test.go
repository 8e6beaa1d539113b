package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/mend"
)

// A toolset, and turns as the recordings have them. The truth of each is known.
const (
	toolsets = `{"ref":"t","source":"made-up","tools":[
{"name":"book","parameters":{"type":"object","properties":{"city":{"type":"string"},"nights":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}},"required":["city"]}},
{"name":"any_text","parameters":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]}`
	turns = `
{"source":"made-up","model":"m","tools_ref":"t","tool_calls":[{"name":"book","arguments":"{\"city\": \"Rome\", \"nights\": 2}"}],"oracle":[{"v":"ok"}],"expected":{"book":{"city":["Rome"],"nights":[2,""]}}}
{"source":"made-up","model":"m","tools_ref":"t","tool_calls":[{"name":"book","arguments":"{\"city\": \"rome\", \"nights\": \"2\"}"}],"oracle":[{"v":"invalid"}],"expected":{"book":{"city":["Rome"],"nights":[2,""]}}}
{"source":"made-up","model":"m","tools_ref":"t","tool_calls":[{"name":"book","arguments":"{\"city\": \"Bonn\", \"nights\": \"2\"}"}],"oracle":[{"v":"invalid"}],"expected":[{"book_1":{"city":["Rome"],"nights":[2.0]}},{"book_2":{"city":["Oslo"],"nights":[3]}}]}
{"source":"made-up","model":"n","tools_ref":"t","tool_calls":[{"name":"book","arguments":"{\"city\": \"Rome\", \"nights\": \"3\"}"}],"oracle":[{"v":"invalid"}],"expected_turn":["book(city='Rome', nights=2)"]}
{"source":"made-up","model":"n","tools_ref":"t","tool_calls":[{"name":"book","arguments":"{\"city\": \"Rome\", \"tags\": \"sea\"}"}],"oracle":[{"v":"invalid"}],"expected_turn":["book('Rome')","book(city='Rome', tags=['sea', 'sun'])"]}
{"source":"made-up","model":"n","tools_ref":"t","traj":"j","tool_calls":[{"name":"book","arguments":"{\"city\": \"Rome\"}"}],"oracle":[{"v":"ok"}],"expected_traj":[{"name":"book","arguments":{"city":"Rome"}}]}
{"source":"made-up","model":"n","tools_ref":"t","traj":"j","tool_calls":[{"name":"book<|channel|>commentary","arguments":"{'city': 'Rome', 'nights': None}"}],"oracle":[{"v":"unknown_tool"}]}
{"source":"made-up","model":"n","tools_ref":"t","tool_calls":[{"name":"any.text","arguments":"{\"text\": 5}"}],"oracle":[{"v":"unknown_tool"}],"expected":{"any.text":{"text":[5]}}}
{"source":"made-up","model":"n","tools_ref":"t","tool_calls":[{"name":"book","arguments":"{\"nights\": 1}"}],"oracle":[{"v":"invalid"}]}
{"source":"made-up","model":"n","tools_ref":"t","no_calls":true}
`
)

func madeUp(t *testing.T) string {
	dir := t.TempDir()
	oneLine := strings.ReplaceAll(toolsets, "\n", "")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "toolsets.jsonl"), []byte(oneLine), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "made-up.jsonl"), []byte(turns), 0o600))
	return dir
}

func (st *study) row(t *testing.T, source, setup string) tally {
	for i, how := range st.setups {
		if how.name == setup {
			return st.sources[source].bySetups[i]
		}
	}
	require.Fail(t, "no such setup", setup)
	return tally{}
}

func TestEvaluate(t *testing.T) {
	t.Parallel()
	st, err := evaluate(madeUp(t))
	require.NoError(t, err)
	g := st.sources["made-up"]
	require.Equal(t, []int{9, 7, 5, 0, 0}, []int{g.calls, g.broken, g.invalid, g.refused, g.changed})
	require.Equal(t, 2, g.asSent.outcomes[equal])

	coerce := st.row(t, "made-up", "coerce")
	require.Equal(t, 3, coerce.mended)
	require.Equal(t, [outcomes]int{equal: 1, elsewhere: 1, asSent: 1}, coerce.outcomes)
	require.Equal(t, []int{2, 2, 3}, []int{coerce.right(), coerce.decided(), coerce.withTruth()})

	wrap := st.row(t, "made-up", "wrap")
	require.Equal(t, [outcomes]int{wrong: 1}, wrap.outcomes, "one value is not a list of one")
	require.Len(t, st.wrongs, 3, "alone, and in the two sets of all rules")

	require.Zero(t, st.row(t, "made-up", "tool_name").mended, "the arguments are not JSON")
	set := st.row(t, "made-up", "strip, default")
	require.Equal(t, 5, set.mended)
	require.Equal(t, 1, set.outcomes[unfit], "5 is not text")
	require.Equal(t, 6, st.row(t, "made-up", "strip, all but encode").mended)

	require.Equal(t, 3, st.invalidFaults(), "nights, tags, and no city: three calls have the first")
	require.Len(t, st.faults, 5, "and two unknown names")
	for i, how := range st.setups {
		right, wrong := st.distinct(i)
		switch how.name {
		case "coerce":
			require.Equal(t, []int{1, 0}, []int{right, wrong})
			require.InDelta(t, 1.0/3, st.distinctShare(i), 1e-9)
		case "wrap":
			require.Equal(t, []int{0, 1}, []int{right, wrong})
		}
	}
}

func TestRunWritesBetweenTheMarkers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mending.md")
	require.NoError(t, os.WriteFile(file, []byte("before\n"+begin+"\nold\n"+end+"\nafter\n"), 0o600))
	require.NoError(t, run([]string{"-data", madeUp(t), "-write", file}, &bytes.Buffer{}))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), "before\n"+begin))
	require.True(t, strings.HasSuffix(string(text), end+"\nafter\n"))
	require.NotContains(t, string(text), "\nold\n")
	require.Contains(t, string(text), "| **all** | 9 | 5 |")
	require.NoError(t, run([]string{"-data", madeUp(t), "-write", file}, &bytes.Buffer{}))
	again, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))

	var out bytes.Buffer
	require.NoError(t, run([]string{"-data", madeUp(t), "-wrong"}, &out))
	require.Contains(t, out.String(), `wrap | n | book`)
	require.Error(t, run([]string{"-data", filepath.Join(t.TempDir(), "none")}, &out))
	require.Error(t, run([]string{"-nonsense"}, &out))
	require.NoError(t, os.WriteFile(file, []byte("no markers"), 0o600))
	require.ErrorIs(t, run([]string{"-data", madeUp(t), "-write", file}, &out), errMarkers)
}

// TestRecorded holds the rules that are on to any recordings, and
// docs/measured/mending.md to those that it was written from.
func TestRecorded(t *testing.T) {
	t.Parallel()
	data := filepath.Join("..", filepath.FromSlash(defaultData))
	if _, err := os.Stat(data); err != nil {
		t.Skip("the recorded calls are not here:", err)
	}
	if testing.Short() {
		t.Skip("takes seconds")
	}
	st, err := evaluate(data)
	require.NoError(t, err)
	total := st.total()
	require.Zero(t, total.refused, "valid as sent, and refused")
	require.Zero(t, total.changed, "valid as sent, and changed by a repair")
	share := map[string]float64{}
	for i, how := range st.setups {
		row := total.bySetups[i]
		share[how.name] = float64(row.invalid) / float64(max(1, total.invalid))
		risky := func(r mend.Rule) bool { return r != mend.FillDefaults && !slices.Contains(mend.Extended(), r) }
		if !slices.ContainsFunc(how.rules, risky) {
			require.Zero(t, row.outcomes[wrong], "%s: see -wrong", how.name)
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "measured", "mending.md"))
	require.NoError(t, err)
	if !strings.Contains(string(text), recordings+st.fingerprint) {
		t.Logf("docs/measured/mending.md was written from other recordings than %s; shares here: %v", st.fingerprint, share)
		return
	}
	require.GreaterOrEqual(t, share["strip, default"], 0.28)
	require.GreaterOrEqual(t, share["strip, certain, fill_defaults"], 0.36)
	updated, err := between(string(text), st.markdown())
	require.NoError(t, err)
	require.Equal(t, updated, string(text), "regenerate it: go run -C tools ./eval -write ../docs/measured/mending.md")
}
