package agentloop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/internal/test/ratio"
	"github.com/toolmend/toolmend/middleware"
)

// saved runs an agent of n turns of two calls, and saves it to name at each
// checkpoint. each is called after each save.
func saved(t testing.TB, name string, n int, each func()) *agentloop.State {
	t.Helper()
	o := tools(says("weather", strings.Repeat("sunny ", 12)))
	o.MaxSteps = n + 1
	o.Checkpoint = func(_ context.Context, s *agentloop.State) error {
		defer each()
		return agentloop.SaveFile(name, s)
	}
	s := goState()
	require.NoError(t, newAgent(t, scripted(n), o).Run(t.Context(), s))
	return s
}

// sameState fails unless the JSON of both states is the same.
func sameState(t require.TestingT, want, got *agentloop.State) {
	a, err := json.Marshal(want)
	require.NoError(t, err)
	b, err := json.Marshal(got)
	require.NoError(t, err)
	require.Equal(t, string(a), string(b))
}

// Four times as many turns write about four times as much: now and then all of it.
func TestSavesAreLinear(t *testing.T) {
	t.Parallel()
	written := func(turns int) (bytes, whole int) {
		name := filepath.Join(t.TempDir(), "run")
		var was os.FileInfo
		s := saved(t, name, turns, func() {
			now, err := os.Stat(name)
			require.NoError(t, err)
			if was != nil && os.SameFile(was, now) {
				bytes += int(now.Size() - was.Size())
			} else {
				bytes += int(now.Size())
				whole++
			}
			was = now
		})
		got, err := agentloop.LoadFile(name)
		require.NoError(t, err)
		sameState(t, s, got)
		return bytes, whole
	}
	few, _ := written(100)
	many, whole := written(400)
	require.Less(t, many, 6*few) // it was 16
	require.Less(t, whole, 6)
}

// A run that is saved at each checkpoint. Four times as many turns should take at
// most 4.5 times the processor time.
func BenchmarkSavedRun(b *testing.B) {
	for _, turns := range []int{500, 2000} {
		b.Run(fmt.Sprint(turns), func(b *testing.B) {
			b.ReportAllocs()
			start := ratio.ProcessorTime()
			for b.Loop() {
				saved(b, filepath.Join(b.TempDir(), "run"), turns, func() {})
			}
			b.ReportMetric(float64((ratio.ProcessorTime()-start).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// Whatever a program does to a state between two saves, the file has the state of
// the last one.
func TestSaveFileAfterAnyChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		name := filepath.Join(dir, rapid.StringMatching("[a-z]{12}").Draw(t, "name"))
		other := name + ".other"
		s := goState()
		encoder := new(agentloop.Encoder)
		text := rapid.SampledFrom([]string{"", "a", "b", "\n", `"`})
		bytes := rapid.SampledFrom([]string{"", "a", "b\xff"})
		for i := range rapid.IntRange(1, 12).Draw(t, "changes") {
			at := rapid.IntRange(0, len(s.Messages)-1).Draw(t, "at")
			id := fmt.Sprint(i)
			switch rapid.IntRange(0, 11).Draw(t, "change") {
			case 0:
				s.Messages = append(s.Messages, middleware.User(text.Draw(t, "text")))
			case 1, 2, 3: // a turn
				c := call(id, bytes.Draw(t, "name"), bytes.Draw(t, "arguments"))
				reply := middleware.ToolReply(c, text.Draw(t, "text"))
				s.Messages = append(s.Messages, middleware.Assistant("", c), reply)
				s.Results = append(s.Results, agentloop.ToolResult{Call: c, Raw: "{", Turn: i, Result: agentloop.Text(reply.Text())})
				s.Steps = append(s.Steps, agentloop.StepRecord{Attempts: i})
			case 4:
				s.Messages[at].Parts = []middleware.Part{{Kind: middleware.PartMedia, Data: []byte(bytes.Draw(t, "data"))}}
			case 5:
				if p := s.Messages[at].Parts; len(p) > 0 { // in place
					p[0].Data = []byte("x")
					p[0].Text += "(cut)"
				}
			case 6:
				if c := s.Messages[at].ToolCalls; len(c) > 0 {
					c[0].Native = &middleware.Native{Dialect: "d", Raw: id}
				}
			case 7:
				s.Messages = slices.Delete(slices.Clone(s.Messages), at, at+1)
				s.Messages = append(s.Messages, middleware.User("more"))
			case 8:
				s.Results, s.Steps = s.Results[:len(s.Results)/2], s.Steps[:len(s.Steps)/2]
			case 9:
				s.Failures++
				s.Usage.InputTokens++
			case 10:
				c := agentloop.TurnCall{Call: call(id, "t", ""), Status: agentloop.CallReady}
				s.SetTurn(append(slices.Clone(s.Turn()), c)[rapid.IntRange(0, len(s.Turn())).Draw(t, "gone"):]...)
			case 11:
				fork := *s
				require.NoError(t, agentloop.SaveFile(rapid.SampledFrom([]string{name, other}).Draw(t, "file"), &fork))
			}
			require.NoError(t, agentloop.SaveFile(name, s))
			got, err := agentloop.LoadFile(name)
			require.NoError(t, err)
			sameState(t, s, got)
			b, err := encoder.Encode(s)
			require.NoError(t, err)
			got = new(agentloop.State)
			require.NoError(t, json.Unmarshal(b, got))
			sameState(t, s, got)
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				s, encoder = got, new(agentloop.Encoder)
			}
		}
	})
}

// The body of a loop over Steps may change what was saved, and so may a program
// between two runs. A checkpoint may save a copy with other messages.
func TestSaveFileSeesChangesOfTheProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "run")
	o := tools(says("weather", "sunny"))
	o.Checkpoint = func(_ context.Context, s *agentloop.State) error {
		secret := *s
		secret.Messages = []middleware.Message{middleware.User(fmt.Sprintf("(%d messages)", len(s.Messages)))}
		secret.Results = nil
		secret.SetTurn()
		fork := *s // with as many messages
		fork.Messages = slices.Clone(s.Messages)
		fork.Messages[0] = middleware.User("(secret)")
		for _, save := range []struct {
			name string
			s    *agentloop.State
		}{{name, s}, {filepath.Join(dir, "secret"), &secret}, {name, &fork}, {name, s}} {
			if err := agentloop.SaveFile(save.name, save.s); err != nil {
				return err
			}
			got, err := agentloop.LoadFile(save.name)
			require.NoError(t, err)
			sameState(t, save.s, got)
		}
		return nil
	}
	s := goState()
	a := newAgent(t, scripted(6), o)
	for _, err := range a.Steps(t.Context(), s) {
		require.NoError(t, err)
		s.Messages[0].Parts[0].Text += "!"
	}
	got, err := agentloop.LoadFile(name)
	require.NoError(t, err)
	require.Greater(t, strings.Count(got.Messages[0].Text(), "!"), 10)
	require.Greater(t, strings.Count(s.Answer(), "!"), 10, "the model was sent the changes")
	s.Messages[1].ToolCalls[0].Arguments = "{ }"
	require.NoError(t, s.Append(middleware.User("and?")))
	require.NoError(t, a.Run(t.Context(), s))
	got, err = agentloop.LoadFile(name)
	require.NoError(t, err)
	sameState(t, s, got)
}

