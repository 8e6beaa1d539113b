package check

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// bucket is what OpenRouter's tool call error rate says of a call: valid, or one of
// three errors.
type bucket string

// The buckets, with OpenRouter's names.
const (
	bucketValid          bucket = ""
	bucketInvalidJSON    bucket = "InvalidJson"
	bucketUnknownName    bucket = "UnknownName"
	bucketSchemaMismatch bucket = "SchemaMismatch"
)

// measurer computes the measures that others publish, by their rules and not by
// the rules of check: nothing is repaired, and no schema is read leniently. It is
// safe for concurrent use.
//
// Sources: openrouter.ai/docs/guides/routing/auto-exacto, "How Tool-Calling Success
// Rate Is Measured", and @cfworker/json-schema, which asserts "format";
// github.com/MoonshotAI/K2-Vendor-Verifier, tool_calls_eval.py at 0182fa2:
// validate_tool_call and compute_summary.
type measurer struct {
	checker *report.Checker
	plain   *schema.Cache[bool]           // whether all drafts read the schema alike
	draft7  *schema.Cache[*schema.Schema] // nil: unusable
	k2      *schema.Cache[*schema.Schema]
}

// measureBytes bounds the schemas that a measurer keeps, for each of its dialects.
const measureBytes = 64 << 20

// measureLimits are the limits of arguments that are held to a schema.
var measureLimits = rawjson.Limits{Bytes: 16 << 20, Depth: 256}

func newMeasurer(c *report.Checker) *measurer {
	compile := func(o schema.Options, prepare func([]byte) []byte) func([]byte) (*schema.Schema, int) {
		return func(raw []byte) (*schema.Schema, int) {
			s, err := schema.Compile(prepare(raw), o)
			if err != nil {
				return nil, 256
			}
			return s, 64*len(raw) + 1024 // a compiled schema is larger than its text
		}
	}
	return &measurer{
		checker: c, plain: schema.NewCache(measureBytes, func(raw []byte) (bool, int) { return isPlain(raw), len(raw) + 64 }),
		draft7: schema.NewCache(measureBytes, compile(schema.Options{Formats: true, Strict: true}, asDraft7)),
		k2:     schema.NewCache(measureBytes, compile(schema.Options{Strict: true}, func(raw []byte) []byte { return raw })),
	}
}

// asDraft7 returns a schema that is read as Draft 7, whatever its $schema says.
func asDraft7(raw []byte) []byte {
	uri, _ := schema.Dialect("draft-07")
	return schema.InDialect(raw, uri, true)
}

// notPlain matches a schema that drafts read differently, or of which one measure asserts
// more than the other: $ref and its kind, format, and keywords that Draft 7 or 2020-12
// lacks. An escape may hide one of them.
var notPlain = regexp.MustCompile(`"(\$|format"|depend|prefixItems"|unevaluated|(min|max)Contains")|\\`)

// isPlain reports whether a schema means the same in every draft. {} is not plain: K2
// Vendor Verifier refuses it.
func isPlain(raw []byte) bool {
	return !notPlain.Match(raw) && strings.Trim(string(raw), "{} \t\r\n") != ""
}

// schemaCodes are the codes of the most frequent issues that only a schema has.
var schemaCodes = map[string]bool{"required": true, "type": true, "enum": true, "additionalProperties": true}

// concluded reports whether a call satisfies its schema for both publishers, as far as
// that follows from the verdict of check: if the schema leaves nothing to differ about.
// Otherwise known is false. It saves compiling each schema twice more.
func (m *measurer) concluded(tools []middleware.Tool, c *report.Call) (valid, known bool) {
	t, declared := report.ToolNamed(tools, c.Sent.Name)
	if !declared || !strings.HasPrefix(c.Sent.Arguments, "{") || !m.plain.Get(t.Parameters) || !m.checker.Exact(t) {
		return false, false
	}
	other := slices.ContainsFunc(c.Issues, func(i middleware.Issue) bool { return !schemaCodes[i.Code] })
	return c.AsSent == report.OK, c.AsSent == report.OK || c.AsSent == report.Invalid && !other
}

// openRouter returns the bucket of a call. A call of a tool without a usable schema
// is valid, as is one that is too large to hold to it. checked is false for those.
func (m *measurer) openRouter(tools []middleware.Tool, c middleware.ToolCall) (b bucket, checked bool) {
	t, declared := report.ToolNamed(tools, c.Name)
	switch {
	case c.Kind != middleware.KindFunction:
		return bucketValid, false
	case !json.Valid([]byte(c.Arguments)):
		return bucketInvalidJSON, true
	case !declared:
		return bucketUnknownName, true
	}
	valid, known := satisfies(m.draft7.Get(t.Parameters), c.Arguments)
	if known && !valid {
		return bucketSchemaMismatch, true
	}
	return bucketValid, known
}

// k2Valid reports whether K2 Vendor Verifier counts a call as valid. A call of a
// tool without a usable schema is not.
func (m *measurer) k2Valid(tools []middleware.Tool, c middleware.ToolCall) bool {
	t, declared := report.ToolNamed(tools, c.Name)
	if !declared || strings.Trim(string(t.Parameters), "{} \t\r\n") == "" || !json.Valid([]byte(c.Arguments)) {
		return false // of {}, "not schema" is true
	}
	valid, _ := satisfies(m.k2.Get(t.Parameters), c.Arguments)
	return valid
}

