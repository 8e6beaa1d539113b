// Package lens writes neutral values back into the JSON that they came from. It
// is the engine of all wire formats.
//
// A format has two functions for each kind of thing, such as a tool or a call.
// One reads it from JSON. The other projects it onto members: the keys and the
// JSON texts that it has on the wire. There is no third function for an edit and
// no record of what was read. (The comparisons of package codec, SameRequest and
// the like, find out first whether anything changed at all.)
//
//	Raw (text of the Native) ── read ──▶ was ── project ──▶ members ┐
//	                                                                ├▶ the members that differ
//	                             now ─────── project ──▶ members ───┘   are set in Raw
//
// A value that a middleware changed is edited in its own text. What the format
// does not know, and the order and white space of what it knows, stay as they
// are. A value that came from elsewhere has no text of this format: it is written
// as a fresh object with the members of its projection. Storage makes no
// difference, because a Native keeps its text in JSON.
//
// For example, a tool is {"name": "weather", "x-origin": 7}, and a middleware
// gives it a description. Both projections have the name, so that only the
// description is set: {"name": "weather", "x-origin": 7,"description":"…"}.
// [Rewrite] does all of this for one value.
//
// The other files answer the questions that remain. write.go: where a member
// stands, and when an edit of it is not safe. align.go: where a value stood that
// still has its text. history.go: which messages make one element of the wire.
// memory.go: what keeps a request or an answer of which nothing changed from being
// read again.
package lens
