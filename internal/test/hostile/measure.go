package hostile

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Cost is what handling a sample has cost.
type Cost struct {
	Time time.Duration // of the processor, the garbage collector's included: the best of up to three runs
	Live int64         // bytes: the most that was live at once, the outcome included, beside the sample
	Unit time.Duration // of the processor: the longest that a run went on after its context had ended
}

// Run handles a sample once, and returns its outcome, which is kept until the
// live memory is measured.
type Run func(ctx context.Context) any

// Measure runs run several times, one after the other: for the time, for the
// live memory, and with contexts that end at different points of the run. Time
// and memory are measured for the whole process, so nothing else may run in it.
func Measure(run Run) Cost {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var c Cost
	var wall time.Duration
	for n := 0; n < 3 && wall < 300*time.Millisecond; n++ {
		runtime.GC()
		start, used := time.Now(), processor()
		_ = run(context.Background())
		used = processor() - used
		if wall = time.Since(start); n == 0 || used < c.Time {
			c.Time = used
		}
	}
	c.Live = live(run)
	c.Unit = min(unit(run, wall), c.Time)
	if wall < shortest {
		c.Unit = c.Time
	}
	return c
}

// live returns the most live bytes of a run. The garbage collector runs as
// often as it can, and says after each of its runs what it has found.
func live(run Run) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	runtime.GC()
	before := liveBytes()
	stop, most := make(chan struct{}), make(chan int64)
	go func() {
		var high int64
		for {
			select {
			case <-stop:
				most <- high
				return
			case <-time.After(time.Millisecond / 2):
				high = max(high, liveBytes())
			}
		}
	}()
	outcome := run(context.Background())
	runtime.GC()
	high := liveBytes()
	runtime.KeepAlive(outcome)
	close(stop)
	return max(0, max(high, <-most)-before)
}

// liveBytes is what the last run of the garbage collector has found live.
func liveBytes() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// A run that takes less is one unit.
const shortest = 2 * time.Millisecond

// unit returns the longest work between the end of a context and the end of the
// run, over contexts that end at five points of a run that takes that long.
func unit(run Run, whole time.Duration) time.Duration {
	if whole < shortest {
		return 0
	}
	var longest time.Duration
	for n := range 5 {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan time.Duration, 1)
		timer := time.AfterFunc(whole*time.Duration(2*n+1)/10, func() {
			ended <- processor()
			cancel()
		})
		_ = run(ctx)
		done := processor()
		if !timer.Stop() {
			longest = max(longest, done-<-ended)
		}
		cancel()
	}
	return longest
}
