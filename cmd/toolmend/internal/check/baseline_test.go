package check

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
	"github.com/toolmend/toolmend/internal/rates"
	"github.com/toolmend/toolmend/internal/report"
)

// logOf returns n turns of which the first bad are invalid as sent. Every second
// turn is of the model small, the others of large.
func logOf(n, bad int) string {
	var log strings.Builder
	for i := range n {
		model, args := "small", `{"x":1}`
		if i%2 == 0 {
			model = "large"
		}
		if i < bad {
			args = `{"x":"one"}`
		}
		log.WriteString(clitest.Turn(model, "r", "add", args, "free", `{}`))
	}
	return log.String()
}

// baselineDir has the logs good (2% bad), same and worse (10%), and the
// baseline made of good.
func baselineDir(t *testing.T) string {
	t.Helper()
	dir := clitest.DirWith(t, map[string]string{
		"good": logOf(500, 10), "same": logOf(500, 13), "worse": logOf(500, 50), "none": "", "odd": clitest.Turn("m", "r", "odd", `{}`),
		"broken": logOf(9, 0) + "{\n", "unusable": clitest.Turn("m", "r", "odd", `{}`) + logOf(9, 0), "novel": clitest.Turn("new", "r", "sub", `{}`) + logOf(500, 10),
	})
	base := exec(t, dir, "", "check", "-json", "@/good")
	require.Equal(t, cli.ExitInvalid, base.Code)
	for name, text := range map[string]string{
		"base":      base.Out,
		"pretty":    indented(t, lastLine(base.Out)),
		"nosummary": strings.Split(base.Out, "\n")[0] + "\n",
		"old":       `{"type":"summary","calls":3}` + "\n",
		"empty":     `{"type":"summary","turn_rates":{"total":{"turns":0},"models":{},"tools":{}}}`,
		"absurd":    `{"type":"summary","turn_rates":{"total":{"turns":5,"invalid_as_sent":6},"models":{},"tools":{}}}`,
		"absurd2":   `{"type":"summary","turn_rates":{"total":{"turns":5},"models":{"m":null},"tools":{}}}`,
		"typed":     `{"type":"summary","turn_rates":3}`,
		"twice":     `{"type":"summary","calls":3}` + "\n" + base.Out,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func lastLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1]
}

func indented(t *testing.T, line string) string {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal([]byte(line), &v))
	out, err := json.MarshalIndent(v, "", "  ")
	require.NoError(t, err)
	return strings.ReplaceAll(string(out), `"type": "summary"`, `"type":"summary"`)
}

// TestBaselineExitCodes holds that the comparison decides the exit code, and
// that what cannot be compared is an error.
func TestBaselineExitCodes(t *testing.T) {
	t.Parallel()
	dir := baselineDir(t)
	for _, c := range []struct {
		args string
		code int
		say  string // a part of the output or of stderr
	}{
		{"-baseline @/base @/good", cli.ExitOK, "Not risen."},
		{"-baseline @/pretty @/good", cli.ExitOK, "Not risen."},
		{"-baseline @/twice @/good", cli.ExitOK, "Not risen."},
		{"-baseline @/base @/same", cli.ExitOK, "chance explains the rise of 0.60 points"},
		{"-baseline @/base @/worse", cli.ExitInvalid, "RISEN: by 8.00 points"},
		{"-baseline @/base -max-rise 8 @/worse", cli.ExitInvalid, "RISEN: by 8.00 points"},
		{"-baseline @/base -max-rise 8.1 @/worse", cli.ExitOK, "but it is below the 8.1 points"},
		{"-baseline @/base -max-rise 0 @/worse", cli.ExitInvalid, "RISEN"},
		{"-baseline @/base -gate final @/worse", cli.ExitInvalid, "in the end"},
		{"-baseline @/base -gate final -mend off @/worse", cli.ExitInvalid, "note: the baseline was made with -strip optional -mend default"},
		{"-baseline @/base -unknown pass @/good", cli.ExitOK, "-unknown reject\n"},
		{"-baseline @/base @/none", cli.ExitOK, "no tool call was found"},
		{"-baseline @/base @/odd", cli.ExitOK, "no rise can be noticed"}, // not validated
		{"-baseline @/base @/broken", cli.ExitFailed, "not JSON"},
		{"-baseline @/base @/novel", cli.ExitOK, "2 not in the baseline"},
		{"-baseline @/missing @/good", cli.ExitFailed, "no such file"},
		{"-baseline @/nosummary @/good", cli.ExitFailed, "a baseline is what toolmend check -write-baseline or -json writes"},
		{"-baseline @/none @/good", cli.ExitFailed, "no summary"},
		{"-baseline @/old @/good", cli.ExitFailed, "no turn_rates"},
		{"-baseline @/empty @/good", cli.ExitFailed, "nothing to compare with"},
		{"-baseline @/absurd @/good", cli.ExitFailed, "more invalid turns than turns"},
		{"-baseline @/absurd2 @/good", cli.ExitFailed, "more invalid turns than turns"},
		{"-baseline @/typed @/good", cli.ExitFailed, "the summary: "},
		{"-max-rise 1 @/good", cli.ExitFailed, "-max-rise needs -baseline"},
		{"-baseline @/base -max-rise -1 @/good", cli.ExitFailed, "from 0 to 100, not -1"},
		{"-baseline @/base -max-rise NaN @/good", cli.ExitFailed, "from 0 to 100"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			got := exec(t, dir, "", append([]string{"check"}, strings.Fields(c.args)...)...)
			require.Equal(t, c.code, got.Code, got.ErrOut)
			require.Contains(t, got.Out+got.ErrOut, c.say)
		})
	}
}

