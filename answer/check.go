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
	schema *schema.Schema // nil if the text need not be JSON
	mended *mend.Schema   // the same schema, for repairs
}

func newChecker(o Options) *checker {
	c := &checker{o: o}
	if o.Schema != nil {
		c.schema, _ = schema.Compile(o.Schema, schema.Options{Formats: o.Formats}) // Validate has compiled it before
		c.mended = mend.ReadSchema(o.Schema)
	}
	return c
}

// checked is the result of validating one text.
type checked struct {
	text    string // the text that is returned, with its repairs
	changes []middleware.Change
	issues  []middleware.Issue
}

// text validates a text. It returns an error if Options.Check could not decide
// or ctx ended. whole is false if the text was cut off.
func (c *checker) text(ctx context.Context, text string, whole bool) (checked, error) {
	j := checked{text: text}
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
		j = checked{text: text, issues: slices.Clone(issues[:min(len(issues), schema.MaxIssues)])}
		for i := range j.issues {
			j.issues[i].Code = cmp.Or(j.issues[i].Code, codeCheck)
		}
	}
	return j, err
}

// json validates a text that must be JSON.
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

// repaired returns a valid text unchanged, and repairs an invalid one. If the
// text has only one code fence, its content is validated instead, with any
// text around the fence ignored.
func (c *checker) repaired(text string, issues []middleware.Issue) checked {
	if len(issues) == 0 {
		return checked{text: text, issues: issues}
	}
	if fixed, changes, ok := c.mend(text, issues); ok {
		return checked{text: strings.TrimSpace(fixed), changes: changes}
	}
	inner, ok := fenced(text)
	if !ok || !slices.Contains(c.o.Mend, mend.Syntax) {
		return checked{text: text, issues: issues}
	}
	j := checked{text: inner, changes: []middleware.Change{{By: "answer.fence", Before: text, After: inner}}}
	if j.issues = c.json(inner); len(j.issues) == 0 {
		return j
	}
	if fixed, changes, ok := c.mend(inner, j.issues); ok {
		return checked{text: strings.TrimSpace(fixed), changes: append(j.changes, changes...)}
	}
	return checked{text: text, issues: j.issues} // report the issues of the content
}

func (c *checker) mend(text string, issues []middleware.Issue) (string, []middleware.Change, bool) {
	return mend.Arguments(mend.Input{
		Tool:      middleware.Tool{Name: "answer", Parameters: c.o.Schema},
		Arguments: text, Issues: issues, Rules: c.o.Mend, Schema: c.mended, Validate: c.json,
	})
}

// fenced returns the text between two lines that begin with a code fence. It
// returns false unless there are exactly two such lines.
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
