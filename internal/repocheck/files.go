package repocheck

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Limits of the tree.
const (
	MaxFileBytes = 500_000 // a clone holds every version of a file for ever
	MaxGoLines   = 400     // longer Go files say why
)

// longReason is how a long file says why, on a line of its own among the first
// longReasonTill.
const (
	longReason     = "// Long because "
	longReasonTill = 40
)

// Sizes checks that no file is too big, and that Go files of more than
// MaxGoLines lines hold a line "// Long because …" near the top.
func Sizes(t Tree) ([]Problem, error) {
	var problems []Problem
	for _, file := range t.Files {
		info, err := fs.Stat(t.FS, file)
		if err != nil {
			return nil, err
		}
		if info.Size() > MaxFileBytes {
			problems = append(problems, Problem{file, 0, fmt.Sprintf("%d bytes; the limit is %d", info.Size(), MaxFileBytes)})
		}
		if path.Ext(file) != ".go" {
			continue
		}
		src, err := t.read(file)
		if err != nil {
			return nil, err
		}
		if n := bytes.Count(src, []byte("\n")); n > MaxGoLines && !saysWhy(src) {
			problems = append(problems, Problem{file, 0, fmt.Sprintf("%d lines and no %q near the top", n, longReason)})
		}
	}
	return problems, nil
}

// saysWhy reports whether a line near the top gives a reason for the length.
func saysWhy(src []byte) bool {
	for i, line := range strings.SplitN(string(src), "\n", longReasonTill+1) {
		if i < longReasonTill && strings.HasPrefix(line, longReason) && len(line) > len(longReason) {
			return true
		}
	}
	return false
}

// The patterns are put together from pieces so that this file does not hold
// what it looks for.
var (
	// unfinished matches the usual marks of work left for later.
	unfinished = regexp.MustCompile(`\b(` + "TO" + `DO|` + "FIX" + `ME|` + "XX" + `X)\b`)
	// machinePath matches an absolute path on somebody's machine; not the same
	// words inside a URL or a longer path.
	machinePath = regexp.MustCompile(`(^|[^\w.~/-])(` +
		"/" + `(home|work|root|tmp|Users|mnt)/[\w.-]|` + "[A-Z]:" + `\\+(Users|home)\b)`)
)

// Words checks that no text file, data and scripts included, holds a mark of
// work left for later or a path on somebody's machine. Issues are the place for
// the one, and the other is true for nobody else.
func Words(t Tree) ([]Problem, error) {
	var problems []Problem
	for _, file := range t.Files {
		b, ok, err := t.text(file)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		for i, line := range strings.Split(string(b), "\n") {
			if m := unfinished.FindString(line); m != "" {
				problems = append(problems, Problem{file, i + 1, "holds " + m})
			}
			if m := machinePath.FindString(line); m != "" {
				problems = append(problems, Problem{file, i + 1, "holds a path on a machine: " + strconv.Quote(m)})
			}
		}
	}
	return problems, nil
}
