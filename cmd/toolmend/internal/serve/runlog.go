package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// keptLogs is the number of log files of an agent that run keeps.
const keptLogs = 20

// newRunLog makes a log file in the user's cache directory, or in the directory
// for temporary files if there is none. It removes the oldest logs of the agent.
func newRunLog(agent string) (*os.File, error) {
	dir, err := os.UserCacheDir()
	if err == nil {
		dir = filepath.Join(dir, "toolmend")
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		dir = os.TempDir()
	}
	// The time sorts. The * makes the name unique.
	f, err := os.CreateTemp(dir, fmt.Sprintf("run-%s-%s-*.log", agent, time.Now().UTC().Format("20060102T150405")))
	if err != nil {
		return nil, fmt.Errorf("cannot make a log file: %w", err)
	}
	old, _ := filepath.Glob(filepath.Join(dir, "run-"+agent+"-*.log"))
	slices.Sort(old)
	for _, name := range old[:max(len(old)-keptLogs, 0)] {
		_ = os.Remove(name)
	}
	return f, nil
}
