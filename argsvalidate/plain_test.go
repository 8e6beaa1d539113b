package argsvalidate_test

import (
	"cmp"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/mend"
)

// unmended returns o without local fixes unless it names some: most tests are
// about what comes after them.
func unmended(o argsvalidate.Options) argsvalidate.Options {
	o.Mend = cmp.Or(o.Mend, mend.None)
	return o
}
