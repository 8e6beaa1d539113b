package rescue

import (
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/middleware"
)

// Forms returns the number of forms.
func Forms() int { return len(forms) }

// FormName returns the markup and the marks of a form.
func FormName(row int) string {
	f := &forms[row]
	return fmt.Sprint(row, " ", f.markup, " ", f.marks())
}

// ReadWithout returns the calls in a text, as they are read without one of the forms; -1 is
// none of them.
func ReadWithout(row int, req *middleware.Request, text string) (all []string) {
	t := newTable(nil)
	isRow := func(o opener) bool { return row >= 0 && o.form == &forms[row] }
	for c := range t.at {
		t.at[c], t.first[c] = slices.DeleteFunc(t.at[c], isRow), slices.DeleteFunc(t.first[c], isRow)
	}
	t.named = slices.DeleteFunc(t.named, isRow)
	s := newScanner(t, newTools(req))
	s.text = text
	for _, c := range callsOf(s.finish().pieces) {
		all = append(all, c.name+c.arguments)
	}
	return all
}
