package gemini

import (
	"slices"
	"sort"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// isName reports whether key is the member camel in one of the two spellings
// that the server reads.
func isName(key, camel string) bool {
	if key == camel {
		return true
	}
	i := 0
	for _, c := range []byte(camel) {
		if 'A' <= c && c <= 'Z' {
			if i >= len(key) || key[i] != '_' {
				return false
			}
			i++
			c += 'a' - 'A'
		}
		if i >= len(key) || key[i] != c {
			return false
		}
		i++
	}
	return i == len(key)
}

// get returns the member camel of object in either spelling, the last one
// where there are several. null is absent.
func get(object rawjson.Value, camel string) rawjson.Value {
	var found rawjson.Value
	for m := range object.Each() {
		if isName(m.Key(), camel) {
			found = m
		}
	}
	if found.Kind() == rawjson.Null {
		return rawjson.Value{}
	}
	return found
}

// getKind is get for a member that must have that kind, if it is there.
func getKind(object rawjson.Value, camel string, kind rawjson.Kind) (rawjson.Value, error) {
	v := get(object, camel)
	if v.Exists() && v.Kind() != kind {
		return v, codec.Shapef("%s is of kind %s", camel, v.Kind())
	}
	return v, nil
}

func getText(object rawjson.Value, camel string) (string, error) {
	v, err := getKind(object, camel, rawjson.String)
	return v.Str(), err
}

// getList returns the elements of a list, and what holds them: an array, or
// one object alone.
func getList(object rawjson.Value, camel string) ([]rawjson.Value, rawjson.Value, error) {
	v := get(object, camel)
	switch v.Kind() {
	case rawjson.Invalid:
		return nil, v, nil
	case rawjson.Object:
		return []rawjson.Value{v}, v, nil
	case rawjson.Array:
		list := slices.Collect(v.Each())
		for _, e := range list {
			if e.Kind() != rawjson.Object {
				return nil, v, codec.Shapef("%s holds a value of kind %s", camel, e.Kind())
			}
		}
		return list, v, nil
	}
	return nil, v, codec.Shapef("%s is of kind %s", camel, v.Kind())
}

// getTexts returns a list of strings.
func getTexts(object rawjson.Value, camel string) ([]string, error) {
	v, err := getKind(object, camel, rawjson.Array)
	if err != nil {
		return nil, err
	}
	var out []string
	for e := range v.Each() {
		if e.Kind() != rawjson.String {
			return nil, codec.Shapef("%s holds a value of kind %s", camel, e.Kind())
		}
		out = append(out, e.Str())
	}
	return out, nil
}

// spelled returns camel as object spells it. Both spellings side by side have
// no meaning that one could edit.
func spelled(object rawjson.Value, camel string) (string, error) {
	key := ""
	for m := range object.Each() {
		switch k := m.Key(); {
		case k == key || !isName(k, camel):
		case key != "":
			return "", codec.Unencodablef("%s stands there in two spellings", camel)
		default:
			key = k
		}
	}
	if key == "" {
		return camel, nil
	}
	return key, nil
}

// only returns the member camel, for an edit inside it: it must stand there
// once, in one spelling.
func only(object rawjson.Value, camel string) (rawjson.Value, error) {
	key, err := spelled(object, camel)
	if err != nil {
		return rawjson.Value{}, err
	}
	return codec.Only(object, key)
}

// setAll is codec.SetAll for members in either spelling.
func setAll(object rawjson.Value, members ...codec.Member) ([]rawjson.Edit, error) {
	members = slices.Clone(members)
	for i, m := range members {
		key, err := spelled(object, m.Key)
		if err != nil {
			return nil, err
		}
		members[i].Key = key
	}
	return codec.SetAll(object, members...)
}

// edited returns v's own text with members set in it.
func edited(v rawjson.Value, members ...codec.Member) (string, error) {
	edits, err := setAll(v, members...)
	if err != nil {
		return "", err
	}
	return codec.Within(v, edits)
}

// spliced returns the edits that make items the elements of list, which is an
// array or one element alone.
func spliced(list rawjson.Value, items []string) []rawjson.Edit {
	if list.Kind() == rawjson.Array {
		return codec.Splice(list, items)
	}
	if len(items) == 1 && items[0] == list.Raw() {
		return nil
	}
	return []rawjson.Edit{codec.Replace(list, codec.Array(items))}
}

// unambiguous is ErrUnencodable if one of edits lies in a member whose key
// stands there twice: readers differ on which of them counts. What an edit
// replaces whole may hold such members.
func unambiguous(doc *rawjson.Doc, edits []rawjson.Edit) error {
	twice := doc.Duplicates()
	if len(twice) == 0 || len(edits) == 0 {
		return nil
	}
	edits = slices.SortedFunc(slices.Values(edits), func(a, b rawjson.Edit) int { return a.Start - b.Start })
	for _, v := range twice {
		start, end := v.Span()
		i := sort.Search(len(edits), func(i int) bool { return edits[i].Start > start })
		if i < len(edits) && edits[i].End < end {
			return codec.Unencodablef("the change lies in a member that stands there twice")
		}
	}
	return nil
}
