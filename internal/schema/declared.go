package schema

import (
	"sync"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Declared is what Names returns for one schema, with sets of both. Nothing in
// it may be changed.
type Declared struct {
	Names, Required []string
	named, required map[string]bool

	once   sync.Once
	folded map[string][]string
}

// Folded returns the names that fold makes folded of. fold must be the same
// function each time.
func (d *Declared) Folded(folded string, fold func(string) string) []string {
	d.once.Do(func() {
		d.folded = make(map[string][]string, len(d.Names))
		for _, name := range d.Names {
			if f := fold(name); f != "" {
				d.folded[f] = append(d.folded[f], name)
			}
		}
	})
	return d.folded[folded]
}

// Has reports whether name is declared.
func (d *Declared) Has(name string) bool { return d.named[name] }

// Requires reports whether name is required.
func (d *Declared) Requires(name string) bool { return d.required[name] }

// Declarations remembers what the schemas inside one document declare, so that
// many invalid calls do not read them again. It is safe for concurrent use.
type Declarations struct {
	root rawjson.Value

	mu    sync.Mutex
	known map[rawjson.Value]*Declared
	left  int // names that may still be remembered: schemas may refer to the same ones again and again
}

// NewDeclarations returns those of the document root, which may be absent.
func NewDeclarations(root rawjson.Value) *Declarations {
	return &Declarations{root: root, known: map[rawjson.Value]*Declared{}, left: 1000 + len(root.Raw())/8}
}

// Of returns what the schema s inside the document declares.
func (d *Declarations) Of(s rawjson.Value) *Declared {
	d.mu.Lock()
	known := d.known[s]
	d.mu.Unlock()
	if known != nil {
		return known
	}
	names, required := Names(d.root, s)
	known = &Declared{Names: names, Required: required, named: setOf(names), required: setOf(required)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if size := len(names) + len(required); size <= d.left {
		d.left -= size
		d.known[s] = known
	}
	return known
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}
