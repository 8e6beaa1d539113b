package rescue

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/toolmend/toolmend/internal/calltext"
)

// scanner finds the calls in a text. The text may grow between two runs. Each byte is read a
// bounded number of times: a reader decides near its opener that there is no call, and the
// text after a call's opener is read once.
type scanner struct {
	source
	table *table

	pos        int           // everything before is decided
	retryAt    int           // no reader is asked again before the text has this length
	undecided  bool          // the text at pos may become a call
	safeFrom   int           // no text before this index can be a part of a call, although pos is before it
	named      bool          // the text at pos names an offered tool
	pieces     []piece       // in order
	fault      *fault        // the first malformed call
	strayClose bool          // there is a closing mark outside of a call
	begin      int           // of the answer, after the reasoning
	blank      bool          // the answer up to pos is white space
	everywhere bool          // quoted calls and reasoning are read, and faults are passed over
	faults     int           // that were passed over
	think      string        // the mark that ends the reasoning at pos; "" outside
	inside     calltext.Code // the code at pos

	lined, lineBegin, lineFirst int    // see line: the work of lines up to lined is done
	quote                       string // the marks that end the quotation at lined; "" outside
	quoteAt                     int    // the index after the mark that began it
	cited, afterBlank           bool   // the paragraph of the line began with >; the line before is blank

	unknownMark int     // where markup that was not read names an offered tool; -1: nowhere
	thoughts    []piece // calls that end a reasoning
}

// piece is a part of the text that is read as calls. One without calls is a call that the length limit cut,
// or an answer of Harmony or Kimi K3 without calls.
type piece struct {
	reading
	start  int
	markup Markup
}

// fault is a malformed call.
type fault struct {
	issue
	start  int
	inner  int // the index after the opener
	markup Markup
}

// newScanner returns a scanner of an empty text.
func newScanner(t *table, tools *tools) *scanner {
	return &scanner{source: source{tools: tools}, table: t, blank: true, unknownMark: -1}
}

// run reads on until the end of the text, or to a place that cannot be decided
// yet.
func (s *scanner) run() {
	if s.retryAt > len(s.text) && !s.final {
		return
	}
	s.undecided, s.named, s.safeFrom, s.retryAt = false, false, 0, 0
	for s.pos < len(s.text) && !s.undecided {
		c := s.text[s.pos]
		if !s.table.stop[c] && !s.blank {
			s.pos++
			continue
		}
		if moved := !s.everywhere && s.thought() || s.call() || !s.everywhere && s.code(); !moved && !s.undecided {
			s.blank = s.blank && strings.IndexByte(white, c) >= 0
			s.pos++
		}
	}
}

// thought handles the marks of reasoning. A closing mark makes everything
// before it reasoning.
func (s *scanner) thought() bool {
	for _, p := range thinking {
		if s.think == p.close || !s.inside.In() {
			switch s.matchLiteral(s.pos, p.close) {
			case complete:
				s.endThought(p.close)
				return true
			case partial:
				s.undecided = !s.final
			}
		}
		if s.blank && s.think == "" {
			switch s.matchLiteral(s.pos, p.open) {
			case complete:
				s.think, s.blank = p.close, false
				s.pos += len(p.open)
				return true
			case partial:
				s.undecided = !s.final
			}
		}
	}
	return false
}

// endThought makes everything up to pos reasoning. Calls at its end are kept: they count if no
// answer follows.
func (s *scanner) endThought(mark string) {
	s.thoughts = nil
	if n := len(s.pieces); n > 0 && s.fault == nil && s.space(s.pieces[n-1].end) == s.pos {
		s.thoughts = s.pieces
	}
	s.pos += len(mark)
	s.endQuotes()
	s.pieces, s.fault, s.strayClose, s.think, s.inside, s.unknownMark = nil, nil, false, "", calltext.Code{}, -1
	s.begin, s.blank = s.pos, true
}

