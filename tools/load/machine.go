package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// describeMachine returns what figures depend on, in a sentence.
func describeMachine() string {
	s := fmt.Sprintf("%s, %d logical CPUs, %s, %s/%s", processorIn("/proc/cpuinfo"), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if b, err := os.ReadFile("/proc/loadavg"); err == nil && len(b) > 0 {
		s += loadIn(strings.Fields(string(b))[0])
	}
	return s + "."
}

// loadIn says how busy the machine was with other work.
func loadIn(average string) string {
	s := ", load average before the run " + average
	if load, err := strconv.ParseFloat(average, 64); err != nil || load < float64(runtime.NumCPU())/2 {
		return s
	}
	return s + " (the machine was busy with other work: repeat the run on an idle one before you rely on times)"
}

// processorIn returns the first model name in a file like /proc/cpuinfo.
func processorIn(file string) string {
	b, _ := os.ReadFile(file)
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown CPU"
}
