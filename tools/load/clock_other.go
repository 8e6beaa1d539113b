//go:build !linux

package main

import "time"

// processorTime returns 0: the time is unknown.
func (p *process) processorTime() time.Duration { return 0 }
