package calltext

import "strings"

// Code follows the code of Markdown through a text: blocks between fences, and code
// between backticks on a line. The zero value is text.
type Code struct {
	fence  int // length of the fence of the block; 0 outside
	inline int // number of backticks around the code; 0 outside
}

// In reports whether the text is code.
func (c *Code) In() bool { return c.fence > 0 || c.inline > 0 }

// InBlock reports whether the text is in a block.
func (c *Code) InBlock() bool { return c.fence > 0 }

// Run reads a run of n backticks. begins means that its line has only white space before it,
// so that it may be a fence. A block ends at a fence that is not shorter.
func (c *Code) Run(n int, begins bool) {
	switch {
	case c.fence > 0 && begins && n >= c.fence:
		c.fence = 0
	case c.fence > 0:
	case n >= 3 && begins:
		c.fence = n
	case c.inline == n:
		c.inline = 0
	case c.inline == 0:
		c.inline = n
	}
}

// Break reads the end of a line, which ends code between backticks.
func (c *Code) Break() { c.inline = 0 }

// Backticks returns the number of backticks that a text begins with.
func Backticks(text string) int { return len(text) - len(strings.TrimLeft(text, "`")) }