// TestMaxInvalid holds that the share of the calls decides the exit code with -max-invalid,
// by the verdict of -gate, and beside a baseline too.
func TestMaxInvalid(t *testing.T) {
	t.Parallel()
	dir := baselineDir(t)
	for _, c := range []struct {
		args string
		code int
		say  string // a part of stderr; "" for none
	}{
		{"-max-invalid 2 @/good", cli.ExitOK, ""},
		{"-max-invalid 1.9 @/good", cli.ExitInvalid, "10 of 500 calls not valid, more than the 1.9% of -max-invalid"},
		{"-max-invalid 0 @/good", cli.ExitInvalid, ""},
		{"-gate final -max-invalid 9.9 @/worse", cli.ExitInvalid, "50 of 500 calls"},
		{"-tool add -max-invalid 2 @/novel", cli.ExitOK, ""},
		{"-max-invalid 9.9 @/unusable", cli.ExitInvalid, "1 of 10 calls"},
		{"-max-invalid 2 @/none", cli.ExitOK, "no tool call was found"},
		{"-baseline @/base -max-invalid 2 @/same", cli.ExitInvalid, "13 of 500 calls"},
		{"-baseline @/base -max-invalid 20 @/worse", cli.ExitInvalid, ""}, // a rise
		{"-max-invalid 99 @/broken", cli.ExitFailed, "not JSON"},
		{"-max-invalid -1 @/good", cli.ExitFailed, "from 0 to 100, not -1"},
		{"-max-invalid NaN @/good", cli.ExitFailed, "from 0 to 100"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			got := exec(t, dir, "", append([]string{"check"}, strings.Fields(c.args)...)...)
			require.Equal(t, c.code, got.Code, got.ErrOut)
			require.Contains(t, got.ErrOut, c.say)
			require.Equal(t, c.say == "", got.ErrOut == "", got.ErrOut)
		})
	}
}

// TestWriteBaseline: what is written compares as the output of -json does, and is not
// written if a line could not be read.
func TestWriteBaseline(t *testing.T) {
	t.Parallel()
	dir := baselineDir(t)
	exec(t, dir, "", "check", "-write-baseline", "@/written", "@/good").Require(t, cli.ExitInvalid, "")
	written, err := os.ReadFile(filepath.Join(dir, "written"))
	require.NoError(t, err)
	base, err := os.ReadFile(filepath.Join(dir, "base"))
	require.NoError(t, err)
	require.Equal(t, lastLine(string(base))+"\n", string(written))

	exec(t, dir, "", "check", "-baseline", "@/written", "-write-baseline", "@/written", "@/worse").Require(t, cli.ExitInvalid, "")
	exec(t, dir, "", "check", "-baseline", "@/written", "@/worse").Require(t, cli.ExitOK, "")

	exec(t, dir, "", "check", "-write-baseline", "@/partly", "@/broken").Require(t, cli.ExitFailed, "not JSON")
	require.NoFileExists(t, filepath.Join(dir, "partly"))
}

// TestBaselineGolden holds the text and the JSON of a comparison.
func TestBaselineGolden(t *testing.T) {
	t.Parallel()
	dir := baselineDir(t)
	text := exec(t, dir, "", "check", "-baseline", "@/base", "-top", "1", "@/worse").Out
	clitest.Golden(t, "baseline.txt", text[strings.Index(text, "COMPARED"):])
	clitest.Golden(t, "baseline.json", lastLine(exec(t, dir, "", "check", "-json", "-baseline", "@/base", "@/worse").Out)+"\n")
}

