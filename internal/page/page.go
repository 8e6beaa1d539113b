// Package page shows steps in a browser: the steps that pass through a gateway, or the
// steps of a recording.
//
//	steps := page.NewSteps(32<<20)
//	token := page.NewToken()
//	handler := page.New(steps, page.Options{Root: "/_toolmend", Access: page.Access{Token: token}})
//
// The page is read-only. Each view is an address, and with format=json in its
// query the same data as JSON. What models wrote reaches the browser as text
// only: html/template escapes it, and the scripts set textContent.
package page

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/text"
)

// Options are the settings of a page.
type Options struct {
	// Root is the path of the page, without a slash at its end. All paths that
	// New serves are Root or below it.
	Root   string
	Access Access
	// About is the source of the steps, such as the name of a file.
	About string
	// Figures are the figures of all steps, if there are more than fit into memory. Their
	// ids must be the numbers that Steps.Add returned. nil means the figures of the steps
	// in memory.
	Figures *report.Figures
	// Sections are shown with the figures by tool.
	Sections []report.Section
	// Hints returns settings that would help with the calls of a tool. nil means that
	// there are no hints.
	Hints func(tool string) report.Section
	// Live means that further steps may be added, so the browser asks for them.
	Live bool
}

//go:embed html/*.html
var htmlFiles embed.FS

//go:embed static
var staticFiles embed.FS

// templates are the templates of package report and of the page. They are parsed at their first
// use.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(report.Templates().Funcs(template.FuncMap{
		"keptText": kept.text,
		"rowWith":  func(root, query string, r row) rowView { return rowView{r, root, query} },
		"toolURL":  toolURL,
	}).ParseFS(htmlFiles, "html/*.html"))
})

// handler serves a page.
type handler struct {
	Options
	steps *Steps
	guard *guard
}

// New returns a handler for the paths of o.Root that shows steps.
func New(steps *Steps, o Options) http.Handler {
	return &handler{o, steps, newGuard(o.Root, o.Access)}
}

// policy allows what the page itself needs: its own script, style and data.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP serves the page with the headers that protect it.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
	} {
		w.Header().Set(name, value)
	}
	at, below := strings.CutPrefix(r.URL.Path, h.Root)
	if !below || r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.NotFound(w, r)
		return
	}
	name, rest, _ := strings.Cut(strings.TrimPrefix(at, "/"), "/")
	switch {
	case at == "":
		to := url.URL{Path: h.Root + "/", RawQuery: r.URL.RawQuery}
		http.Redirect(w, r, to.String(), http.StatusPermanentRedirect)
	case name == "static": // nothing of the steps
		h.static(w, r, rest)
	case h.guard.enter(w, r):
	case !h.guard.admits(r):
		h.refuse(w, r)
	case name == "" && rest == "":
		h.live(w, r)
	case name == "steps":
		h.step(w, r, rest)
	case name == "tools" && rest == "":
		h.tools(w, r)
	case name == "schemas" && rest == "":
		h.schemas(w, r)
	default:
		h.missing(w, r, "There is no such page.")
	}
}

// static serves a file of the page itself.
func (h *handler) static(w http.ResponseWriter, r *http.Request, name string) {
	body, err := staticFiles.ReadFile("static/" + name)
	if name == "report.css" {
		body, err = []byte(report.Style()), nil
	}
	if err != nil || path.Base(name) != name {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", map[string]string{
		".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	}[path.Ext(name)])
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}

// view has the fields of all views.
type view struct {
	Root, About string
	Name        string // of the view, such as "live"
	Title       string
	Live        bool
	JSON        string // the address of the same view as JSON
	Kept        kept
}

// kept is the number and the size of the steps in memory.
type kept struct {
	Steps int    `json:"steps"`
	Bytes int64  `json:"bytes"`
	Of    uint64 `json:"of"` // steps in all; the others had no room
}

// text returns k for people.
func (k kept) text() string {
	if uint64(k.Steps) < k.Of {
		return text.Number(k.Steps) + " of " + text.Number(k.Of) + " steps in memory"
	}
	return text.Plural(k.Steps, "step") + " in memory"
}

func (h *handler) view(r *http.Request, name, title string) view {
	query := r.URL.Query()
	query.Set("format", "json")
	steps, size, of := h.steps.kept()
	return view{Root: h.Root, About: h.About, Name: name, Title: title, Live: h.Live,
		JSON: r.URL.Path + "?" + query.Encode(), Kept: kept{steps, size, of}}
}

// asJSON reports whether r asks for the JSON twin of a view.
func asJSON(r *http.Request) bool { return r.URL.Query().Get("format") == "json" }

// write writes a view: twin as JSON if the query has format=json, else data by the template of
// the name.
func (h *handler) write(w http.ResponseWriter, r *http.Request, status int, name string, data, twin any) {
	var out bytes.Buffer
	if asJSON(r) {
		if err := report.WriteJSON(&out, twin); err != nil {
			http.Error(w, "the data cannot be written as JSON", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
	} else {
		if err := templates().ExecuteTemplate(&out, name, data); err != nil {
			http.Error(w, "the page cannot be written", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
	}
	w.Header().Set("Content-Length", strconv.Itoa(out.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes())
}

// refuse responds to a request without access, and explains how to open the page.
func (h *handler) refuse(w http.ResponseWriter, r *http.Request) {
	if h.guard.key != nil && !asJSON(r) { // the script of the page must not make the browser ask for a password
		w.Header().Set("WWW-Authenticate", `Basic realm="Toolmend", charset="UTF-8"`)
	}
	why := "Open the page by the address with the token, which toolmend serve or toolmend view printed at its start."
	v := denied{view{Root: h.Root, Title: "Not opened"}, why}
	h.write(w, r, http.StatusUnauthorized, "denied", v, map[string]string{"error": why})
}

// denied is the view of an error.
type denied struct {
	view
	Why string
}

// missing responds to a request for an address without a view.
func (h *handler) missing(w http.ResponseWriter, r *http.Request, why string) {
	h.write(w, r, http.StatusNotFound, "missing", denied{h.view(r, "", "Not found"), why}, map[string]string{"error": why})
}
