package page_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/report"
)

// width sets the width of the screen.
func (b *tab) width(pixels int64) {
	b.t.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: pixels, Height: 800, DeviceScaleFactor: 1})
}

// axeCore returns the script of axe-core, which npm installs into a temporary
// folder, or "" and the reason why it is not there.
var axeCore = sync.OnceValues(func() (script, reason string) {
	dir, err := os.MkdirTemp("", "axe")
	if err != nil {
		return "", err.Error()
	}
	defer os.RemoveAll(dir)
	out, err := exec.Command("npm", "install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "axe-core@4.14.1").CombinedOutput()
	if err != nil {
		return "", fmt.Sprintf("npm cannot install axe-core: %v %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		return "", err.Error()
	}
	return string(text), ""
})

// accessible holds that axe-core finds no serious fault.
func (b *tab) accessible(what string) {
	b.t.Helper()
	script, missing := axeCore()
	if missing != "" {
		b.t.Log("not checked by axe-core: " + missing)
		return
	}
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		value[any](b, script+"; null")
		found := value[string](b, `axe.run(document).then(r => JSON.stringify(r.violations
			.filter(v => v.impact === "serious" || v.impact === "critical")
			.map(v => v.id + ": " + v.nodes.map(n => n.html.slice(0, 200) + " " + n.failureSummary).slice(0, 3).join("; "))))`)
		require.Equal(b.t, "[]", found, "%s, %s", what, scheme)
	}
	b.scheme("light")
}

// fits holds that nothing is wider than the screen.
func (b *tab) fits(what string) {
	b.t.Helper()
	require.LessOrEqual(b.t, value[int](b, "document.documentElement.scrollWidth"), value[int](b, "innerWidth"), "%s: %s", what,
		value[string](b, `[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 100)).join("\n").slice(0, 1000)`))
}

// TestViews opens each view with 0, 1 and 10,000 steps.
func TestViews(t *testing.T) {
	for _, n := range []int{0, 1, 10_000} {
		t.Run(fmt.Sprintf("%d steps", n), func(t *testing.T) {
			base, _ := serve(t, sampleSteps(n))
			b := open(t, base)
			views := map[string]string{"live": "/_toolmend/", "tools": "/_toolmend/tools", "schemas": "/_toolmend/schemas"}
			if n > 0 {
				views["step"] = "/_toolmend/steps/1"
			}
			if n > 1 {
				views["tool"] = "/_toolmend/tools?tool=read_file"
				views["reasked"] = "/_toolmend/steps/" + first(b, "?outcome=re-asked")
				views["repaired"] = "/_toolmend/steps/" + first(b, "?outcome=repaired&tool=edit_file")
				views["failed"] = "/_toolmend/steps/" + first(b, "?outcome=failed")
			}
			for name, path := range views {
				what := fmt.Sprintf("%s-%d", name, n)
				b.width(1280)
				b.visit(path)
				b.shoot(what)
				b.accessible(what)
				b.width(390)
				b.fits(what)
				b.shoot(what + "-narrow")
				var twin any
				require.NoError(t, json.Unmarshal([]byte(value[string](b, `fetch(document.querySelector("link[rel=alternate]").href).then(r => r.text())`)), &twin))
			}
			b.width(1280)
			b.visit("/_toolmend/")
			switch n {
			case 0:
				require.Contains(t, b.text("main"), "No step yet.")
				b.visit("/_toolmend/schemas")
				require.Contains(t, b.text("main"), "No request offered a tool")
			case 1:
				require.Equal(t, 1, value[int](b, "document.querySelectorAll('#steps tbody tr').length"))
				require.Contains(t, b.text("#steps"), "read_file")
			default:
				require.Equal(t, 100, value[int](b, "document.querySelectorAll('#steps tbody tr').length"), "a page of them")
				require.Contains(t, b.text(".pager"), "of 10,000")
				b.visit("/_toolmend/schemas")
				require.Contains(t, b.text("main"), "deploy")
				require.Contains(t, b.text("main"), "leaves the document")
				b.visit("/_toolmend/tools")
				require.Regexp(t, `read_file\s+[\d,]+`, b.text("main table"))
				require.Contains(t, b.text("main table"), "/limit")
			}
		})
	}
}

// first returns the number of the first step of a list.
func first(b *tab, query string) string {
	b.t.Helper()
	b.visit("/_toolmend/" + query)
	return value[string](b, "document.querySelector('#steps tbody tr').dataset.n")
}

// TestSpeed holds the time to the first paint and the memory with 10,000 steps.
func TestSpeed(t *testing.T) {
	ownBrowser(t)
	steps := sampleSteps(10_000)
	before := heap()
	base, _ := serve(t, steps)
	memory := heap() - before
	b := open(t, base)
	empty := private(b)
	b.visit("/_toolmend/")
	b.wait(`document.readyState === "complete"`)
	tab := private(b)
	best := 1e9
	answer := best
	for range 10 {
		b.visit("/_toolmend/")
		b.wait(`performance.getEntriesByName("first-contentful-paint").length > 0`)
		best = min(best, value[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
		answer = min(answer, value[float64](b, `performance.getEntriesByType("navigation")[0].responseEnd`))
	}
	call(b, performance.Enable, performance.EnableParams{})
	used := 0.0
	for _, m := range call(b, performance.GetMetrics, struct{}{}).Metrics {
		if m.Name == "JSHeapUsedSize" {
			used = m.Value
		}
	}
	t.Logf("10,000 steps: answer after %.0f ms, first paint after %.0f ms (the best of 10), %.1f MB of the script's heap, %.1f MB of the tab's process (%.1f MB when it was empty), %.1f MB in the gateway, on %s",
		answer, best, used/1e6, float64(tab)/1e6, float64(empty)/1e6, float64(memory)/1e6, machine())
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		var minute float64
		_, _ = fmt.Sscan(string(load), &minute)
		if minute > float64(goruntime.NumCPU()) {
			t.Logf("the time is not checked: the load of the machine is %.1f", minute)
			best = 0
		}
	}
	require.Less(t, best, 200., "ms to the first paint")
	require.Less(t, tab+memory, int64(100e6), "bytes")
}

// private returns the bytes that only the process of the tab uses, or 0 where they
// cannot be read. With several such processes it returns the largest.
func private(b *tab) (most int64) {
	info, err := chromedp.CallBrowser(b.Context, systeminfo.GetProcessInfo, cdp.Empty{})
	require.NoError(b.t, err)
	for _, p := range info.ProcessInfo {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.ID))
		if p.Type != "renderer" || err != nil {
			continue
		}
		sum := int64(0)
		for line := range strings.Lines(string(text)) {
			var kilobytes int64
			if _, after, ok := strings.Cut(line, ":"); ok && strings.HasPrefix(line, "Private_") {
				_, _ = fmt.Sscan(after, &kilobytes)
			}
			sum += kilobytes << 10
		}
		most = max(most, sum)
	}
	return most
}

