package argsvalidate

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/middleware"
)

// notes is what explains several issues at once.
type notes struct {
	schemaSent bool               // the arguments are a schema
	instead    []middleware.Issue // said instead of the covered issues
	covered    map[string]bool    // by pointer
}

// findNotes looks for arguments that are the tool's schema, and for objects
// whose properties were sent inside an undeclared one.
func (f *feedback) findNotes(issues []middleware.Issue) notes {
	n := notes{covered: map[string]bool{}}
	missing := map[string][]string{} // keys by object
	var objects []string
	for _, i := range issues {
		if i.Code != "required" || len(objects) > maxIssues {
			continue
		}
		object := parent(i.Pointer)
		if missing[object] == nil {
			objects = append(objects, object)
		}
		segments := rawjson.Segments(i.Pointer)
		missing[object] = append(missing[object], segments[len(segments)-1])
	}
	if f.sentSchema() {
		n.schemaSent = true
		n.instead = append(n.instead, middleware.Issue{Message: "you sent the schema of the tool; send values for its properties"})
		for m := range f.args.Each() {
			n.covered[rawjson.JoinPointer("", m.Key())] = true
		}
	}
	for _, object := range objects {
		f.envelope(&n, object, missing[object])
	}
	return n
}

// sentSchema reports whether the arguments are a schema of an object, to a tool
// that has no such properties itself.
func (f *feedback) sentSchema() bool {
	if f.args.Get("type").Str() != "object" || f.args.Get("properties").Kind() != rawjson.Object {
		return false
	}
	d := f.declared("")
	return len(d.Names) > 0 && !d.Has("properties")
}

// envelope finds the undeclared property that holds what an object lacks.
func (f *feedback) envelope(n *notes, object string, missing []string) {
	declared := f.declared(object)
	for m := range f.args.At(object).Each() {
		if m.Kind() != rawjson.Object || declared.Has(m.Key()) || object == "" && n.schemaSent {
			continue
		}
		fits, all := 0, 0
		inside := map[string]bool{}
		for inner := range m.Each() {
			all++
			if declared.Has(inner.Key()) {
				fits++
				inside[inner.Key()] = true
			}
		}
		lacking := slices.DeleteFunc(slices.Clone(missing), func(key string) bool { return !inside[key] })
		if len(lacking) == 0 || 2*fits < all {
			continue
		}
		level := "at the top level"
		if object != "" {
			level = "in " + schema.Clip(middleware.Issue{Pointer: object}.Path())
		}
		name := schema.Clip(m.Key())
		text := "send what is inside " + name + " " + level + ", not inside " + name
		at := rawjson.JoinPointer(object, m.Key())
		n.instead = append(n.instead, middleware.Issue{Pointer: at, Message: text})
		n.covered[at] = true
		for _, key := range lacking {
			n.covered[rawjson.JoinPointer(object, key)] = true
		}
		return
	}
}