// satisfies reports whether arguments satisfy a schema. known is false if that
// cannot be said.
func satisfies(s *schema.Schema, arguments string) (valid, known bool) {
	if s == nil {
		return false, false
	}
	if s.SurelyValid(arguments, measureLimits, schema.AllowEmpty, false) { // fast, and true for most calls
		return true, true
	}
	doc, err := rawjson.Parse(arguments, measureLimits)
	if err != nil {
		return false, false
	}
	issues := s.Validate(doc.Root())
	if len(issues) > 0 && issues[0].Code == "unchecked" {
		return false, false
	}
	return len(issues) == 0, true
}

// measured are the measures of some turns. Its keys in JSON are stable.
type measured struct {
	// OpenRouter's tool call error rate is Errors of Requests. The others count
	// calls.
	OpenRouter struct {
		Requests       int `json:"requests"` // that the model answered with a call
		Errors         int `json:"errors"`   // with a call in a bucket
		InvalidJSON    int `json:"InvalidJson"`
		UnknownName    int `json:"UnknownName"`
		SchemaMismatch int `json:"SchemaMismatch"`
		Unchecked      int `json:"unchecked"` // valid, because the schema is absent or cannot be used
	} `json:"openrouter"`
	// K2 Vendor Verifier's schema accuracy is Valid of Answers.
	K2 struct {
		Answers     int `json:"answers"` // that ended with tool calls
		Valid       int `json:"valid"`
		OtherFinish int `json:"other_finish"` // with calls and another finish reason
	} `json:"k2_vendor_verifier"`
}

// measuredTurn is one turn with its model.
type measuredTurn struct {
	model string
	measured
}

// measures are the figures of a run, in sum and by model. Published figures are about one model.
type measures struct {
	Total  measured             `json:"total"`
	Models map[string]*measured `json:"models"`
}

func (m *measures) add(t measuredTurn) {
	m.Total.add(t.measured)
	at(m.Models, t.model).add(t.measured)
}

// turn returns the measures of one turn, whose calls check has validated. A turn whose
// finish reason was not recorded ended with its tool calls.
func (m *measurer) turn(t *recorded.Turn, calls []report.Call) (out measured) {
	out.OpenRouter.Requests = 1
	allValid := true
	for i, c := range t.Calls {
		b, checked := bucketSchemaMismatch, true
		valid, known := m.concluded(t.Tools, &calls[i])
		if valid {
			continue
		} else if !known {
			b, checked = m.openRouter(t.Tools, c)
			valid = m.k2Valid(t.Tools, c)
		}
		switch {
		case b == bucketInvalidJSON:
			out.OpenRouter.InvalidJSON++
		case b == bucketUnknownName:
			out.OpenRouter.UnknownName++
		case b == bucketSchemaMismatch:
			out.OpenRouter.SchemaMismatch++
		case !checked:
			out.OpenRouter.Unchecked++
		}
		if b != bucketValid {
			out.OpenRouter.Errors = 1
		}
		allValid = allValid && valid
	}
	switch {
	case t.Finish != middleware.FinishToolCalls && t.Finish != "":
		out.K2.OtherFinish = 1
	case allValid:
		out.K2.Answers, out.K2.Valid = 1, 1
	default:
		out.K2.Answers = 1
	}
	return out
}

// add adds the measures of other turns.
func (m *measured) add(o measured) {
	m.OpenRouter.Requests += o.OpenRouter.Requests
	m.OpenRouter.Errors += o.OpenRouter.Errors
	m.OpenRouter.InvalidJSON += o.OpenRouter.InvalidJSON
	m.OpenRouter.UnknownName += o.OpenRouter.UnknownName
	m.OpenRouter.SchemaMismatch += o.OpenRouter.SchemaMismatch
	m.OpenRouter.Unchecked += o.OpenRouter.Unchecked
	m.K2.Answers += o.K2.Answers
	m.K2.Valid += o.K2.Valid
	m.K2.OtherFinish += o.K2.OtherFinish
}

// write prints the measures, in the words of those who publish them.
func (m *measured) write(w io.Writer) {
	r, k := m.OpenRouter, m.K2
	if r.Requests == 0 {
		return
	}
	fmt.Fprintf(w, "\nPUBLISHED MEASURES\nOpenRouter, tool call error rate: %s of %s (calls: %d InvalidJson, %d UnknownName, %d SchemaMismatch)\n",
		rate(r.Errors, r.Requests), text.Plural(r.Requests, "request"), r.InvalidJSON, r.UnknownName, r.SchemaMismatch)
	fmt.Fprintf(w, "K2 Vendor Verifier, schema accuracy: %s of %s\n", rate(k.Valid, k.Answers), text.Plural(k.Answers, "answer"))
}

// rate is percent that writes zero as a figure.
func rate(n, of int) string {
	if of == 0 {
		return "none"
	}
	return fmt.Sprintf("%.2f%%", 100*float64(n)/float64(of))
}
