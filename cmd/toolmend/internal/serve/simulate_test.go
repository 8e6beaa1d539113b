package serve

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/logbatch"
	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/internal/test/simulate"
	"github.com/toolmend/toolmend/internal/text"
)

var (
	seeds     = flag.Int("seeds", 60, "seeds of TestSimulate")
	replay    = flag.Int("replay", 0, "run the seed of TestSimulate so often, and count its failures")
	first     = flag.Bool("first", false, "end TestSimulate at the first seed that fails")
	faults    = flag.Bool("faults", false, "run TestSimulateFaults")
	firstSeed = flag.Uint64("seed", 1, "the first seed of TestSimulate")
)

// simulated starts the gateway of `toolmend serve` in a simulation: all of it but the sockets and
// the signals.
func simulated(w *simulate.World) (*simulate.Gateway, error) {
	f := serveFlags{config: w.ConfigFile}
	c, err := f.load()
	if err != nil {
		return nil, err
	}
	lines := logbatch.New(w)
	level := new(slog.LevelVar)
	visible := text.JSONWriter{To: lines}
	log := slog.New(logbatch.Handler{Handler: slog.NewJSONHandler(visible, &slog.HandlerOptions{Level: level}), To: visible, Writer: lines, Frequent: gateway.LogMessage})
	g, err := gateway.New(c.Config, gateway.Options{Logger: log, MeterProvider: w.Meter, Decoders: decoders, DialContext: w.Dial})
	if err != nil {
		return nil, err
	}
	lines.OnLost(g.CountLostLog)
	s := &server{flags: f, config: c, gateway: g, log: log, lines: lines, level: level, signals: w.Signals, listener: w.Listener}
	stopped := make(chan bool, 1)
	go func() { stopped <- s.run(context.Background()) }()
	return &simulate.Gateway{PagePath: g.PagePath, Handler: http.Handler(g), Stopped: stopped, Close: func() {
		_ = g.Close()
		lines.Close()
	}}, nil
}

// TestSimulate runs whole gateways with clients and providers that misbehave. See
// docs/simulation.md.
func TestSimulate(t *testing.T) {
	simulate.Prepare(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	if *replay > 0 {
		t.Logf("seed %d fails %d of %d times", *firstSeed, failures(t, *firstSeed, *replay), *replay)
		return
	}
	var all simulate.Result
	failed := 0
	for seed := *firstSeed; seed < *firstSeed+uint64(*seeds); seed++ {
		runtime.GC()
		r := simulate.Run(t, seed, simulated)
		all.Exchanges, all.ModelCalls, all.Time = all.Exchanges+r.Exchanges, all.ModelCalls+r.ModelCalls, all.Time+r.Time
		if len(r.Violations) == 0 {
			continue
		}
		failed++
		t.Errorf("seed %d:\n%s", seed, strings.Join(r.Violations, "\n"))
		if *first {
			return
		}
	}
	t.Logf("%d seeds from %d, %d exchanges, %d model calls, %s simulated: %d seeds failed", *seeds, *firstSeed, all.Exchanges, all.ModelCalls, all.Time.Round(time.Hour), failed)
}

// failures returns how often a seed fails.
func failures(t *testing.T, seed uint64, times int) (n int) {
	for range times {
		runtime.GC()
		if len(simulate.Run(t, seed, simulated).Violations) > 0 {
			n++
		}
	}
	return n
}

// TestSimulateFaults plants each of simulate.Faults, and looks for the seed that finds it. Then it runs
// that seed a hundred times.
func TestSimulateFaults(t *testing.T) {
	if !*faults {
		t.Skip("only with -faults: make simulate-faults")
	}
	root, err := filepath.Abs("../../../..")
	require.NoError(t, err)
	for _, f := range simulate.Faults {
		t.Run(f.Name, func(t *testing.T) {
			dir := t.TempDir()
			text, err := f.Plant(root)
			require.NoError(t, err)
			changed, overlay, program := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "simulate.test")
			require.NoError(t, os.WriteFile(changed, text, 0o600))
			replaces, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, f.File): changed}})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(overlay, replaces, 0o600))
			out, err := osexec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, ".").CombinedOutput()
			require.NoError(t, err, string(out))
			simulated := func(args ...string) string {
				out, _ := osexec.Command(program, append([]string{"-test.run", "^TestSimulate$", "-test.v"}, args...)...).CombinedOutput()
				return string(out)
			}
			result := simulated("-first", "-seeds", strconv.Itoa(*seeds), "-seed", strconv.FormatUint(*firstSeed, 10))
			found := failedSeed.FindStringSubmatch(result)
			require.NotNil(t, found, "no seed finds it:\n%.3000s", result)
			again := timesFailed.FindStringSubmatch(simulated("-seed", found[1], "-replay", "100"))
			require.NotNil(t, again)
			reason, _, _ := strings.Cut(result[strings.Index(result, found[0])+len(found[0]):], "\n")
			fmt.Printf("%-5s %-52s seed %-4s %s of 100: %.160s\n", f.Invariant, f.Name, found[1], again[1], strings.TrimSpace(reason))
			times, err := strconv.Atoi(again[1])
			require.NoError(t, err)
			require.GreaterOrEqual(t, times, 95)
		})
	}
}

var (
	failedSeed  = regexp.MustCompile(`seed (\d+):\n`)
	timesFailed = regexp.MustCompile(`fails (\d+) of`)
)