// heap returns the bytes that are in use.
func heap() int64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestFilters: a choice is an address, and the list has what it says.
func TestFilters(t *testing.T) {
	base, _ := serve(t, sampleSteps(300))
	b := open(t, base)
	b.visit("/_toolmend/")
	value[any](b, `(() => { const s = document.querySelector("select[name=tool]"); s.value = "search"; s.dispatchEvent(new Event("change", { bubbles: true })); return null })()`)
	b.arrive(`location.search.includes("tool=search")`)
	require.Equal(t, "search", value[string](b, "document.querySelector('select[name=tool]').value"))
	rows := value[[]string](b, "[...document.querySelectorAll('#steps tbody .c-tools')].map(c => c.innerText)")
	require.NotEmpty(t, rows)
	for _, r := range rows {
		require.Contains(t, r, "search")
	}
	value[any](b, `document.querySelector(".chip.reasked").click()`)
	b.arrive(`location.search.includes("outcome=re-asked")`)
	require.Contains(t, value[string](b, "location.search"), "tool=search")
	for _, r := range value[[]string](b, "[...document.querySelectorAll('#steps tbody .c-outcome')].map(c => c.innerText)") {
		require.Contains(t, r, "re-asked")
	}
	value[any](b, `document.querySelector("#steps tbody tr").click()`)
	b.arrive(`location.pathname.includes("/steps/")`)
	require.Contains(t, value[string](b, "location.search"), "tool=search", "a step keeps the choice")
	from := value[string](b, "location.pathname")
	b.press("j")
	b.arrive(`location.pathname.includes("/steps/") && location.pathname !== "` + from + `"`)
	require.Contains(t, b.text("h1"), "re-asked", "the next one of the choice")
	b.press("Escape")
	b.arrive(`location.pathname === "/_toolmend/" && location.search.includes("tool=search")`)
	b.press("/")
	require.Equal(t, "q", value[string](b, "document.activeElement.name"))
	b.write("max_results")
	b.press("Enter")
	b.arrive(`location.search.includes("q=max_results")`)
	require.NotZero(t, value[int](b, "document.querySelectorAll('#steps tbody tr').length"))
	b.visit("/_toolmend/?q=there+is+no+such+text")
	require.Contains(t, b.text("main"), "No step matches.")
	value[any](b, `document.querySelector("#empty a").click()`)
	b.arrive(`location.search === "" && document.querySelectorAll("#steps tbody tr").length === 100`)
	value[any](b, `document.querySelector("a[rel=next]").click()`)
	b.arrive(`location.search.includes("before=")`)
	require.Contains(t, b.text(".pager"), "101–200 of 300")
}

