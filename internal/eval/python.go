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
}

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
		r.s = strings.TrimLeft(rest, " \t\r\n")
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
		for r.ok && !r.take("]") {
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
	for r.ok && !r.take("}") {
		if len(m) > 0 && !r.take(",") {
			return r.fail()
		}
		if len(m) > 0 && r.take("}") {
			break
		}
		key, isText := r.value(depth + 1).(string)
		if !isText || !r.take(":") {
			return r.fail()
		}
		m[key] = r.value(depth + 1)
	}
	return m
}

func (r *reader) str() any {
	quote := r.s[0]
	var b strings.Builder
	for i := 1; i < len(r.s); i++ {
		switch c := r.s[i]; {
		case c == quote:
			r.s = strings.TrimLeft(r.s[i+1:], " \t\r\n")
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
	r.s = strings.TrimLeft(r.s[n:], " \t\r\n")
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