// A turn with several invalid calls counts once, and a turn without a validated
// call does not count.
func TestTurnRates(t *testing.T) {
	t.Parallel()
	got := exec(t, clitest.DirWith(t, map[string]string{"log": clitest.Turn("m", "a", "add", `{"x":"1"}`, "add", `{"x":"2"}`, "add", `{"x":1}`) +
		clitest.Turn("m", "b", "free", `{}`) + clitest.Turn("m", "c", "odd", `{}`, "add", `{"x":1}`) + clitest.Turn("n", "d", "sub", `{}`)}), "", "check", "-json", "@/log")
	var s summaryJSON
	require.NoError(t, json.Unmarshal([]byte(lastLine(got.Out)), &s))
	require.Equal(t, turnRate{Turns: 3, AsSent: 2, Final: 1}, s.TurnRates.Total)
	require.Equal(t, map[string]*turnRate{"m": {Turns: 2, AsSent: 1}, "n": {Turns: 1, AsSent: 1, Final: 1}}, s.TurnRates.Models)
	require.Equal(t, map[string]*turnRate{"add": {Turns: 2, AsSent: 1}, "free": {}, "odd": {}, "sub": {Turns: 1, AsSent: 1, Final: 1}}, s.TurnRates.Tools)
}

// TestBaselineAlarms resamples 5,000 turns a side. Without a rise, at most 5%
// of the comparisons are alarms; a rise of 1 point from 1%, and of 1.5 points
// from 3.5%, is an alarm in at least 95%. The turns are the recorded ones, if
// they are beside the repository.
func TestBaselineAlarms(t *testing.T) {
	t.Parallel()
	good, bad := recordedOutcomes(t)
	const runs, turns = 2000, 5000
	settings := settings{maxRise: 0.5}
	for _, c := range []struct {
		base, rise float64
		most       bool // at most 5% alarms
	}{
		{0.01, 0, true}, {0.035, 0, true}, {0.01, 0.01, false}, {0.035, 0.015, false},
	} {
		r := rand.New(rand.NewPCG(13, uint64(c.base*1e4)))
		alarms := 0
		for range runs {
			base := &summaryJSON{TurnRates: &turnRates{Total: resampled(r, good, bad, turns, c.base)}}
			if compareRates(base, &turnRates{Total: resampled(r, good, bad, turns, c.base+c.rise)}, settings).Risen {
				alarms++
			}
		}
		share := float64(alarms) / runs
		t.Logf("from %.1f%%, a rise of %.1f points: %.2f%% alarms", 100*c.base, 100*c.rise, 100*share)
		if c.most {
			require.LessOrEqual(t, share, rates.Level)
		} else {
			require.GreaterOrEqual(t, share, 0.95)
		}
	}
}

// resampled draws turns with replacement: invalid ones with that probability.
func resampled(r *rand.Rand, good, bad []turnRate, turns int, rate float64) (sum turnRate) {
	limit := uint64(rate * (1 << 32))
	for range turns {
		x := r.Uint64()
		from := good
		if x>>32 < limit {
			from = bad
		}
		sum.add(from[int(x&0xffffffff)%len(from)])
	}
	return sum
}

// recordedOutcomes returns the outcomes of the recorded turns that were
// validated. Without recordings they are made up.
func recordedOutcomes(t *testing.T) (good, bad []turnRate) {
	t.Helper()
	file := filepath.Join("..", "..", "..", "..", "..", "shared", "data", "recorded", "tau-bench.jsonl.gz")
	f, err := os.Open(file)
	if err != nil {
		return []turnRate{{Turns: 1}}, []turnRate{{Turns: 1, AsSent: 1}, {Turns: 1, AsSent: 1, Final: 1}}
	}
	defer f.Close()
	sets, err := recorded.OpenToolsets(recorded.ToolsetsBeside(file))
	require.NoError(t, err)
	s, err := parse([]string{"-"})
	require.NoError(t, err)
	j := report.NewChecker(s.verdict)
	for l, err := range recorded.NewReader(file, f).All() {
		require.NoError(t, err)
		turns, err := l.Turns(sets)
		require.NoError(t, err)
		calls, err := j.Check(t.Context(), turns[0].Tools, turns[0].Finish, turns[0].Calls...)
		require.NoError(t, err)
		var o turnRate
		for i := range calls {
			o = o.with(&calls[i])
		}
		switch {
		case o.AsSent > 0:
			bad = append(bad, o)
		case o.Turns > 0:
			good = append(good, o)
		}
	}
	return good, bad
}
