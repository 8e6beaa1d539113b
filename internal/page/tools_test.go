package page

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
)

// A step that was opened from a choice of steps keeps the choice.
func TestChoiceIsKept(t *testing.T) {
	t.Parallel()
	steps := newSteps(100, 1<<20)
	for i := range 6 {
		steps.Add(call("m", []string{"even", "odd"}[i%2], "{}")) // 1, 3, 5 are even
	}
	h := newPage(steps)
	require.Contains(t, get(h, "/x/?tool=even").Body.String(), `href="/x/steps/3?tool=even"`)
	body := get(h, "/x/steps/3?tool=even").Body.String()
	for _, link := range []string{`href="/x/?tool=even" rel="up"`, `href="/x/steps/5?tool=even" rel="prev"`, `href="/x/steps/1?tool=even" rel="next"`, `href="/x/tools?tool=even"`} {
		require.Contains(t, body, link)
	}
	body = get(h, "/x/steps/3").Body.String()
	require.Contains(t, body, `href="/x/" rel="up"`)
	require.Contains(t, body, `href="/x/steps/4" rel="prev"`)
	body = get(h, "/x/steps/2?tool=even").Body.String()
	require.Contains(t, body, `href="/x/steps/3?tool=even" rel="prev"`, "a step outside of the choice lies between two of it")
	require.Contains(t, body, `href="/x/steps/1?tool=even" rel="next"`)
}

// failing returns a step with one call that is invalid.
func failing(model, tool, value string) report.Step {
	s := call(model, tool, `{"v":`+value+`}`)
	s.Status = middleware.Invalid
	s.Tools = []middleware.Tool{{Name: tool, Parameters: []byte(`{"type":"object","properties":{"v":{"type":"string","enum":["a b","c d"]}}}`)}}
	c := &s.Attempts[0].Calls[0]
	c.AsSent, c.Final = report.Invalid, report.Invalid
	c.Issues = []middleware.Issue{{Code: "enum", Pointer: "/v", Message: "wanted one of"}}
	c.FinalIssues = c.Issues
	return s
}

// The page of a tool says what is wrong, which values were sent, by which model, what
// would help, and leads to the steps.
func TestToolPage(t *testing.T) {
	t.Parallel()
	steps := newSteps(100, 1<<20)
	for range 3 {
		steps.Add(failing("model-a", "cancel", `"x"`))
	}
	steps.Add(failing("model-b", "cancel", `"y"`))
	plain := call("model-b", "cancel", `{}`)
	plain.Attempts[0].Calls[0].AsSent, plain.Attempts[0].Calls[0].Final = report.NoSchema, report.NoSchema
	steps.Add(plain)
	steps.Add(call("model-b", "other", `{}`))
	h := New(steps, Options{Root: "/x", Access: Access{Key: testKey}, Hints: func(tool string) report.Section {
		return report.Section{Title: "Hints for " + tool, Text: []string{"say it"}}
	}})
	all := get(h, "/x/tools").Body.String()
	for _, want := range []string{
		`<th scope="row"><bdi><a href="/x/tools?tool=cancel">cancel</a></bdi></th><td class="n">5</td>`, "By tool, the most faults first", "By tool and model",
		"100.00%", "no re-asks in this recording", "not validated: no schema", `href="#places"`, "one of &#34;a b&#34;, &#34;c d&#34;, received another string",
	} {
		require.Contains(t, all, want)
	}
	require.Less(t, strings.Index(all, `id="places"`), strings.Index(all, `id="pairs"`))
	one := get(h, "/x/tools?tool=cancel").Body.String()
	for _, want := range []string{
		`href="/x/?outcome=invalid&amp;tool=cancel"`, `href="/x/schemas?tool=cancel"`, "Hints for cancel", "say it",
		`<td class="wide">model-a</td>`, `<code>&#34;x&#34;</code>&nbsp;<span class="dim">×3`, `<a href="/x/steps/1" title="The first step with this fault">`,
		`<th scope="row"><bdi>model-a</bdi></th>`,
	} {
		require.Contains(t, one, want)
	}
	require.NotContains(t, get(h, "/x/tools?tool=other").Body.String(), "Hints for")
	require.Contains(t, get(h, "/x/steps/1").Body.String(), "Hints for cancel")
	require.NotContains(t, get(h, "/x/steps/6").Body.String(), "Hints for")
	require.Contains(t, get(h, "/x/steps/5").Body.String(), "declares the tool without a schema")
	require.Contains(t, get(newPage(steps), "/x/tools").Body.String(), "<b>0</b>invalid calls re-asked", "a gateway may ask again")
}

