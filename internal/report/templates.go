package report

import (
	"embed"
	"fmt"
	"html/template"
	"path/filepath"
	"reflect"
	"strconv"
	"sync"

	"github.com/toolmend/toolmend/internal/text"
)

//go:embed html
var files embed.FS

// parsed are the templates. They are parsed once, at their first use, and cloned for
// each caller. They are never executed, because html/template clones nothing that was.
var parsed = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(funcs).ParseFS(files, "html/*.html"))
})

// own is the clone that WriteHTML executes.
var own = sync.OnceValue(Templates)

// Templates returns a copy of the templates of the HTML report, for a page that
// shows the same things. They need the style sheet of Style, and no script.
//
//	verdict   a Verdict
//	call      a CallView: as sent beside as repaired, faults, repairs
//	segments  []Segment
//	replies   []Reply
//	bar       a Counts
//	places    a PlacesView
//	chart     a ChartView
//	legend    nothing: the colours of bar and chart
//	section   a Section
//
// The others are private to the report.
//
// Their functions: num (12,345), dot (num, or "." for 0), share (part, whole),
// plural (number, noun), name and line (text on one line) and shown (on several; all
// replace characters that cannot be seen), pointer, at (code, pointer), types (of a
// Fault), got (code, type), place (file, line, id), seconds, tone.
func Templates() *template.Template { return template.Must(parsed().Clone()) }

// Style returns the style sheet of the templates.
func Style() string {
	css, err := files.ReadFile("html/style.css")
	if err != nil {
		panic(err) // it is embedded
	}
	return string(css)
}

var funcs = template.FuncMap{
	"num":     anyNumber,
	"dot":     Dot,
	"share":   Share,
	"plural":  text.Plural[int],
	"name":    Name,
	"line":    func(s string) string { return text.OneLine(text.Clip(s, maxText)) },
	"shown":   func(s string) string { return text.Visible(text.Clip(s, maxText), true) },
	"pointer": shownPointer,
	"at":      At,
	"types":   Types,
	"got":     Received,
	"place":   Where,
	"seconds": seconds,
	"tone":    tone,
	"bar":     bar,
	"barText": barText,
}

// anyNumber is text.Number for templates, which have numbers of several types.
func anyNumber(n any) string {
	if v := reflect.ValueOf(n); v.CanInt() {
		return text.Number(v.Int())
	}
	return fmt.Sprint(n)
}

// Dot leaves out zeros, so that the other figures stand out.
func Dot(n int) string {
	if n == 0 {
		return "."
	}
	return text.Number(n)
}

// Share writes a part of a whole in percent, or a dot if it is not defined.
func Share(n, of int) string {
	if of == 0 {
		return "."
	}
	return fmt.Sprintf("%.2f%%", 100*float64(n)/float64(of))
}

// shownPointer returns a pointer for people.
func shownPointer(p string) string {
	if p == "" {
		return "the arguments"
	}
	return text.Visible(p, false)
}

// At returns the place of a fault for people.
func At(code, pointer string) string {
	switch {
	case code == string(UnknownTool):
		return "the name"
	case code == string(Truncated):
		return "the end"
	case ForbiddenCall(code):
		return "the call"
	}
	return shownPointer(pointer)
}

// Types says what was expected and received at a fault.
func Types(f Fault) string {
	expected, got := text.Visible(f.Expected, false), Received(f.Code, f.Received)
	switch {
	case f.Code == string(UnknownTool) && expected != "":
		return "the tools are " + expected
	case f.Expected != "" && got != "":
		return "expected " + expected + ", received " + got
	case f.Expected != "":
		return "expected " + expected
	case got != "" && got != "nothing":
		return "received " + got
	}
	return ""
}

// Where returns a place in a log: file and line, else the id of the step.
func Where(file string, line int, id string) string {
	switch {
	case file != "" && line > 0:
		return Name(filepath.Base(file)) + ":" + strconv.Itoa(line)
	case file != "":
		return Name(filepath.Base(file))
	case id != "":
		return Name(id)
	}
	return ""
}

// tone returns the class of a verdict: good, unchecked or bad.
func tone(v Verdict) string {
	switch {
	case v == OK:
		return "good"
	case v.Unchecked():
		return "unchecked"
	}
	return "bad"
}
