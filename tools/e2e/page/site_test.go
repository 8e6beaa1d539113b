package page_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// most is the most that the first view of the site may transfer, in bytes.
const most = 300_000

// siteFiles returns what `make site` built. SITE is the folder.
func siteFiles(t *testing.T) fs.FS {
	t.Helper()
	dir := os.Getenv("SITE")
	if dir == "" {
		t.Skip("no SITE: make site-test runs this test")
	}
	return os.DirFS(dir)
}

// serveSite serves the site as a plain file server that compresses text does.
func serveSite(t *testing.T) (base string, files fs.FS) {
	t.Helper()
	files = siteFiles(t)
	plain := http.FileServerFS(files)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		switch path.Ext(r.URL.Path) {
		case "", ".html", ".js", ".css", ".json":
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			defer packed.Close()
			plain.ServeHTTP(packedWriter{w, packed}, r)
		default:
			plain.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, files
}

// packedWriter packs a response.
type packedWriter struct {
	http.ResponseWriter
	body *gzip.Writer
}

func (w packedWriter) WriteHeader(status int) {
	w.Header().Del("Content-Length")
	w.ResponseWriter.WriteHeader(status)
}

func (w packedWriter) Write(b []byte) (int, error) { return w.body.Write(b) }

// sitePages returns the paths of all pages, in order.
func sitePages(t *testing.T, files fs.FS) (pages []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(files, ".", func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(name, ".html") && name != "404.html" {
			pages = append(pages, name)
		}
		return err
	}))
	require.Contains(t, pages, "index.html")
	return pages
}

// TestSiteFirstView bounds what a first view transfers, with all that the page fetches
// ahead of time.
func TestSiteFirstView(t *testing.T) {
	base, files := serveSite(t)
	for _, name := range sitePages(t, files) {
		if strings.HasPrefix(name, "decisions/") || name == "playground.html" {
			continue
		}
		b := open(t, base)
		b.visit("/" + name)
		b.arrive(`document.querySelector("#app").__vue_app__ !== undefined`)
		var sizes struct{ Transferred, Unpacked, Requests int }
		require.NoError(t, json.Unmarshal([]byte(value[string](b, `new Promise(done => requestIdleCallback(() => {
			const all = performance.getEntries().filter(e => "transferSize" in e)
			const sum = key => all.reduce((n, e) => n + e[key], 0)
			done(JSON.stringify({Transferred: sum("transferSize"), Unpacked: sum("decodedBodySize"), Requests: all.length}))
		}))`)), &sizes))
		t.Logf("%s: %d bytes in %d requests, %d unpacked", name, sizes.Transferred, sizes.Requests, sizes.Unpacked)
		require.Greater(t, sizes.Transferred, 20_000, "measured")
		require.LessOrEqual(t, sizes.Transferred, most, name)
	}
}

// TestSiteAccessible opens each page, and one decision, in both schemes and on a narrow
// screen.
func TestSiteAccessible(t *testing.T) {
	base, files := serveSite(t)
	decision := false
	for _, name := range sitePages(t, files) {
		if strings.HasPrefix(name, "decisions/") {
			if decision {
				continue
			}
			decision = true
		}
		t.Run(name, func(t *testing.T) {
			b := open(t, base)
			b.width(1280)
			b.visit("/" + name)
			b.arrive(`document.querySelector("#app").__vue_app__ !== undefined`)
			b.accessible(name)
			if name == "index.html" || name == "serve.html" || name == "playground.html" {
				b.shoot("site-" + strings.TrimSuffix(name, ".html"))
			}
			b.width(390)
			b.fits(name)
		})
	}
}

// TestSiteDoor holds that the first view has a sentence, a command, three links and the
// picture, in both schemes and on a phone, and that settings and first view need no
// sideways scroll.
func TestSiteDoor(t *testing.T) {
	base, _ := serveSite(t)
	b := open(t, base)
	wide := `[...document.querySelectorAll(".vp-doc *")].filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === "auto" && e.getBoundingClientRect().top < innerHeight).map(e => e.innerText.slice(0, 60)).join("\n")`
	for _, width := range []int64{1280, 390} {
		b.width(width)
		b.visit("/settings.html")
		b.arrive(`document.querySelector("#app").__vue_app__ !== undefined`)
		require.Empty(t, value[string](b, strings.Replace(wide, " && e.getBoundingClientRect().top < innerHeight", "", 1)), "settings, %d", width)
		for _, scheme := range []string{"light", "dark"} {
			b.scheme(scheme)
			b.visit("/")
			b.arrive(`document.querySelector("#app").__vue_app__ !== undefined`)
			b.wait(fmt.Sprintf(`(e => e.complete && e.naturalWidth > 0 && e.getBoundingClientRect().bottom <= innerHeight)(document.querySelector(".vp-doc img.in-%s"))`, scheme))
			require.Empty(t, value[string](b, wide), "%d, %s", width, scheme)
			require.Equal(t, "h1 p div p", value[string](b, `[...document.querySelectorAll(".vp-doc > div > *")].slice(0, 4).map(e => e.localName).join(" ")`), "title, sentence, command, links")
			require.Equal(t, "/install.html /playground.html /comparison.html", value[string](b, `[...document.querySelectorAll(".vp-doc > div > *:nth-child(4) a")].map(a => a.getAttribute("href")).join(" ")`))
		}
	}
}

