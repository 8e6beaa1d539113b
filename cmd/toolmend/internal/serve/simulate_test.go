package serve

import (
	"context"
	"flag"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/logbatch"
	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/internal/test/simulate"
	"github.com/toolmend/toolmend/internal/text"
)

var (
	seeds     = flag.Int("seeds", 20, "seeds of TestSimulate")
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
	log := slog.New(logbatch.Handler{Handler: slog.NewJSONHandler(text.JSONWriter{To: lines}, &slog.HandlerOptions{Level: level}), Writer: lines, Frequent: gateway.LogMessage})
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
	for seed := *firstSeed; seed < *firstSeed+uint64(*seeds); seed++ {
		runtime.GC()
		if v := simulate.Run(t, seed, simulated); len(v) > 0 {
			t.Errorf("seed %d:\n%s", seed, strings.Join(v, "\n"))
		}
	}
}
