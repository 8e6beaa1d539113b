package recorded

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
)

// events returns the data of each server-sent event: its data lines, joined.
// Comments and other fields are passed over, as the specification has it
// (https://html.spec.whatwg.org/multipage/server-sent-events.html).
func events(b []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		var data []string
		text := strings.ReplaceAll(string(b), "\r\n", "\n")
		for line := range strings.SplitSeq(text+"\n\n", "\n") {
			if value, ok := strings.CutPrefix(line, "data:"); ok {
				data = append(data, strings.TrimPrefix(value, " "))
			}
			if line == "" && data != nil {
				if !yield(strings.Join(data, "\n")) {
					return
				}
				data = nil
			}
		}
	}
}

// sortedKeys returns the keys of m in order, so that nothing depends on how a
// map is walked.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