// TestSiteSearch finds words, and follows the results.
func TestSiteSearch(t *testing.T) {
	base, _ := serveSite(t)
	b := open(t, base)
	b.width(1280)
	for i, words := range []string{"on_exhausted", "KeepValid", "Claude Code"} {
		b.visit("/")
		b.arrive(`document.querySelector("#app").__vue_app__ !== undefined`)
		value[any](b, `document.querySelector(".DocSearch-Button, .VPNavBarSearch button").click(); null`)
		b.wait(`document.querySelector(".VPLocalSearchBox input") === document.activeElement`)
		b.write(words)
		b.wait(`document.querySelector(".VPLocalSearchBox input").value === ` + fmt.Sprintf("%q", words) +
			` && document.querySelectorAll(".VPLocalSearchBox .result").length > 0`)
		if i == 0 {
			b.accessible("search")
			b.shoot("site-search")
		}
		var found []string
		require.NoError(t, json.Unmarshal([]byte(value[string](b, fmt.Sprintf(`Promise.all(
			[...document.querySelectorAll(".VPLocalSearchBox .result")].slice(0, 3).map(async a => {
				const text = new DOMParser().parseFromString(await (await fetch(a.href)).text(), "text/html").querySelector("main").textContent
				return (text.includes(%q) ? "has it: " : "has it not: ") + a.getAttribute("href")
			})).then(JSON.stringify)`, words))), &found))
		t.Logf("%s: %s", words, strings.Join(found, ", "))
		require.NotEmpty(t, found)
		require.Contains(t, found[0], "has it: ")
		require.GreaterOrEqual(t, strings.Count(strings.Join(found, " "), "has it: "), min(2, len(found)), "the index has words, and no phrases")
	}
	b.press("Enter")
	b.wait(`location.pathname !== "/" && location.hash !== "" && document.getElementById(decodeURIComponent(location.hash.slice(1))) !== null`)
}

// TestSitePlayground tries calls as a reader does.
func TestSitePlayground(t *testing.T) {
	base, _ := serveSite(t)
	b := open(t, base)
	b.width(1280)
	b.visit("/")
	b.arrive(`document.querySelector("#app").__vue_app__ !== undefined`)
	require.False(t, value[bool](b, `performance.getEntries().some(e => e.name.includes("/playground/"))`), "loaded on its own page only")
	b.visit("/playground.html")
	result := `document.querySelector(".playground [aria-live]").innerText`
	shows := func(text string) {
		t.Helper()
		b.wait(fmt.Sprintf(`%s.includes(%q)`, result, text))
	}
	set := func(name, text string) {
		t.Helper()
		value[any](b, fmt.Sprintf(`{ const e = document.querySelector(".playground [name=%s]"); e.value = %q; e.dispatchEvent(new Event(e.tagName === "SELECT" ? "change" : "input", {bubbles: true})) } null`, name, text))
	}
	validate := func() { value[any](b, `document.querySelector(".playground button").click(); null`) }
	shows(`Runs as:` + "\n\n" + `book_flight {"from": "OSL", "to": "LHR"}`)
	shows("strip at /return_date: null becomes nothing")

	set("example", "2")
	shows(`unknown property; did you mean "file_path"?`)
	shows("In the end: invalid")
	shows("The model would get:")
	b.accessible("a reply")

	set("example", "1")
	shows(`"passengers": 2`)
	set("mend", "off")
	shows("In the end: invalid")

	set("tool", `{"type": "object", "required": ["n"]}`)
	set("call", `{"n": 1}`)
	validate()
	shows(`tool {"n": 1}`)

	set("tool", `{"name": `)
	validate()
	shows("tool:1:")
	require.NotContains(t, value[string](b, result), "Runs as")
	b.accessible("an error")

	require.Equal(t, "0", value[string](b, `String([...document.querySelectorAll(".playground select, .playground textarea")].filter(e => !e.labels.length).length)`), "without a label")
}

var (
	linkIn = regexp.MustCompile(` (?:href|src)="([^"]*)"`)
	idIn   = regexp.MustCompile(` id="([^"]+)"`)
)

// TestSiteLinks follows every link inside the site to its file and its anchor. Links to
// other places are https.
func TestSiteLinks(t *testing.T) {
	files := siteFiles(t)
	anchors, links := map[string]map[string]bool{}, map[string][]string{}
	for _, name := range sitePages(t, files) {
		b, err := fs.ReadFile(files, name)
		require.NoError(t, err)
		anchors[name] = map[string]bool{"": true}
		for _, m := range idIn.FindAllStringSubmatch(string(b), -1) {
			anchors[name][html.UnescapeString(m[1])] = true
		}
		for _, m := range linkIn.FindAllStringSubmatch(string(b), -1) {
			links[name] = append(links[name], html.UnescapeString(m[1]))
		}
	}
	inside, outside := 0, 0
	for name, of := range links {
		for _, link := range of {
			u, err := url.Parse(link)
			require.NoError(t, err, "%s: %s", name, link)
			if u.Scheme == "data" || u.Scheme == "mailto" {
				continue
			}
			if u.Scheme != "" || u.Host != "" {
				outside++
				require.Contains(t, []string{"https", "http"}, u.Scheme, "%s: %s", name, link)
				continue
			}
			inside++
			to := name
			if u.Path != "" {
				to = strings.TrimPrefix(path.Join("/", path.Dir(name), u.Path), "/")
				if strings.HasPrefix(u.Path, "/") {
					to = strings.TrimPrefix(path.Clean(u.Path), "/")
				}
			}
			if to == "" || strings.HasSuffix(u.Path, "/") {
				to = path.Join(to, "index.html")
			}
			_, err = fs.Stat(files, to)
			require.NoError(t, err, "%s links to %s", name, link)
			if ids, page := anchors[to]; page {
				require.True(t, ids[u.Fragment], "%s links to %s: there is no such anchor", name, link)
			}
		}
	}
	t.Logf("%d links inside the site, %d to others, on %d pages", inside, outside, len(links))
	require.Greater(t, inside, 500)
}