// call reads a call at pos, and reports whether it moved.
func (s *scanner) call() bool {
	if s.inside.In() {
		if len(s.pieces) > 0 { // the code may be the rest of a value that was closed too early
			s.noteStrayClose()
		}
		return false
	}
	next := s.next()
	if !s.blank && next < 0x80 && !isName(next) && !s.table.next[next] {
		return false // no markup begins like this
	}
	best := s.bestReading(next)
	switch {
	case best.quoted:
	case best.match != none:
		return s.apply(best)
	case best.begins:
		s.undecided = true
	default:
		s.noteStrayClose()
		s.noteUnknownMarkup()
	}
	return false
}

// next returns the byte after pos, or '/' at the end of the text, where a closing mark may follow.
func (s *scanner) next() byte {
	if s.pos+1 < len(s.text) {
		return s.text[s.pos+1]
	}
	return '/'
}

// opened is the best reading of the forms whose openers are at a place.
type opened struct {
	reading
	by     opener
	begins bool // the text ends inside an opener
	quoted bool // an opener is quoted, so nothing is read
}

// bestReading asks the forms whose openers are at pos, before the byte next. Forms without
// marks are asked at the beginning of the answer only.
func (s *scanner) bestReading(next byte) (best opened) {
	c := s.text[s.pos]
	for n, openers := range [][]opener{s.table.at[c], s.table.first[c], s.table.named} {
		if n > 0 && (!s.blank || n == 2 && !isName(c)) {
			break
		}
		for _, o := range openers {
			if len(o.mark) > 1 && s.pos+1 < len(s.text) && next != o.mark[1] {
				continue
			}
			switch s.matchLiteral(s.pos, o.mark) {
			case partial:
				best.begins = best.begins || !s.final
			case complete:
				if !s.everywhere && s.quoted() {
					return opened{quoted: true}
				}
				s.compare(o, &best)
			}
		}
	}
	return best
}

// compare asks the form of an opener at pos, and keeps its reading if it is the best.
func (s *scanner) compare(o opener, best *opened) {
	got := o.readAt(&s.source, s.pos)
	switch {
	case len(o.models) > 0 && got.match != none && (!s.knows(o.form) || s.tools.wantsJSON()):
		if got.match == complete && s.final && !s.tools.wantsJSON() {
			s.unknownMark = s.pos
		}
	case rank[got.match] > rank[best.match]:
		got.named = got.named || best.named
		best.reading, best.by = got, o
	}
}

// rank orders what several forms match at one place.
var rank = [...]int{none: 0, malformed: 1, partial: 2, complete: 3}

// apply records the reading at pos and moves past it, or waits for more text.
func (s *scanner) apply(best opened) bool {
	inner := s.pos + len(best.by.mark)
	switch {
	case best.match == complete:
		for n, v := s.matchAny(s.space(best.end), tails...); v == complete; n, v = s.matchAny(s.space(best.end), tails...) {
			best.end = s.space(best.end) + len(tails[n])
		}
		s.pieces = append(s.pieces, piece{best.reading, s.pos, best.by.markup})
		s.pos = best.end
		s.endQuotes()
	case best.match == malformed:
		s.fail(fault{best.issue, s.pos, inner, best.by.markup})
	case !s.final:
		s.undecided, s.named = true, best.named
		s.retryLater(len(s.text))
		return true // still at the beginning of the answer, if it was
	case s.cut && len(s.pieces) > 0:
		s.pieces[len(s.pieces)-1].truncated = true
		s.pieces = append(s.pieces, piece{reading{end: len(s.text)}, s.pos, best.by.markup})
		s.skipToEnd()
	default:
		s.fail(fault{s.unfinished(), s.pos, inner, best.by.markup})
	}
	s.blank = false
	return true
}

// knows reports whether calls without marks are read: the form was chosen, or the
// model is known to write it.
func (s *scanner) knows(f *form) bool {
	return s.table.chosen[f.markup] || slices.ContainsFunc(f.models, func(word string) bool { return strings.Contains(s.tools.model, word) })
}

