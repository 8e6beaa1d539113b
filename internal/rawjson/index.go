package rawjson

// An index makes looking up children cheap where a container has many.
type index struct {
	members  map[int32]map[string]int32 // by object
	elements map[int32][]int32          // by array
}

const (
	smallText      = 4 << 10 // bytes: reading it again is cheaper than an index
	smallContainer = 16      // children, likewise
)

// Indexed returns d for many look-ups: Get and At do not read large containers
// from their start each time. Its values never equal values of d.
func (d *Doc) Indexed() *Doc {
	if len(d.text) <= smallText || d.index != nil {
		return d
	}
	c := *d
	c.index = &index{members: map[int32]map[string]int32{}, elements: map[int32][]int32{}}
	for i := range int32(len(c.nodes)) {
		v := Value{&c, i}
		n := v.Len()
		switch {
		case n <= smallContainer:
		case v.Kind() == Object:
			members := make(map[string]int32, n)
			for m := range v.Each() {
				members[m.Key()] = m.i
			}
			c.index.members[i] = members
		default:
			elements := make([]int32, 0, n)
			for e := range v.Each() {
				elements = append(elements, e.i)
			}
			c.index.elements[i] = elements
		}
	}
	return &c
}

// member looks an object's member up. known is false for an object that has no
// index.
func (v Value) member(key string) (member Value, known bool) {
	if v.doc.index == nil {
		return Value{}, false
	}
	members, known := v.doc.index.members[v.i]
	if i, ok := members[key]; ok {
		member = Value{v.doc, i}
	}
	return member, known
}

// Indexed returns v in an indexed copy of its document.
func (v Value) Indexed() Value {
	if v.doc == nil {
		return v
	}
	return Value{v.doc.Indexed(), v.i}
}
