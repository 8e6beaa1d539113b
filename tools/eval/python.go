package main

import (
	"encoding/json"
	"strconv"
	"strings"
)

// reader reads Python literals, for ground truth that is written as Python
// calls, and as a second opinion on what package mend makes of Python in place
// of JSON. It gives what encoding/json gives with UseNumber.
type reader struct {
	s  string
	ok bool
	// lenient passes over comments, keys without quotes and a quote behind a
	// number, and takes the end of the text for the closers that lack there.
	lenient bool
}

// sentLiteral is pythonLiteral for what a model sent: with comments, without
// the closers at the end, or behind an empty object.
func sentLiteral(s string) (any, bool) {
	r := &reader{s: s, ok: true, lenient: true}
	r.space()
	if rest, ok := strings.CutPrefix(r.s, "{}"); ok {
		if r.s = rest; strings.TrimSpace(rest) == "" {
			return map[string]any{}, true
		}
		r.space()
	}
	v := r.value(0)
	return v, r.ok && strings.Trim(r.s, "]} \t\r\n") == ""
}

// space passes over white space, and comments where the reader is lenient.
func (r *reader) space() {
	for {
		r.s = strings.TrimLeft(r.s, " \t\r\n")
		if !r.lenient || !strings.HasPrefix(r.s, "#") && !strings.HasPrefix(r.s, "//") {
			return
		}
		_, r.s, _ = strings.Cut(r.s, "\n")
	}
}

// ends takes the end of a list or an object.
func (r *reader) ends(token string) bool { return r.take(token) || r.lenient && r.s == "" }

// pythonLiteral returns the value that s is the literal of.
func pythonLiteral(s string) (any, bool) {
	r := &reader{s: strings.TrimSpace(s), ok: true}
	v := r.value(0)
	return v, r.ok && r.s == ""
}

// pythonCall reads name(key=literal, …). A call with positional arguments is
// refused: their names are not known.
func pythonCall(s string) (name string, args map[string]any, ok bool) {
	name, rest, found := strings.Cut(s, "(")
	r := &reader{s: strings.TrimSpace(rest), ok: found}
	args = map[string]any{}
	for r.ok && !r.take(")") {
		if len(args) > 0 && !r.take(",") {
			return "", nil, false
		}
		if r.take(")") {
			break
		}
		key, value, found := strings.Cut(r.s, "=")
		if !found || strings.ContainsAny(key, "'\"[{( ,") {
			return "", nil, false
		}
		r.s = strings.TrimSpace(value)
		args[strings.TrimSpace(key)] = r.value(0)
	}
	return strings.TrimSpace(name), args, r.ok && r.s == ""
}

func (r *reader) take(token string) bool {
	rest, ok := strings.CutPrefix(r.s, token)
	if ok {
		r.s = rest
		r.space()
	}
	return ok
}

func (r *reader) fail() any {
	r.ok, r.s = false, ""
	return nil
}

func (r *reader) value(depth int) any {
	const deepest = 64
	switch {
	case r.s == "" || depth > deepest:
		return r.fail()
	case r.s[0] == '"' || r.s[0] == '\'':
		return r.str()
	case r.take("["):
		list := []any{}
		for r.ok && !r.ends("]") {
			if len(list) > 0 && !r.take(",") {
				return r.fail()
			}
			if len(list) > 0 && r.take("]") {
				break
			}
			list = append(list, r.value(depth+1))
		}
		return list
	case r.take("{"):
		return r.dict(depth)
	}
	return r.word()
}

func (r *reader) dict(depth int) any {
	m := map[string]any{}
	for r.ok && !r.ends("}") {
		if len(m) > 0 && !r.take(",") {
			return r.fail()
		}
		if len(m) > 0 && r.take("}") {
			break
		}
		key, isText := r.key(depth)
		if !isText || !r.take(":") {
			return r.fail()
		}
		m[key] = r.value(depth + 1)
	}
	return m
}

func (r *reader) key(depth int) (string, bool) {
	if r.lenient && r.s != "" && r.s[0] != '"' && r.s[0] != '\'' {
		name, rest, ok := strings.Cut(r.s, ":")
		r.s = ":" + rest
		return strings.Trim(name, "\" \t\r\n"), ok
	}
	s, ok := r.value(depth + 1).(string)
	return s, ok
}

func (r *reader) str() any {
	quote := r.s[0]
	var b strings.Builder
	for i := 1; i < len(r.s); i++ {
		switch c := r.s[i]; {
		case c == quote:
			r.s = r.s[i+1:]
			r.space()
			return b.String()
		case c != '\\':
			b.WriteByte(c)
		default:
			// strconv knows the escapes of Python that are of interest here.
			ch, _, tail, err := strconv.UnquoteChar(r.s[i:], quote)
			if err != nil {
				return r.fail()
			}
			b.WriteRune(ch)
			i = len(r.s) - len(tail) - 1
		}
	}
	return r.fail()
}

func (r *reader) word() any {
	n := strings.IndexAny(r.s, ",)]} \t\r\n:")
	if n < 0 {
		n = len(r.s)
	}
	word := r.s[:n]
	r.s = r.s[n:]
	r.space()
	if r.lenient {
		word = strings.TrimSuffix(word, `"`)
	}
	switch word {
	case "True", "true":
		return true
	case "False", "false":
		return false
	case "None", "null":
		return nil
	}
	if _, err := strconv.ParseFloat(word, 64); err != nil || strings.ContainsAny(word, "xX_nN") {
		return r.fail()
	}
	return json.Number(word)
}