// Bounds of markup that is not known.
const (
	maxMark  = 64  // bytes of a mark
	maxReach = 128 // bytes from a mark to the name of a tool
)

// callWords are in the marks of calls of every family.
var callWords = []string{"tool", "func", "call", "invoke", "action", "plugin"}

// noteUnknownMarkup notes markup that no form has read: a tag or a token with a word of
// calls, if it names an offered tool. A tag that is the name of a tool counts too, if the tag
// of a declared parameter follows.
func (s *scanner) noteUnknownMarkup() {
	if c := s.text[s.pos]; c != '<' && c != '[' || s.unknownMark >= 0 {
		return
	}
	tag, v := s.tagAt()
	if v == complete {
		after := s.pos + len(tag) + 2
		tool, isTool := s.tools.byName[tag]
		switch inner := strings.ToLower(tag); {
		case isTool:
			v = s.parameterAt(after, tool.Name)
		case !slices.ContainsFunc(callWords, func(word string) bool { return strings.Contains(inner, word) }):
			v = none
		default:
			if name := strings.IndexAny(inner, " ="); name >= 0 {
				after = s.pos + 1 + name
			}
			v = s.toolNearby(after)
		}
		if v != none && s.quoted() {
			v = none
		}
	}
	switch v {
	case complete:
		s.unknownMark = s.pos
	case partial:
		s.undecided = !s.final && blank(s.text[s.begin:s.pos]) // the model can be re-asked before any text is shown
	}
}

// tagAt returns what is between < and > at pos, or between [ and ], on one line. A tag in
// square brackets has no lower-case letters.
func (s *scanner) tagAt() (string, match) {
	begin := s.pos + 1
	window := s.text[begin:min(len(s.text), begin+maxMark)]
	switch end := strings.IndexAny(window, ">]\n"); {
	case strings.HasPrefix(window, " "), strings.HasPrefix(window, "/"), end < 0 && (len(window) == maxMark || strings.HasPrefix(window, "=")):
		return "", none
	case end < 0:
		return "", partial
	case end == 0 || window[end] == '\n' || s.text[s.pos] == '[' && strings.ContainsFunc(window[:end], unicode.IsLower):
		return "", none
	default:
		return window[:end], complete
	}
}

// parameterAt matches the tag of a parameter that the tool declares, after white space.
func (s *scanner) parameterAt(i int, tool string) match {
	if i = s.space(i); i == len(s.text) {
		return partial
	}
	if s.text[i] != '<' {
		return none
	}
	key, _, v := s.findStop(i+1, ">")
	if v != partial && !s.tools.declares(tool, key) {
		return none
	}
	return v
}

// toolNearby matches the name of an offered tool, with nothing before it but punctuation and
// aroundNames.
func (s *scanner) toolNearby(begin int) match {
	for i := begin; i < min(len(s.text), begin+maxReach); i++ {
		if !isName(s.text[i]) || s.text[i] >= 0x80 {
			continue
		}
		from := i
		if i = s.identifier(i); i == len(s.text) && !s.final {
			break
		}
		word := clean(strings.Trim(s.text[from:i], ".:/-"))
		if _, ok := s.tools.find(word); ok {
			return complete
		}
		if _, known := envelope[word]; word != "" && !known && !slices.Contains(aroundNames, word) {
			return none
		}
	}
	if len(s.text) < begin+maxReach {
		return partial
	}
	return none
}

// aroundNames are words that may come between the mark of a call and the name of its tool.
var aroundNames = []string{"function", "functions", "tool", "tools", "call", "tool_calls", "json", "to", "recipient", "invoke", "default_api"}

// retryLater puts off the next attempt to read a long text until it has doubled, so that the
// work stays linear.
func (s *scanner) retryLater(end int) {
	if n := end - s.pos; n > maxName {
		s.retryAt = s.pos + 2*n
	}
}

