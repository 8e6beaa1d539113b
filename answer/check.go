package answer

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/run"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
)

// Codes of issues that no schema keyword found; see the package comment.
const (
	codeEmpty        = "empty"
	codeTruncated    = "truncated"
	codeDuplicateKey = "duplicate_key"
	codeDecode       = "decode"
	codeCheck        = "check"
)

// checker validates texts. It is safe for concurrent use.
type checker struct {
	o      Options
	schema *schema.Schema // nil: the text need not be JSON
	mended *mend.Schema   // the same, for mend
}

func newChecker(o Options) *checker {
	c := &checker{o: o}
	if o.Schema != nil {
		c.schema, _ = schema.Compile(o.Schema, schema.Options{Formats: o.Formats}) // Validate has seen that it compiles
		c.mended = mend.ReadSchema(o.Schema)
	}
	return c
}

// judged is what is known about one text.
type judged struct {
	text    string // as it is returned: repaired
	changes []middleware.Change
	issues  []middleware.Issue
}

// text validates a text. The error is the check's that could not decide, or
// that of ctx. whole is false for a text that was cut off.
func (c *checker) text(ctx context.Context, text string, whole bool) (judged, error) {
	j := judged{text: text}
	switch {
	case !whole:
		j.issues = issue(codeTruncated, "the answer was cut off, because it reached its length limit")
	case strings.TrimSpace(text) == "":
		j.issues = issue(codeEmpty, "there is no text")
	case c.schema != nil:
		j = c.repaired(text, c.json(text))
	}
	if len(j.issues) > 0 || c.o.Check == nil {
		return j, nil
	}
	issues, err := run.Isolated(ctx, c.o.CheckTimeout, func(ctx context.Context) ([]middleware.Issue, error) {
		return c.o.Check(ctx, j.text)
	})
	if len(issues) > 0 {
		j = judged{text: text, issues: slices.Clone(issues[:min(len(issues), schema.MaxIssues)])}
		for i := range j.issues {
			j.issues[i].Code = cmp.Or(j.issues[i].Code, codeCheck)
		}
	}
	return j, err
}

// json returns what is wrong with a text that has to be JSON.
func (c *checker) json(text string) []middleware.Issue {
	doc, err := rawjson.Parse(text, rawjson.Limits{})
	if err != nil {
		return []middleware.Issue{schema.Unreadable(err)}
	}
	if issues := schema.Duplicates(doc, codeDuplicateKey); len(issues) > 0 {
		return issues
	}
	return c.schema.Validate(doc.Root())
}

// repaired returns text as it is if it is valid, or what is certain to be meant
// by it. What stands in the only code fence of a text is meant, whatever
// stands around it.
func (c *checker) repaired(text string, issues []middleware.Issue) judged {
	if len(issues) == 0 {
		return judged{text: text, issues: issues}
	}
	if fixed, changes, ok := c.mend(text, issues); ok {
		return judged{text: strings.TrimSpace(fixed), changes: changes}
	}
	inner, ok := fenced(text)
	if !ok || !slices.Contains(c.o.Mend, mend.Syntax) {
		return judged{text: text, issues: issues}
	}
	j := judged{text: inner, changes: []middleware.Change{{By: "answer.fence", Before: text, After: inner}}}
	if j.issues = c.json(inner); len(j.issues) == 0 {
		return j
	}
	if fixed, changes, ok := c.mend(inner, j.issues); ok {
		return judged{text: strings.TrimSpace(fixed), changes: append(j.changes, changes...)}
	}
	return judged{text: text, issues: j.issues} // say what is wrong inside of the fence
}

func (c *checker) mend(text string, issues []middleware.Issue) (string, []middleware.Change, bool) {
	return mend.Arguments(mend.Input{
		Tool:      middleware.Tool{Name: "answer", Parameters: c.o.Schema},
		Arguments: text, Issues: issues, Rules: c.o.Mend, Schema: c.mended, Validate: c.json,
	})
}

// fenced returns what stands between the only two lines of text that begin with
// a code fence.
func fenced(text string) (string, bool) {
	const mark = "```"
	var at []int
	for start := 0; start < len(text) && len(at) < 3; {
		line := strings.TrimLeft(text[start:], " \t")
		if strings.HasPrefix(line, mark) {
			at = append(at, len(text)-len(line))
		}
		next := strings.IndexByte(text[start:], '\n')
		if next < 0 {
			break
		}
		start += next + 1
	}
	if len(at) != 2 {
		return "", false
	}
	_, inner, ok := strings.Cut(text[at[0]:at[1]], "\n")
	return strings.TrimSpace(inner), ok
}

func issue(code, message string) []middleware.Issue {
	return []middleware.Issue{{Code: code, Message: message}}
}
