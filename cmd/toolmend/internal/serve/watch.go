package serve

import (
	"os"
	"sync"
	"time"
)

// watchFile looks at a file at each interval. It sends on changed when the size
// or the modification time is another one, and drops the value if it is not received. stop
// ends the watch. A path of "" never changes.
func watchFile(path string, interval time.Duration) (changed <-chan struct{}, stop func()) {
	if path == "" {
		return nil, func() {}
	}
	tell, done := make(chan struct{}, 1), make(chan struct{})
	last := stampOf(path)
	go func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if now := stampOf(path); now != last && now != (stamp{}) {
				last = now
				select {
				case tell <- struct{}{}:
				default:
				}
			}
		}
	}()
	return tell, sync.OnceFunc(func() { close(done) })
}

// stamp is what changes with the content of a file.
type stamp struct {
	size     int64
	modified time.Time
}

// stampOf returns the stamp of a file, or the zero stamp if there is none.
func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info.Size(), info.ModTime()}
}
