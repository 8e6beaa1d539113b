package durabletest

import (
	"strings"
	"sync"
	"testing"
)

// entry is one effect.
type entry struct {
	step     int // of the run: model steps and turns of tools, counted together
	name     string
	key      string
	once     bool
	finished bool
}

// ledger records the effects of all processes of a case. It is outside of them,
// so a kill loses nothing of it.
type ledger struct {
	mu       sync.Mutex
	kill     int // the kill point: before effect kill/2, or after it if kill is odd; -1: none
	entries  []entry
	killed   *entry // the effect at which the process was killed
	onceLost string // the id of the call marked AtMostOnce that was killed
}

// effect does one effect and reports whether its process does not learn how it
// ended, because it was killed.
func (l *ledger) effect(p *Process, e entry, do func()) (lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock() // one effect at a time, so that kill points have an order
	if p.Killed() {
		return true
	}
	at := len(l.entries)
	l.entries = append(l.entries, e)
	now := &l.entries[at]
	if l.killed == nil && l.kill == 2*at {
		l.die(p, *now)
		return true
	}
	do()
	now.finished = true
	if l.killed == nil && l.kill == 2*at+1 {
		l.die(p, *now)
	}
	return p.Killed()
}

func (l *ledger) die(p *Process, e entry) {
	l.killed = &e
	if e.once {
		_, l.onceLost, _ = strings.Cut(e.name, " ")
	}
	p.kill()
}

// check compares the ledger with that of the undisturbed run.
func (l *ledger) check(t *testing.T, calm *ledger) {
	t.Helper()
	if l.killed == nil {
		t.Fatalf("the run has only %d effects", len(l.entries))
	}
	started, finished, keys, usual := map[string]int{}, map[string]int{}, map[string]string{}, map[string]int{}
	for _, e := range calm.entries {
		usual[e.name]++
	}
	for _, e := range l.entries {
		started[e.name]++
		if e.finished {
			finished[e.name]++
		}
		if k, seen := keys[e.name]; seen && k != e.key {
			t.Errorf("%s has the keys %q and %q", e.name, k, e.key)
		}
		keys[e.name] = e.key
		if e.once && started[e.name] > 1 {
			t.Errorf("%s is marked AtMostOnce, and started %d times", e.name, started[e.name])
		}
		if started[e.name] > usual[e.name] && e.step != l.killed.step {
			t.Errorf("%s happened again, although the process was killed during %s", e.name, l.killed.name)
		}
		if usual[e.name] == 0 {
			t.Errorf("%s happened, and not without a kill", e.name)
		}
	}
	for _, c := range calm.entries {
		if finished[c.name] == 0 && !c.once {
			t.Errorf("%s was lost", c.name)
		}
	}
}