// fail records a malformed call. The text after it is not read, because it may be a part of
// that call.
func (s *scanner) fail(f fault) {
	if s.everywhere && s.faults < maxCalls {
		s.faults++
		s.pos = max(f.inner, s.pos+1)
		return
	}
	if s.fault == nil {
		s.fault = &f
	}
	s.skipToEnd()
}

// skipToEnd moves to the end of a reasoning, or else to the end of the text.
func (s *scanner) skipToEnd() {
	s.inside = calltext.Code{}
	for ; s.pos < len(s.text); s.pos++ {
		if c := s.text[s.pos]; c != '<' && c != '[' {
			continue
		}
		for _, p := range thinking {
			if strings.HasPrefix(s.text[s.pos:], p.close) {
				return
			}
		}
	}
}

// noteStrayClose notes a closing mark outside of a call.
func (s *scanner) noteStrayClose() {
	if s.pos+1 < len(s.text) && strings.IndexByte("/|<", s.text[s.pos+1]) < 0 {
		return
	}
	for _, c := range closers {
		s.strayClose = s.strayClose || strings.HasPrefix(s.text[s.pos:], c)
	}
}

// unfinished is the issue of a text that ends inside a call.
func (s *scanner) unfinished() issue {
	if s.cut {
		return issue{"truncated", "the message reached the length limit inside the call"}
	}
	return issue{"incomplete", "the message ends inside the call"}
}

// code follows code and quotations in Markdown and HTML, and reports whether it moved.
func (s *scanner) code() bool {
	c := s.text[s.pos]
	switch c {
	case '\n':
		s.inside.Break()
		return false
	case '<', '-':
		n, v := s.inside.Tag(s.text[s.pos:])
		s.undecided = s.undecided || v == partial && !s.final
		s.pos += n
		return n > 0
	case '`', '~':
	default:
		return false
	}
	end := len(s.text) - len(strings.TrimLeft(s.text[s.pos:], string(c)))
	_, first := s.line()
	begins := first == s.pos
	if end == len(s.text) && !s.final {
		if s.undecided = true; !begins {
			s.safeFrom = end
		}
		s.retryLater(end)
		return false
	}
	if c == '`' {
		s.inside.Run(end-s.pos, begins)
	} else if begins {
		s.inside.Tildes(end - s.pos)
	}
	s.pos, s.blank = end, false
	return true
}

// line returns where the line of pos begins, and its first character other than white
// space: pos if there is none before it. It follows quotations up to pos.
func (s *scanner) line() (begin, first int) {
	from := s.lined
	for i, r := range s.text[from:s.pos] {
		at := from + i
		switch {
		case r == '\n':
			s.afterBlank = s.lineFirst == at
			s.cited = !s.afterBlank && (s.cited || s.text[s.lineFirst] == '>')
			if s.lineBegin, s.lineFirst = at+1, at+1; s.quote != "" && !blank(s.text[s.quoteAt:at]) {
				s.quote = ""
			}
		case r < 0x80:
			if s.lineFirst == at && strings.IndexByte(white, byte(r)) >= 0 {
				s.lineFirst++
			}
		case s.quote == "":
			s.quote, s.quoteAt = calltext.Quotations[r], at+len(string(r))
		case strings.ContainsRune(s.quote, r):
			s.quote = ""
		}
	}
	s.lined = s.pos
	return s.lineBegin, s.lineFirst
}

// endQuotes ends the quotations before pos: marks inside a call are values.
func (s *scanner) endQuotes() {
	s.line()
	s.quote, s.cited, s.afterBlank = "", false, false
}

