package calltext

import "strings"

// Code follows the code and the quotations of Markdown and HTML through a text: blocks between
// fences or tags, and code between backticks on a line. The zero value is text.
type Code struct {
	fence  int    // length of the fence of the block; 0 outside
	tilde  bool   // the fence is of tildes
	inline int    // number of backticks around the code; 0 outside
	closer string // the tag that ends the block; "" outside
}

// Blocks are the marks of HTML that begin text which is quoted, and the marks that end it, in lower
// case. White space or > follows the mark of an element.
var Blocks = []struct{ Open, Close string }{
	{"<pre", "</pre>"}, {"<code", "</code>"}, {"<blockquote", "</blockquote>"}, {"<samp", "</samp>"}, {"<xmp", "</xmp>"}, {"<q", "</q>"}, {"<!--", "-->"},
}

// Quotations are the quotation marks that have a direction, and the marks that may end each.
var Quotations = map[rune]string{'“': "”“", '„': "“”", '‘': "’", '‚': "‘’", '«': "»", '‹': "›", '「': "」", '『': "』", '《': "》", '〈': "〉", '〝': "〞〟", '｢': "｣"}

// In reports whether the text is code or a quotation.
func (c *Code) In() bool { return c.fence > 0 || c.inline > 0 || c.closer != "" }

// InBlock reports whether the text is in a block.
func (c *Code) InBlock() bool { return c.fence > 0 }

// Run reads a run of n backticks. begins means that its line has only white space before it,
// so that it may be a fence. A block ends at a fence that is not shorter.
func (c *Code) Run(n int, begins bool) {
	switch {
	case c.fence > 0 && !c.tilde && begins && n >= c.fence:
		c.fence = 0
	case c.fence > 0 || c.closer != "":
	case n >= 3 && begins:
		c.fence, c.tilde = n, false
	case c.inline == n:
		c.inline = 0
	case c.inline == 0:
		c.inline = n
	}
}

// Tildes reads a run of n tildes at the beginning of a line, which is a fence if n is at least 3.
func (c *Code) Tildes(n int) {
	switch {
	case c.fence > 0 && c.tilde && n >= c.fence:
		c.fence = 0
	case n >= 3 && !c.In():
		c.fence, c.tilde = n, true
	}
}

// Tag reads the mark of HTML that text begins with, if it begins or ends a block. It returns the length of
// the mark, and Partial if more text is needed.
func (c *Code) Tag(text string) (int, State) {
	same := func(mark string) State {
		switch n := min(len(text), len(mark)); {
		case !strings.EqualFold(text[:n], mark[:n]):
			return None
		case n < len(mark):
			return Partial
		}
		return Complete
	}
	if c.closer != "" {
		got := same(c.closer)
		if got != Complete {
			return 0, got
		}
		n := len(c.closer)
		c.closer = ""
		return n, Complete
	}
	if c.In() {
		return 0, None
	}
	for _, b := range Blocks {
		n := len(b.Open)
		switch got := same(b.Open); {
		case got == Complete && b.Open != "<!--" && len(text) == n, got == Partial:
			return 0, Partial
		case got == Complete && (b.Open == "<!--" || strings.IndexByte("> \t\r\n", text[n]) >= 0):
			c.closer = b.Close
			return n, Complete
		}
	}
	return 0, None
}

// Break reads the end of a line, which ends code between backticks.
func (c *Code) Break() { c.inline = 0 }

// Backticks returns the number of backticks that a text begins with.
func Backticks(text string) int { return len(text) - len(strings.TrimLeft(text, "`")) }