// disks returns what is in the file after each save of a run of two turns with
// parallel calls, where a person has edited a call of the second turn.
func disks(t *testing.T, ran *[]string) (name string, disks [][]byte, o agentloop.Options) {
	name = filepath.Join(t.TempDir(), "run")
	o = tools(rawTool("weather", func(_ context.Context, c middleware.ToolCall) (agentloop.Result, error) {
		*ran = append(*ran, c.ID)
		return agentloop.Text(strings.Repeat("sunny, ", 9) + c.ID), nil
	}), rawTool("pay", func(_ context.Context, c middleware.ToolCall) (agentloop.Result, error) {
		*ran = append(*ran, c.ID)
		return agentloop.Text("paid"), nil
	}))
	o.Tools[0].Serial, o.Tools[1].Serial, o.Tools[1].Approval = true, true, true
	o.Checkpoint = func(_ context.Context, s *agentloop.State) error {
		err := agentloop.SaveFile(name, s)
		b, readErr := os.ReadFile(name)
		require.NoError(t, readErr)
		disks = append(disks, b)
		return err
	}
	s := goState()
	a := newAgent(t, modelOf(t, calls("weather", "{}", "weather", "{}", "weather", "{}"), calls("weather", "{}", "pay", "{}", "weather", "{}"), text("done")), o)
	require.ErrorIs(t, a.Run(t.Context(), s), agentloop.ErrPending)
	require.NoError(t, s.Edit(s.Pending()[0].Call.ID, `{"to":"Ann"}`))
	require.NoError(t, a.Run(t.Context(), s))
	require.Len(t, *ran, 6)
	return name, disks, o
}

