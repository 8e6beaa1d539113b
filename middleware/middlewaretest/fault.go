package middlewaretest

import (
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// Fault names a mistake that real models make. The faults are:
//
// In the values of the arguments, if the tool's schema makes the fault
// possible: missing required key, misnamed key, null for optional, empty for
// optional, number as text, boolean as text, JSON text for array, JSON text
// for object, scalar for array, wrong enum value, fraction for integer,
// undeclared key.
//
// In the text of the arguments, at most one in a call: duplicate key,
// truncated (the last call is cut off, and the finish reason is length),
// unterminated, Python dict, comment, trailing comma, arithmetic, bare word,
// two objects, empty arguments, null arguments, array or string for object,
// deep nesting, huge exponent, invalid UTF-8.
//
// In the name of a call, at most one: invented name, control token in name,
// functions. prefix, other letter case.
//
// In the id of a call, at most one: missing id, blank id, duplicate id in
// turn, id of an earlier turn.
//
// In a whole response: transient (a ModelError with status 429 or 500), no
// response (and no error), text for call, refusal (a ModelError that wraps
// middleware.ErrInvalidToolCall, with Output), lost sibling (after a batch
// that failed in part, only the failed calls are repeated), repeated call.
type Fault string

// DefaultRates returns the rates that apply if FaultOptions.Rates is nil:
// the share of the calls, or of the responses, in which a fault is possible.
// The map contains every fault. The caller owns it.
//
// Of 161,216 recorded calls, 1.3% have wrong values, 1.2% have unknown
// names, and 1.1% have text that is not JSON. The default rates keep the
// order of these groups, and of the faults within a group. They are 5 to 50
// times higher, and the rarest faults are raised most, so that a few
// thousand calls contain every fault.
func DefaultRates() map[Fault]float64 {
	rates := map[Fault]float64{}
	addRates(rates, valueFaults)
	addRates(rates, textFaults)
	addRates(rates, nameFaults)
	addRates(rates, idFaults)
	addRates(rates, answerFaults)
	return rates
}

// addRates adds the default rates of one table.
func addRates[F any](rates map[Fault]float64, faults []entry[F]) {
	for _, e := range faults {
		rates[e.fault] = e.rate
	}
}

// entry is one fault, its default rate and how it is made. make reports whether
// there was room for it.
type entry[F any] struct {
	fault Fault
	rate  float64
	make  F
}

// The tables below are in the order in which the faults are drawn. The order is
// part of what a seed means.

// valueFaults change the value in place.
var valueFaults = []entry[func(*Faulty, *node) bool]{
	{"missing required key", 0.04, (*Faulty).dropKey},
	{"misnamed key", 0.03, (*Faulty).renameKey},
	{"null for optional", 0.04, func(f *Faulty, root *node) bool { return f.setOptional(root, &node{kind: 'n'}) }},
	{"empty for optional", 0.03, func(f *Faulty, root *node) bool {
		return f.setOptional(root, &node{kind: []byte{'{', '[', '"'}[f.rng.IntN(3)]})
	}},
	{"number as text", 0.01, func(f *Faulty, root *node) bool { return asText(f.pick(root, ofKind('0'))) }},
	{"boolean as text", 0.02, func(f *Faulty, root *node) bool { return asText(f.pick(root, ofKind('t'))) }},
	{"JSON text for array", 0.02, func(f *Faulty, root *node) bool { return asText(f.pick(root, below(root, '['))) }},
	{"JSON text for object", 0.01, func(f *Faulty, root *node) bool { return asText(f.pick(root, below(root, '{'))) }},
	{"scalar for array", 0.03, func(f *Faulty, root *node) bool {
		return rewrite(f.pick(root, below(root, '[')), '"', "just this one") // words, which cannot be read as JSON
	}},
	{"wrong enum value", 0.03, func(f *Faulty, root *node) bool {
		return rewrite(f.pick(root, func(n *node) bool { return n.enum }), '"', "none of these")
	}},
	{"fraction for integer", 0.02, func(f *Faulty, root *node) bool {
		n := f.pick(root, func(n *node) bool { return n.kind == '0' && !n.enum && typeOf(n.schema) == "integer" })
		return n != nil && rewrite(n, '0', n.text+".5")
	}},
	{"undeclared key", 0.05, func(f *Faulty, root *node) bool {
		n := f.pick(root, ofKind('{'))
		n.kids = append(n.kids, &node{key: undeclared(n, "note"), kind: '"', text: "as asked"})
		return true
	}},
}

const truncated Fault = "truncated"

// textFaults return the text of the arguments.
var textFaults = []entry[func(*Faulty, *node) (string, bool)]{
	{"duplicate key", 0.005, inPlace((*Faulty).repeatKey)},
	{truncated, 0.01, func(f *Faulty, root *node) (string, bool) { // the caller sets the finish reason
		text := root.String()
		return text[:1+f.rng.IntN(len(text)-1)], true
	}},
	{"unterminated", 0.01, asWritten(func(s string) string { return s[:len(s)-1] })},
	{"Python dict", 0.02, func(_ *Faulty, root *node) (string, bool) {
		var b strings.Builder
		root.render(&b, true)
		return b.String(), len(root.kids) > 0
	}},
	{"comment", 0.005, asWritten(func(s string) string { return "{ // as asked\n" + s[1:] })},
	{"trailing comma", 0.005, func(_ *Faulty, root *node) (string, bool) {
		text := root.String()
		return text[:len(text)-1] + ",}", len(root.kids) > 0
	}},
	{"arithmetic", 0.01, inPlace(func(f *Faulty, root *node) bool {
		return rewrite(f.pick(root, ofKind('0')), 'x', []string{"1/6", "2 * 3.14159"}[f.rng.IntN(2)])
	})},
	{"bare word", 0.01, inPlace(func(f *Faulty, root *node) bool { // not true, false or null
		return rewrite(f.pick(root, ofKind('"')), 'x', "unknown")
	})},
	{"two objects", 0.005, asWritten(func(s string) string { return s + "\n" + s })},
	{"empty arguments", 0.01, asWritten(func(string) string { return "" })},
	{"null arguments", 0.005, asWritten(func(string) string { return "null" })},
	{"array or string for object", 0.005, func(f *Faulty, root *node) (string, bool) {
		if f.rng.IntN(2) == 0 {
			return "[" + root.String() + "]", true
		}
		return quoted(root.String()), true
	}},
	{"deep nesting", 0.002, inPlace((*Faulty).nestDeeply)},
	{"huge exponent", 0.005, inPlace(func(f *Faulty, root *node) bool {
		return rewrite(f.pick(root, ofKind('0')), 'x', "1e3000000")
	})},
	{"invalid UTF-8", 0.005, inPlace((*Faulty).cutLetter)},
}

// nameFaults make a wrong name of a tool's name.
var nameFaults = []entry[func(string) string]{
	{"invented name", 0.02, func(string) string { return "search_the_web" }},
	{"control token in name", 0.02, func(s string) string { return s + "<|channel|>commentary" }},
	{"functions. prefix", 0.005, func(s string) string { return "functions." + s }},
	{"other letter case", 0.01, otherCase},
}

// idFaults return an id, given the ids of the calls before in the same answer
// and those of earlier turns.
var idFaults = []entry[func(f *Faulty, before, earlier []string) (string, bool)]{
	{"missing id", 0.03, func(*Faulty, []string, []string) (string, bool) { return "", true }},
	{"blank id", 0.005, func(*Faulty, []string, []string) (string, bool) { return " \t", true }},
	{"duplicate id in turn", 0.005, func(f *Faulty, before, _ []string) (string, bool) { return f.oneOf(before) }},
	{"id of an earlier turn", 0.01, func(f *Faulty, _, earlier []string) (string, bool) { return f.oneOf(earlier) }},
}

const (
	transient    Fault = "transient"
	noResponse   Fault = "no response"
	textForCall  Fault = "text for call"
	refusal      Fault = "refusal"
	lostSibling  Fault = "lost sibling"
	repeatedCall Fault = "repeated call"
)

// answerFaults are made by Faulty.answer and Faulty.calls themselves.
var answerFaults = []entry[struct{}]{
	{fault: transient, rate: 0.02}, {fault: noResponse, rate: 0.005}, {fault: textForCall, rate: 0.02},
	{fault: refusal, rate: 0.01}, {fault: lostSibling, rate: 0.2}, {fault: repeatedCall, rate: 0.02},
}

// inPlace makes a fault of the text of a fault that changes one value.
func inPlace(change func(*Faulty, *node) bool) func(*Faulty, *node) (string, bool) {
	return func(f *Faulty, root *node) (string, bool) {
		ok := change(f, root)
		return root.String(), ok
	}
}

// asWritten makes a fault of the text of a function of the valid text.
func asWritten(change func(string) string) func(*Faulty, *node) (string, bool) {
	return func(_ *Faulty, root *node) (string, bool) { return change(root.String()), true }
}

// otherCase returns s in capital letters, or in small ones if it is in capital
// letters already. A name without letters stays.
func otherCase(s string) string {
	if upper := strings.ToUpper(s); upper != s {
		return upper
	}
	return strings.ToLower(s)
}

// idsOf returns the ids of calls.
func idsOf(calls []middleware.ToolCall) []string {
	ids := make([]string, len(calls))
	for i, c := range calls {
		ids[i] = c.ID
	}
	return ids
}
