package view

import "sync"

// Declared are the property names in the schema of an object. Nothing in it may
// be changed.
type Declared struct {
	Names    []string // the declared properties, in the order of the schema
	Required []string // declared or not
	named    map[string]bool
	required map[string]bool

	once   sync.Once
	folded map[string][]string
}

// Has reports whether name is declared.
func (d *Declared) Has(name string) bool { return d.named[name] }

// Requires reports whether name is required.
func (d *Declared) Requires(name string) bool { return d.required[name] }

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

// DeclaredBy returns the names in these schemas, each once.
func DeclaredBy(schemas []*Node) *Declared {
	d := &Declared{named: map[string]bool{}, required: map[string]bool{}}
	for _, s := range schemas {
		for p := range s.Get("properties").Each() {
			if name := p.Key(); p.IsMember() && !d.named[name] {
				d.named[name] = true
				d.Names = append(d.Names, name)
			}
		}
		for _, name := range s.Required {
			if name != "" && !d.required[name] {
				d.required[name] = true
				d.Required = append(d.Required, name)
			}
		}
	}
	return d
}

// Declared returns the names in n and its alternatives. The View remembers
// them, so that many invalid calls do not collect them again.
func (v *View) Declared(n *Node) *Declared {
	if v == nil {
		return DeclaredBy(nil)
	}
	v.mu.Lock()
	known := v.known[n]
	v.mu.Unlock()
	if known != nil {
		return known
	}
	known = DeclaredBy(n.Alternatives())
	v.mu.Lock()
	defer v.mu.Unlock()
	if size := len(known.Names) + len(known.Required); size <= v.left {
		v.left -= size
		v.known[n] = known
	}
	return known
}