// TestKeyboard: the page can be read without a mouse.
func TestKeyboard(t *testing.T) {
	base, _ := serve(t, sampleSteps(50))
	b := open(t, base)
	b.visit("/_toolmend/")
	focused := `document.activeElement.closest("tr")?.dataset.n`
	b.press("j")
	require.Equal(t, "50", value[string](b, focused))
	b.press("j")
	b.press("j")
	require.Equal(t, "48", value[string](b, focused))
	b.press("k")
	require.Equal(t, "49", value[string](b, focused))
	b.press("Enter")
	b.arrive(`location.pathname.endsWith("/steps/49")`)
	b.press("j")
	b.arrive(`location.pathname.endsWith("/steps/48")`)
	b.press("k")
	b.arrive(`location.pathname.endsWith("/steps/49")`)
	b.press("Escape")
	b.arrive(`location.pathname.endsWith("/_toolmend/")`)
	b.press("/")
	require.Equal(t, "q", value[string](b, "document.activeElement.name"))
	b.write("jk")
	require.Equal(t, "jk", value[string](b, "document.activeElement.value"), "keys in a field are text")
	b.press("Escape")
	require.Equal(t, "BODY", value[string](b, "document.activeElement.tagName"))
}

// TestPrint: on paper there is what was looked at, without what cannot be clicked.
func TestPrint(t *testing.T) {
	base, _ := serve(t, sampleSteps(20))
	b := open(t, base)
	for path, want := range map[string]string{"/_toolmend/": "#steps", "/_toolmend/steps/1": ".attempt", "/_toolmend/tools": ".figures"} {
		b.visit(path)
		call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
		visible := func(selector string) bool {
			return value[bool](b, fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => e.checkVisibility())", selector))
		}
		require.True(t, visible(want), path)
		require.False(t, visible("main nav, header nav, form, footer, #news"), path)
	}
}

// TestHostile: what models write is text, however it looks and however long it is.
func TestHostile(t *testing.T) {
	const script = `<script>window.broken = 1</script><img src=x onerror="window.broken = 1">`
	const controls = "\u202e\u2066\x00\x07\x1b[31m\u200b"
	long := strings.Repeat("long value ", 100_000)
	all := []string{script, controls + "after", `"><svg onload=alert(1)>`, "{{.}}${x}`", long, strings.Repeat("\u0301", 3000), strings.Repeat("W", 5000)}
	var steps []report.Step
	for _, text := range all {
		quoted, err := json.Marshal(text)
		require.NoError(t, err)
		s := sampleSteps(1)[0]
		s.Model, s.Client, s.Notes = text, text, []string{text}
		a := s.Attempts[0]
		a.Calls = append([]report.Call(nil), a.Calls...)
		a.Calls[0].Sent.Name, a.Calls[0].Ran.Name = text, text
		a.Calls[0].Sent.Arguments = `{"file_path":` + string(quoted) + `,"limit":"5"}`
		a.Calls[0].Ran.Arguments = `{"file_path":` + string(quoted) + `,"limit":5}`
		a.Calls[0].AsSent = report.Invalid
		a.Text, a.Replies = text, []report.Reply{{Role: "tool", Tool: text, Text: text}}
		s.Attempts = []report.Attempt{a}
		steps = append(steps, s)
	}
	base, _ := serve(t, steps)
	b := open(t, base)
	paths := []string{"/_toolmend/", "/_toolmend/tools", "/_toolmend/schemas"}
	for i := range all {
		paths = append(paths, fmt.Sprintf("/_toolmend/steps/%d", i+1))
	}
	for _, path := range paths {
		b.width(1280)
		b.visit(path)
		require.Equal(t, "undefined", value[string](b, "typeof window.broken"), path)
		require.Zero(t, value[int](b, "document.querySelectorAll('main script, main img, main svg[onload]').length"), path)
		require.False(t, value[bool](b, `/[\u0000-\u0008\u000b-\u001f\u200b\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText)`), path)
		b.fits(path)
		b.width(390)
		b.fits(path)
	}
	b.visit("/_toolmend/steps/1")
	require.Contains(t, b.text(".side .args"), `\u003cscript\u003ewindow.broken`)
	require.Contains(t, b.text("main"), script)
	require.Contains(t, b.text(".side:nth-child(2) mark.changed"), "5")
	b.visit("/_toolmend/steps/5")
	require.Contains(t, b.text(".side .args"), "bytes", "a long value is cut")
	require.Less(t, value[int](b, "document.documentElement.outerHTML.length"), 200_000)
	b.shoot("hostile")
	b.visit("/_toolmend/")
	b.shoot("hostile-live")
	require.Less(t, value[float64](b, "document.querySelector('#steps').getBoundingClientRect().height"), 600., "one line a row")
}

// TestPictures makes the pictures of the README: docs/img.
func TestPictures(t *testing.T) {
	answers := [][]string{{"read_file", `{"path":"/srv/app/server.go"}`}, {"read_file", `{"file_path":"/srv/app/server.go"}`}}
	step := sampleStep(report.NewChecker(argsvalidate.Options{}), answers, "gpt-5-mini")
	step.Time, step.Duration = time.Now(), 1740*time.Millisecond
	base, _ := serve(t, []report.Step{step})
	b := open(t, base)
	b.visit("/_toolmend/steps/1")
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 960, Height: 500, DeviceScaleFactor: 1.5})
	b.shoot("readme-step")
}