// Whenever a process is killed, the file has the state of the last save that has
// returned, or of the save that it was in. A call whose result was in a save
// that has returned never runs again.
func TestKilledWhileSaving(t *testing.T) {
	t.Parallel()
	var ran []string
	name, disks, o := disks(t, &ran)
	o.Checkpoint = nil
	kinds := map[string]int{}
	load := func(disk []byte) *agentloop.State {
		require.NoError(t, os.WriteFile(name, disk, 0o600))
		s, err := agentloop.LoadFile(name)
		require.NoError(t, err)
		return s
	}
	for i := 1; i < len(disks); i++ {
		before, after := load(disks[i-1]), load(disks[i])
		ends := len(disks[i]) // of the file, if the process is killed
		if bytes.HasPrefix(disks[i], disks[i-1]) {
			kinds["appended"]++
			ends = len(disks[i-1])
		} else { // a file beside it was not renamed yet
			kinds["written whole"]++
			require.NoError(t, os.WriteFile(name+".1.new", disks[i][:len(disks[i])/2], 0o600))
			sameState(t, before, load(disks[i-1]))
		}
		for ; ends < len(disks[i]); ends++ {
			sameState(t, before, load(disks[i][:ends]))
		}
		for _, s := range []*agentloop.State{before, after} {
			var done []string
			for _, r := range s.Results {
				done = append(done, r.Call.ID)
			}
			for _, c := range s.Turn() {
				if c.Status == agentloop.CallDone {
					done = append(done, c.Call.ID)
				}
			}
			ran = nil
			for _, p := range s.Pending() {
				require.NoError(t, s.Approve(p.Call.ID))
			}
			require.NoError(t, newAgent(t, scripted(0), o).Run(t.Context(), s))
			for _, id := range done {
				require.NotContains(t, ran, id)
			}
		}
	}
	require.Greater(t, kinds["appended"], 6)
	require.Greater(t, kinds["written whole"], 0)
}

// A file that was cut where no kill can cut it, or in which a bit has changed, is
// refused: what was cut off or changed may be a result.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	var ran []string
	name, disks, _ := disks(t, &ran)
	file := disks[len(disks)-1]
	first := bytes.IndexByte(file, '\n') + 1
	first += bytes.IndexByte(file[first:], '\n') + 1
	require.Less(t, first, len(file))
	refused := func(damaged []byte, at int) {
		require.NoError(t, os.WriteFile(name, damaged, 0o600))
		_, err := agentloop.LoadFile(name)
		require.ErrorIs(t, err, agentloop.ErrState, "at %d of %d: %q", at, len(file), damaged[max(0, at-40):min(len(damaged), at+40)])
	}
	for at := range first {
		refused(file[:at], at)
	}
	for at := range file {
		for _, bit := range []int{at % 8, (at + 3) % 8} {
			damaged := bytes.Clone(file)
			damaged[at] ^= 1 << bit
			refused(damaged, at)
		}
	}
	records := bytes.SplitAfter(file[:len(file)-1], []byte("\n"))
	for i := 1; i < len(records)-1; i++ { // a record is missing, there twice, or at another place
		refused(slices.Concat(slices.Concat(records[:i]...), slices.Concat(records[i+1:]...), []byte("\n")), i)
		refused(slices.Concat(slices.Concat(records[:i+1]...), slices.Concat(records[i:]...), []byte("\n")), i)
	}
	refused(append(bytes.Clone(file), file...), 0)
}

// The file of an earlier version is the JSON of a state. The next save replaces it.
func TestLoadFileOfJSON(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "run.json")
	want := goState()
	b, err := json.Marshal(want)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, b, 0o600))
	got, err := agentloop.LoadFile(name)
	require.NoError(t, err)
	sameState(t, want, got)
	require.NoError(t, agentloop.SaveFile(name, got))
	got, err = agentloop.LoadFile(name)
	require.NoError(t, err)
	sameState(t, want, got)

	require.NoError(t, os.WriteFile(name, b[:len(b)-5], 0o600))
	_, err = agentloop.LoadFile(name)
	require.ErrorIs(t, err, agentloop.ErrState)
}

// If the file is not the one that the last save left, the next one writes the
// whole state.
func TestSaveFileOverAnotherFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "run")
	s := goState()
	for what, change := range map[string]func() error{
		"gone":        func() error { return os.Remove(name) },
		"cut":         func() error { return os.Truncate(name, 30) },
		"a folder":    func() error { return errors.Join(os.Remove(name), os.MkdirAll(filepath.Join(name, "x"), 0o700)) },
		"another one": func() error { return agentloop.SaveFile(name, goState()) },
	} {
		require.NoError(t, agentloop.SaveFile(name, s), what)
		require.NoError(t, change())
		s.Messages = append(s.Messages, middleware.User(what))
		if what == "a folder" {
			require.Error(t, agentloop.SaveFile(name, s))
			require.NoError(t, os.RemoveAll(name))
		}
		require.NoError(t, agentloop.SaveFile(name, s), what)
		got, err := agentloop.LoadFile(name)
		require.NoError(t, err)
		sameState(t, s, got)
	}
}
