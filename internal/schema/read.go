package schema

import (
	"errors"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Unreadable returns the issue for an error of rawjson.Parse, whose code it has.
func Unreadable(err error) middleware.Issue {
	code := rawjson.Syntax
	if e := (*rawjson.Error)(nil); errors.As(err, &e) {
		code = e.Code
	}
	return middleware.Issue{Code: string(code), Message: err.Error()}
}

// Duplicates returns an issue of the given code for each member of doc that
// repeats a key of its object, at most MaxIssues.
func Duplicates(doc *rawjson.Doc, code string) []middleware.Issue {
	var issues []middleware.Issue
	var pointers rawjson.Pointers
	for _, dup := range doc.Duplicates() {
		if len(issues) == MaxIssues {
			break
		}
		issues = append(issues, middleware.Issue{Code: code, Pointer: pointers.Of(dup), Message: "duplicate key in one object; send it once"})
	}
	return issues
}
