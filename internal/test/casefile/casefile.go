// Package casefile keeps what a test reads, and what it expects, in a file for each
// of its cases: testdata/TestEdit/no-calls.txtar for "TestEdit/no calls". A reader
// sees the whole stream before and after an edit, and a diff of the file is a diff
// of what the code writes.
//
//	resp := decode(casefile.Body(t, "before"))
//	edit(resp)
//	casefile.Expect(t, "after", encode(resp))
//
// A file has the form of txtar:
//
//	-- before --
//	data: {"id":"r1"}
//
//	-- after --
//	data: {"id":"r2"}
//
// The line end in front of a header, and the last one, do not belong to a body.
// What an editor does not show has a symbol: ␍ is a carriage return, and ␠ is the
// last space of a line that ends with spaces.
//
// A new case is an edit in the test and a file with "before"; go test -update
// writes "after". It is for tests only.
package casefile

import (
	"flag"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the expected bodies in testdata anew")

var (
	header      = regexp.MustCompile(`(?m)^-- (.+) --\n`)
	toSymbols   = strings.NewReplacer("\r", "␍", " \n", "␠\n")
	fromSymbols = strings.NewReplacer("␍", "\r", "␠", " ")
	notInNames  = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

// path returns the file of a test.
func path(test string) string {
	test, name, _ := strings.Cut(test, "/")
	return filepath.Join("testdata", test, notInNames.ReplaceAllString(name, "-")) + ".txtar"
}

// Body returns the section of that name in the file of the running test.
func Body(t testing.TB, name string) string {
	t.Helper()
	_, bodies := sections(t)
	body, ok := bodies[name]
	if !ok {
		t.Fatalf("%s has no section %q", path(t.Name()), name)
	}
	return body
}

// Expect fails the test if got is not the section of that name in its file. With
// the flag -update it writes got there first; the diff shows what has changed.
func Expect(t testing.TB, name, got string) {
	t.Helper()
	if *update {
		names, bodies := sections(t)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		bodies[name] = got
		var b strings.Builder
		for _, n := range names {
			b.WriteString("-- " + n + " --\n" + toSymbols.Replace(bodies[n]+"\n"))
		}
		if err := os.WriteFile(path(t.Name()), []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := Body(t, name); got != want {
		w, g, i := strings.Split(want, "\n"), strings.Split(got, "\n"), 0
		for i < min(len(w), len(g))-1 && w[i] == g[i] {
			i++
		}
		t.Fatalf("%s, section %q of %d lines, line %d:\n%q\nis, of %d lines:\n%q\nThe test with -update writes the file: read its diff.",
			path(t.Name()), name, len(w), i+1, w[i], len(g), g[i])
	}
}

// OneForEach fails the test if its folder does not hold one file for each of
// the cases, and no other.
func OneForEach(t testing.TB, cases iter.Seq[string]) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join("testdata", t.Name(), "*"))
	for c := range cases {
		i := slices.Index(files, path(t.Name()+"/"+c))
		if i < 0 {
			t.Errorf("%q has no file of its own: %s", c, path(t.Name()+"/"+c))
			continue
		}
		files = slices.Delete(files, i, i+1)
	}
	if len(files) > 0 {
		t.Errorf("files without a case: %q", files)
	}
}

// sections returns the bodies in the file of the running test, and their order.
func sections(t testing.TB) (names []string, bodies map[string]string) {
	t.Helper()
	data, err := os.ReadFile(path(t.Name()))
	if err != nil {
		t.Fatal(err)
	}
	text, bodies := string(data), map[string]string{}
	headers := header.FindAllStringSubmatchIndex(text, -1)
	for i, h := range headers {
		end := len(text)
		if i+1 < len(headers) {
			end = headers[i+1][0]
		}
		names = append(names, text[h[2]:h[3]])
		bodies[text[h[2]:h[3]]] = fromSymbols.Replace(strings.TrimSuffix(text[h[1]:end], "\n"))
	}
	return names, bodies
}