// All schemas can be read, each on its own page.
func TestSchemasOfTools(t *testing.T) {
	t.Parallel()
	steps := newSteps(100, 1<<20)
	steps.Add(failing("m", "cancel", `"x"`))
	other := failing("m", "cancel", `"x"`)
	other.Tools[0].Parameters = []byte(`{"type":"object"}`)
	steps.Add(other)
	h := newPage(steps)
	list := get(h, "/x/schemas").Body.String()
	require.Contains(t, list, `<a href="/x/schemas?tool=cancel"><code>cancel</code></a></bdi> <span class="dim">2 versions</span>`)
	one := get(h, "/x/schemas?tool=cancel").Body.String()
	require.Contains(t, one, "&#34;a b&#34;")
	require.Equal(t, 2, strings.Count(one, "<pre"))
	require.Len(t, twinOf(t, h, "/x/schemas?tool=cancel")["versions"], 2)
	require.Contains(t, get(h, "/x/schemas?tool=nothing").Body.String(), "No request offered this tool")
}

// Columns that say nothing in any row of a recording are left out.
func TestEmptyColumns(t *testing.T) {
	t.Parallel()
	steps := newSteps(100, 1<<20)
	s := call("m", "t", "{}")
	s.ID = strings.Repeat("long-id-", 30)
	steps.Add(s)
	h := New(steps, Options{Root: "/x", Access: Access{Key: testKey}})
	require.Contains(t, get(h, "/x/").Body.String(), `class="steps no-tokens no-duration"`)
	require.Contains(t, get(h, "/x/").Body.String(), `class="c-time">Step</th>`)
	require.Contains(t, get(newPage(steps), "/x/").Body.String(), `class="steps"`, "more may come")
	require.Contains(t, get(h, "/x/steps/1").Body.String(), "<bdi>"+s.ID+"</bdi>")
	s.Attempts[0].Usage = middleware.Usage{InputTokens: 1}
	steps.Add(s)
	require.Contains(t, get(h, "/x/").Body.String(), `class="steps no-duration"`)
}

// The page of a tool counts all calls of a recording too, not those in memory.
func TestToolPageCountsAll(t *testing.T) {
	t.Parallel()
	steps, figures := newSteps(3, 1<<20), report.NewFigures(report.Options{})
	for i := range 20 {
		s := failing("model-"+string(rune('a'+i%2)), "cancel", `"x"`)
		steps.Add(s)
		figures.Add(&s)
		s = call("model-a", "other", `{}`)
		steps.Add(s)
		figures.Add(&s)
	}
	h := New(steps, Options{Root: "/x", Access: Access{Key: testKey}, Figures: figures})
	all, one := twinOf(t, h, "/x/tools"), twinOf(t, h, "/x/tools?tool=cancel")
	require.Equal(t, all["tools"].([]any)[0].(map[string]any)["calls"], one["total"].(map[string]any)["calls"])
	require.EqualValues(t, 20, one["total"].(map[string]any)["invalid"])
	require.Len(t, one["models"], 2)
	require.Len(t, one["faults"], 2)
	require.Contains(t, get(h, "/x/tools?tool=cancel").Body.String(), "×10")
	require.EqualValues(t, 0, twinOf(t, h, "/x/tools?tool=nothing")["total"].(map[string]any)["calls"])
}

// A deep schema is shown without an indent, which would take ten thousand times as much.
func TestDeepSchemas(t *testing.T) {
	t.Parallel()
	for depth, indented := range map[int]bool{3: true, 5_000: false} {
		step := call("m", "t", "{}")
		step.Tools = []middleware.Tool{{Name: "t", Parameters: []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))}}
		steps := newSteps(10, 1<<20)
		steps.Add(step)
		text := twinOf(t, newPage(steps), "/x/schemas?tool=t")["versions"].([]any)[0].(string)
		require.Equal(t, indented, strings.Contains(text, "\n  ["))
		require.Less(t, len(text), 20_000)
	}
}
