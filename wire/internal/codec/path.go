package codec

import "strings"

// Path returns the path of a request in the one spelling under which it is
// compared: without a query, in lower case, without empty and "." segments,
// parameters behind ";" and spaces at the end of a segment, and with
// backslashes as slashes. Servers take such spellings for the same path.
func Path(path string) string {
	if isPlain(path) {
		return path
	}
	path, _, _ = strings.Cut(path, "?")
	path = strings.ReplaceAll(strings.ToLower(path), `\`, "/")
	var b strings.Builder
	for seg := range strings.SplitSeq(path, "/") {
		seg, _, _ = strings.Cut(seg, ";")
		if seg = strings.TrimRight(seg, " \t"); seg != "" && seg != "." {
			b.WriteString("/" + seg)
		}
	}
	return b.String()
}

// isPlain reports whether Path would return path itself, as for the paths that
// SDKs use. False is not certain.
func isPlain(path string) bool {
	return strings.HasPrefix(path, "/") && !strings.HasSuffix(path, "/") && !strings.Contains(path, "//") && !strings.Contains(path, "/.") &&
		!strings.ContainsAny(path, "?\\; \t") && strings.ToLower(path) == path
}

// PathEnds reports whether the Path of path ends with one of ends, which are in
// lower case.
func PathEnds(path string, ends ...string) bool {
	path = Path(path)
	for _, end := range ends {
		if strings.HasSuffix(path, end) {
			return true
		}
	}
	return false
}
