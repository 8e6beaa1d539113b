package envelope

import (
	"encoding/json"
	"slices"
	"strings"
)

// Reader decodes the calls of an answer as one kind of client does.
type Reader struct {
	Name  string
	Calls func(body string) []Call
}

// Readers returns the clients of a format. They read keys as
// encoding/json does, which folds case and merges duplicates, or exactly, and then
// the first or the last duplicate counts. A member of an odd kind is an error for
// the first, as it is for most typed clients: they end there. The others take
// it for absent, as programs in dynamic languages do. The lines of their streams end as the
// WHATWG specification says, or at LF only. Where a format has copies of a
// call, a client takes one of them. A call without a name does not count: no client
// can run it.
func (f Format) Readers(stream bool) []Reader {
	keys := map[string]func([]event) []event{
		"encoding/json":   f.typed,
		"first duplicate": func(events []event) []event { return f.exact(events, true) },
		"last duplicate":  func(events []event) []event { return f.exact(events, false) },
	}
	cuts := map[string]func(string) []event{"WHATWG": whatwg, "LF": lineFeed, "trimmed": trimmed}
	switch {
	case !stream:
		cuts = map[string]func(string) []event{"whole": func(body string) []event { return []event{{"", body}} }}
	case f.lines:
		cuts = map[string]func(string) []event{"lines": jsonLines}
	}
	var out []Reader
	for key, normal := range keys {
		for cutting, cut := range cuts {
			for style, collect := range collectors(f.Name, stream) {
				out = append(out, Reader{strings.Join([]string{f.Name, key, cutting, style}, ", "), func(body string) []Call {
					events := normal(cut(strings.TrimPrefix(body, "\ufeff")))
					return slices.DeleteFunc(collect(events), func(c Call) bool { return c.Name == "" || c.Name == "null" })
				}})
			}
		}
	}
	return out
}

// typed returns what a typed client reads up to its first error. One that joins
// deltas throws away what it has then.
func (f Format) typed(events []event) []event {
	for i, e := range events {
		switch {
		case strings.TrimSpace(e.data) == "[DONE]" && (f.Name == "chat" || f.Name == "responses"):
			return events[:i]
		case f.fits(e.data):
		case f.Name == "chat" || f.Name == "anthropic":
			return nil
		default:
			return events[:i]
		}
	}
	return events
}

// exact returns the events with one member for each key that clients look at,
// without those that differ from such a key in case, and without those that
// cannot hold what they should.
func (f Format) exact(events []event, first bool) (out []event) {
	for _, e := range events {
		n := parse(e.data)
		n.thin(first, known)
		n.prune(f.holders)
		out = append(out, event{e.name, n.String()})
	}
	return out
}

// prune removes members and elements that are of another kind than the one that
// leads to a call, as a client takes them for absent.
func (n *node) prune(holders map[string]byte) {
	n.members = slices.DeleteFunc(n.members, func(m member) bool {
		open, ok := holders[unquote(m.key)]
		return ok && m.value.open != open
	})
	for _, m := range n.members {
		switch open := holders[unquote(m.key)]; open {
		case '[':
			m.value.items = slices.DeleteFunc(m.value.items, func(v *node) bool { return v.open != '{' })
			for _, v := range m.value.items {
				v.prune(holders)
			}
		case '{':
			m.value.prune(holders)
		}
	}
}

// known are the keys that clients look at.
var known = strings.Fields(`id object model choices index message delta role content tool_calls function_call type function name arguments finish_reason
	content_block partial_json input stop_reason response item item_id output_index output call_id status candidates parts text functionCall args done data`)

// thin leaves one member of each key: the first or the last one. A key that differs from
// one of keys in case goes, because an exact reader does not look at it. The keys of
// arguments are the tool's, and all of them stay.
func (n *node) thin(first bool, keys []string) {
	var kept []member
	for _, m := range n.members {
		key := unquote(m.key)
		if slices.ContainsFunc(keys, func(k string) bool { return k != key && strings.EqualFold(k, key) }) {
			continue
		}
		at := slices.IndexFunc(kept, func(k member) bool { return unquote(k.key) == key })
		switch {
		case at < 0:
			kept = append(kept, m)
		case !first:
			kept[at] = m
		}
	}
	n.members = kept
	for _, m := range n.members {
		below := keys
		if key := unquote(m.key); key == "input" || key == "args" || key == "arguments" {
			below = nil
		}
		m.value.thin(first, below)
	}
	for _, item := range n.items {
		item.thin(first, keys)
	}
}

// whatwg cuts a stream as the HTML standard's chapter on server-sent events
// has it: a line ends with LF, CRLF or CR. Clients take the rest at the end
// for an event, too.
func whatwg(body string) []event {
	return serverSent(strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\r", "\n"))
}

// lineFeed cuts a stream at LF; a CR before it belongs to the line end.
func lineFeed(body string) []event { return serverSent(strings.ReplaceAll(body, "\r\n", "\n")) }

// trimmed cuts a stream at LF, and skips white space in front of data, as
// go-openai does.
func trimmed(body string) []event {
	lines := strings.Split(body, "\n")
	for i, line := range lines {
		if data := strings.TrimLeft(line, " \t\r\v\f"); strings.HasPrefix(data, "data:") {
			lines[i] = data
		}
	}
	return lineFeed(strings.Join(lines, "\n"))
}

// serverSent reads events from lines that end with LF. Data in several lines is joined
// with line feeds; an event without data does not count.
func serverSent(body string) []event {
	var out []event
	var e event
	some := false
	flush := func() {
		if some {
			out = append(out, e)
		}
		e, some = event{}, false
	}
	for line := range strings.SplitSeq(body, "\n") {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			flush()
		case field == "event":
			e.name = value
		case field == "data" && some:
			e.data += "\n" + value
		case field == "data":
			e.data, some = value, true
		}
	}
	flush()
	return out
}

// jsonLines reads an event from each line that is not blank.
func jsonLines(body string) []event {
	var out []event
	for line := range strings.SplitSeq(body, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, event{"", line})
		}
	}
	return out
}

// text is the text of any JSON value, as a lenient client takes it.
type text string

// UnmarshalJSON takes a string's content, and the JSON text of any other value.
func (t *text) UnmarshalJSON(b []byte) error {
	*t = text(b)
	if b[0] == '"' {
		*t = text(unquote(string(b)))
	}
	return nil
}

// unquote returns the text that a JSON string stands for, "" if it is not a string.
func unquote(raw string) string {
	var s string
	_ = json.Unmarshal([]byte(raw), &s)
	return s
}

// fits reports whether a typed client can decode data.
func fits[T any](data string) bool {
	_, ok := decode[T](data)
	return ok
}

// decode decodes data as a typed client does. v is what was decoded before an error.
func decode[T any](data string) (v T, ok bool) {
	return v, json.Unmarshal([]byte(data), &v) == nil
}