// quoted reports whether the text at pos is quoted: by a mark before it, as a
// quotation in Markdown, or by its indent after a blank line.
func (s *scanner) quoted() bool {
	begin, first := s.line()
	if s.quote != "" || s.cited {
		return true
	}
	if first == s.pos {
		indent := s.text[begin:s.pos]
		return s.afterBlank && !s.blank && (strings.Contains(indent, "    ") || strings.Contains(indent, "\t"))
	}
	for _, mark := range []string{`"`, "'", "»", "＂"} {
		if strings.HasSuffix(s.text[first:s.pos], mark) {
			return true
		}
	}
	return s.text[first] == '>'
}

// findings are the calls in a text, or the reason why there is none.
type findings struct {
	pieces []piece
	fault  *fault
}

// maxCalls is the largest number of calls that are read in one text.
const maxCalls = 128

// finish reads to the end of a text that is complete.
func (s *scanner) finish() findings {
	s.final = true
	s.run()
	f := findings{s.pieces, s.fault}
	if s.think != "" && !f.end(s.text) {
		return findings{}
	}
	if len(f.pieces) == 0 && f.fault == nil && strings.TrimSpace(s.text[s.begin:]) == "" {
		f.pieces = s.thoughts
	}
	switch {
	case f.fault == nil && len(f.pieces) == 0 && s.unknownMark >= 0 && !s.introduced(s.unknownMark):
		f.fault = &fault{issue{"unread", "the markup of a call cannot be read"}, s.unknownMark, s.unknownMark, "text"}
		return f
	case f.fault != nil || len(f.pieces) == 0:
		return f
	}
	return s.certain(f)
}

// certain returns f, or a fault if the model may not have meant the calls.
func (s *scanner) certain(f findings) findings {
	for i, p := range f.pieces {
		f.pieces[i].calls = slices.DeleteFunc(p.calls, func(c call) bool { return c.name == noFunction && s.tools.byName[noFunction].Name == "" })
	}
	calls := len(callsOf(f.pieces))
	switch {
	case calls == 0:
		return findings{}
	case slices.ContainsFunc(f.pieces, func(p piece) bool { return p.markup != f.pieces[0].markup }):
		return f.doubt("ambiguous", "it mixes two markups")
	case len(s.thoughts) > 0 && !sameCalls(s.thoughts, f.pieces):
		return f.doubt("ambiguous", "the reasoning before it ends in another call")
	case s.strayClose:
		return f.doubt("ambiguous", "a closing mark is left over")
	case calls > maxCalls:
		return f.doubt("ambiguous", "it holds too many calls")
	case s.introduced(f.pieces[0].start):
		return f.doubt("uncertain", "the call may be an example")
	}
	return f
}

// sameCalls compares the calls of pieces, without white space.
func sameCalls(a, b []piece) bool {
	return slices.EqualFunc(callsOf(a), callsOf(b), func(a, b call) bool { return a.name == b.name && plain(a.arguments) == plain(b.arguments) })
}

// callsOf returns the calls of pieces.
func callsOf(pieces []piece) (all []call) {
	for _, p := range pieces {
		all = append(all, p.calls...)
	}
	return all
}

// end reports whether calls are the end of the text.
func (f findings) end(text string) bool {
	n := len(f.pieces)
	return f.fault == nil && n > 0 && blank(text[f.pieces[n-1].end:])
}

// doubt returns a fault at the first call.
func (f findings) doubt(code, what string) findings {
	p := f.pieces[0]
	return findings{fault: &fault{issue{code, what}, p.start, p.start, p.markup}}
}

// introduces matches words that introduce an example.
var introduces = regexp.MustCompile(`(?i)\b(examples?|e\.g|for instance|looks? like|such as|would (be|call|look|write)|syntax|placeholder)\b`)

// introduced reports whether the words before a call, on its line or on the line before,
// introduce an example.
func (s *scanner) introduced(at int) bool {
	before := strings.TrimRight(s.text[max(min(s.begin, at), at-maxName):at], " \t\r\n")
	return introduces.MatchString(before[strings.LastIndexByte(before, '\n')+1:])
}
