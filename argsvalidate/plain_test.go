package argsvalidate_test

import (
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/mend"
)

// unmended returns o without local fixes unless it names some: most tests are
// about what comes after them.
func unmended(o argsvalidate.Options) argsvalidate.Options {
	if o.Mend == nil {
		o.Mend = mend.Off()
	}
	return o
}
