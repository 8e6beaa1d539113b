package schema

import (
	"cmp"
	"context"
	"maps"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// eval reads a text against nodes. A value is read again for each schema that
// applies to it, so the walk needs no tree. Every method returns the offset
// where the value ends, and whether the value is valid. Without collect, eval
// stops at the first fault, and the offset then means nothing.
type eval struct {
	text    string
	limits  rawjson.Limits
	empties Empties
	parsed  bool // the text is known to be JSON without duplicate keys
	collect bool // all faults are wanted
	tracked bool // scope is needed: the schema has dynamic references
	stopped bool // the result is unknown: too much work, or the text is not JSON
	nameOf  int  // the value of the member whose name is read, -1 for none

	spellings func() map[string]string // of the Schema, for SurelyValid with declared; else nil

	faults []fault
	scope  []*node // the schemas around the current one, outermost first
	depth  int     // of schemas that apply to one value

	mistyped   *node // the last schema that wanted another type
	mistypedAt int

	ctx           context.Context
	work, reserve int // see refill
}

// fault is one keyword that refused a value.
type fault struct {
	n            *node
	keyword      string    // "" for the schema false
	entry        string    // the place in the schema, if it is not the keyword
	at           int       // where the value starts
	name         bool      // the name of the member with the value at at was refused
	severalMatch bool      // oneOf: more than one branch fits
	causes       [][]fault // anyOf and oneOf: the faults of each branch
}

// marks are the members or elements of a value that some schema evaluated.
type marks struct {
	all bool
	at  map[int]bool
}

func (m *marks) set(i int) {
	if m != nil && m.at == nil {
		m.at = map[int]bool{}
	}
	if m != nil {
		m.at[i] = true
	}
}

const (
	lease     = 1 << 16 // work between two checks of the context, some 0.5 ms
	maxChain  = 4_000   // schemas that apply to one value and the values around it
	maxFaults = 20_000
)

// refill moves work from the reserve. It reports false if the work is used up or
// the context has ended.
func (e *eval) refill() bool {
	n := min(lease, e.reserve)
	if e.stopped || n <= 0 || e.ctx.Err() != nil {
		_, ok := e.giveUp()
		return ok
	}
	e.reserve, e.work = e.reserve-n, e.work+n
	return e.work >= 0 || e.refill()
}

// spend takes n units of work, and reports whether they were left.
func (e *eval) spend(n int) bool {
	e.work -= n
	return e.work >= 0 || e.refill()
}

// giveUp ends the evaluation without a result.
func (e *eval) giveUp() (int, bool) {
	e.stopped, e.work, e.reserve, e.collect = true, -1, 0, false
	return 0, false
}

// add notes a fault.
func (e *eval) add(x fault) {
	if !e.collect || len(e.faults) == maxFaults {
		return
	}
	e.work -= 64 // an issue will be made of it
	if e.nameOf >= 0 {
		x.at, x.name = e.nameOf, true
	}
	e.faults = append(e.faults, x)
}

// check notes a fault of a keyword unless ok. It returns ok.
func (e *eval) check(ok bool, n *node, keyword string, at int) bool {
	if !ok {
		e.refuse(n, keyword, at)
	}
	return ok
}

func (e *eval) refuse(n *node, keyword string, at int) { e.add(fault{n: n, keyword: keyword, at: at}) }

// endsOnFault reports whether a fault ends the reading of a value, which is invalid.
func (e *eval) endsOnFault(valid *bool) bool {
	*valid = false
	return !e.collect
}

func (e *eval) space(i int) int {
	if i < len(e.text) && e.text[i] > ' ' {
		return i
	}
	start := i
	for i < len(e.text) && (e.text[i] == ' ' || e.text[i] == '\t' || e.text[i] == '\n' || e.text[i] == '\r') {
		i++
	}
	e.work -= (i - start) / 8
	return i
}

// value reads the value at an offset, inside that many containers, against n.
func (e *eval) value(n *node, at, depth int, seen *marks) (end int, valid bool) {
	if e.work--; e.work < 0 && !e.refill() || at >= len(e.text) {
		return e.giveUp()
	}
	if !n.combines && !e.tracked {
		return e.single(n, at, depth, seen)
	}
	if e.depth++; e.depth > maxChain {
		return e.giveUp()
	}
	outer, empties := len(e.scope), e.empties
	if empties == RefuseOptional {
		e.empties = RefuseAnyEmpty // what one schema does not declare another may
	}
	if e.tracked {
		n = e.dynamicTarget(n)
		e.scope = append(e.scope, n)
	}
	end, valid = e.combined(n, at, depth, seen)
	e.depth--
	e.scope, e.empties = e.scope[:outer], empties
	return end, valid
}

// kindOf is the kind of the values that start with a byte.
var kindOf = func() (t [256]view.Kinds) {
	t['"'], t['{'], t['['], t['t'], t['f'], t['n'], t['-'] = view.String, view.Object, view.Array, view.Bool, view.Bool, view.Null, view.Number
	for c := '0'; c <= '9'; c++ {
		t[c] = view.Number
	}
	return t
}()

// single reads a value against the keywords of n itself.
func (e *eval) single(n *node, at, depth int, seen *marks) (end int, valid bool) {
	kind := kindOf[e.text[at]]
	switch {
	case n.never:
		return e.skipValue(at, depth, e.check(false, n, "", at))
	case kind == view.Number:
		return e.number(n, at)
	case n.types&kind == 0:
		e.mistyped, e.mistypedAt = n, at
		return e.skipValue(at, depth, e.check(false, n, "type", at))
	case kind == view.String:
		return e.str(n, at)
	}
	listed := true
	if n.hasValues {
		if end, valid = e.skipValue(at, depth, true); !valid {
			return end, false
		}
		if !e.isListed(n, at, e.text[at:end], false) && e.endsOnFault(&listed) {
			return 0, false
		}
	}
	switch kind {
	case view.Object:
		end, valid = e.object(n, at, depth+1, seen)
	case view.Array:
		end, valid = e.array(n, at, depth+1, seen)
	default:
		end, valid = e.literal(at)
	}
	return end, valid && listed
}

// skipValue reads a value that needs no validation, to find its end. It returns ok.
func (e *eval) skipValue(at, depth int, ok bool) (end int, _ bool) {
	if !ok && !e.collect {
		return 0, false
	}
	end, read := e.value(anything, at, depth, nil)
	return end, ok && read
}

// apply reads the value again for another schema. If the value fits, what the
// schema evaluated is added to seen.
func (e *eval) apply(n *node, at, depth int, seen *marks) (end int, valid bool) {
	if seen == nil {
		return e.value(n, at, depth, nil)
	}
	own := marks{at: map[int]bool{}}
	if end, valid = e.value(n, at, depth, &own); valid {
		seen.all = seen.all || own.all
		maps.Copy(seen.at, own.at)
	}
	return end, valid
}

// fits is apply without noting faults.
func (e *eval) fits(n *node, at, depth int, seen *marks) (end int, valid bool) {
	if !e.collect {
		return e.apply(n, at, depth, seen)
	}
	e.collect = false
	end, valid = e.apply(n, at, depth, seen)
	e.collect = !e.stopped
	return end, valid
}

// combined reads a value against n and all that n applies to the same value.
func (e *eval) combined(n *node, at, depth int, seen *marks) (end int, valid bool) {
	if seen == nil && (n.unevaluatedProps != nil || n.unevaluatedItems != nil) {
		seen = &marks{at: map[int]bool{}}
	}
	valid = true
	if !n.onlyCombines {
		var ok bool
		if end, ok = e.single(n, at, depth, seen); !ok && (e.endsOnFault(&valid) || e.mistyped == n && e.mistypedAt == at) {
			return end, false // jsonschema/v5 checks no more than the type then
		}
	}
	var ok bool
	if end, ok = e.lists(n, at, depth, seen, end); !ok && e.endsOnFault(&valid) {
		return 0, false
	}
	valid = e.conditions(n, at, depth, seen) && valid
	return end, valid
}

// lists reads a value against allOf with $ref, anyOf and oneOf. It returns end if n has none.
func (e *eval) lists(n *node, at, depth int, seen *marks, end int) (_ int, valid bool) {
	valid = true
	for _, sub := range n.all {
		var ok bool
		if end, ok = e.apply(sub, at, depth, seen); !ok && e.endsOnFault(&valid) {
			return 0, false
		}
	}
	for i, subs := range [2][]*node{n.anyOf, n.oneOf} {
		if subs == nil {
			continue
		}
		var ok bool
		if end, ok = e.branches(n, subs, i == 1, at, depth, seen); !ok && e.endsOnFault(&valid) {
			return 0, false
		}
	}
	return end, valid
}

// conditions reads a value against not, if, and what applies to its unevaluated children.
func (e *eval) conditions(n *node, at, depth int, seen *marks) (valid bool) {
	valid = true
	if n.not != nil {
		_, ok := e.fits(n.not, at, depth, nil)
		if !e.check(!ok, n, "not", at) && e.endsOnFault(&valid) {
			return false
		}
	}
	if n.cond != nil {
		next := n.then
		if _, ok := e.fits(n.cond, at, depth, seen); !ok {
			next = n.otherwise
		}
		if next != nil {
			if _, ok := e.apply(next, at, depth, seen); !ok && e.endsOnFault(&valid) {
				return false
			}
		}
	}
	if n.unevaluatedProps != nil && e.text[at] == '{' || n.unevaluatedItems != nil && e.text[at] == '[' {
		valid = e.unevaluated(n, at, depth+1, seen) && valid
	}
	return valid
}

// branches reads a value against the branches of anyOf, or of oneOf. It
// collects faults only if no branch fits, so that nested branches are read
// twice and not once more for each level.
func (e *eval) branches(n *node, subs []*node, one bool, at, depth int, seen *marks) (end int, valid bool) {
	for _, sub := range subs {
		branchEnd, ok := e.fits(sub, at, depth, seen)
		switch {
		case !ok:
		case valid && one:
			e.add(fault{n: n, keyword: "oneOf", at: at, severalMatch: true})
			return branchEnd, false
		case !one && seen == nil:
			return branchEnd, true
		default:
			end, valid = branchEnd, true
		}
	}
	if valid || !e.collect {
		return end, valid
	}
	all, x := e.faults, fault{n: n, keyword: "anyOf", at: at}
	if one {
		x.keyword = "oneOf"
	}
	for _, sub := range subs {
		e.faults = nil
		end, _ = e.value(sub, at, depth, nil)
		x.causes = append(x.causes, e.faults)
	}
	e.faults = all
	e.add(x)
	return end, false
}

// dynamicTarget returns the schema that a dynamic reference leads to: the one with that
// anchor in the outermost resource.
func (e *eval) dynamicTarget(n *node) *node {
	if n.refers == nil {
		return n
	}
	for _, s := range e.scope {
		if n.recursive && n.refers.recursiveAnchor && s.recursiveAnchor {
			return s
		}
		if to := s.resource.anchors[n.anchor]; to != nil && n.anchor != "" {
			return to
		}
	}
	return n.refers
}

// unevaluated reads what no other schema evaluated against unevaluatedProperties or
// unevaluatedItems.
func (e *eval) unevaluated(n *node, at, depth int, seen *marks) (valid bool) {
	valid = true
	sub, keyword := n.unevaluatedItems, "unevaluatedItems"
	if e.text[at] == '{' {
		sub, keyword = n.unevaluatedProps, "unevaluatedProperties"
	}
	i := e.space(at + 1)
	for count := 0; e.text[i] != '}' && e.text[i] != ']'; count++ {
		if e.text[at] == '{' {
			end, _, _ := rawjson.StringEnd(e.text, i, true)
			i = e.space(e.space(end) + 1)
		}
		var ok bool
		if seen.all || seen.at[count] {
			i, ok = e.skipValue(i, depth, true)
		} else {
			i, ok = e.child(sub, n, keyword, i, depth)
		}
		if !ok && e.endsOnFault(&valid) {
			return false
		}
		if i = e.space(i); e.text[i] == ',' {
			i = e.space(i + 1)
		}
	}
	seen.all = true
	return valid
}

// child reads a member or an element against the schema that n has for all of
// them. If that is false, the fault is one of n's keyword.
func (e *eval) child(sub, n *node, keyword string, at, depth int) (end int, valid bool) {
	if sub.never {
		return e.skipValue(at, depth, e.check(false, n, keyword, at))
	}
	return e.value(sub, at, depth, nil)
}

// object reads an object. In a text that was not parsed, each key may occur once.
func (e *eval) object(n *node, at, depth int, seen *marks) (end int, valid bool) {
	if e.parsed || n.closed && len(n.patterns) == 0 {
		return e.members(n, at, depth, seen, nil)
	}
	var undeclared nameSet
	return e.members(n, at, depth, seen, &undeclared)
}

// nameSet is a set of names: the first few in an array, which needs no allocation.
type nameSet struct {
	first [8]string
	count int // of first
	more  map[string]bool
}

// add adds a name, and reports whether it was there.
func (s *nameSet) add(name string) (duplicate bool) {
	if s.more[name] || slices.Contains(s.first[:s.count], name) {
		return true
	}
	if s.count < len(s.first) {
		s.first[s.count] = name
		s.count++
		return false
	}
	if s.more == nil {
		s.more = map[string]bool{}
	}
	s.more[name] = true
	return false
}

// bits is a set of small numbers.
type bits []uint64

func (b bits) has(i int) bool { return b[i>>6]&(1<<(i&63)) != 0 }

// members reads an object. undeclared gets the names that n does not declare; nil if
// the text holds no duplicates, or each such name is a fault.
func (e *eval) members(n *node, at, depth int, seen *marks, undeclared *nameSet) (end int, valid bool) {
	if depth > e.limits.Depth {
		return e.giveUp()
	}
	var few [4]uint64
	declared := bits(few[:]) // of n.props, those that were read
	if len(n.props) > 64*len(few) {
		declared = make(bits, (len(n.props)+63)/64)
	}
	count, unknown := 0, false
	valid = true
	i := e.space(at + 1)
	for closed := i < len(e.text) && e.text[i] == '}'; !closed; count++ {
		keyAt := i
		key, start, ok := e.key(i)
		if !ok {
			return e.giveUp()
		}
		i = start
		var sub *node
		must, duplicate := false, false
		if p := n.find(key); p >= 0 {
			duplicate = declared.has(p)
			declared[p>>6] |= 1 << (p & 63)
			sub, must = n.props[p].schema, n.props[p].must
		} else if e.spellings != nil && (len(n.props) > 0 || e.otherCase(key)) {
			return e.giveUp()
		} else if undeclared != nil {
			duplicate = undeclared.add(key)
		}
		if duplicate && !e.parsed || e.empties != AllowEmpty && (sub != nil && !must || e.empties == RefuseAnyEmpty) && e.emptyAt(i) {
			return e.giveUp()
		}
		if sub != nil && n.onlyDeclared && seen == nil {
			i, ok = e.value(sub, i, depth, nil)
		} else {
			i, ok = e.member(n, sub, key, keyAt, i, depth, count, seen, &unknown)
		}
		if !ok && e.endsOnFault(&valid) {
			return 0, false
		}
		if i, closed, ok = e.separator(i, '}'); !ok {
			return e.giveUp()
		}
	}
	if unknown {
		valid = e.check(false, n, "additionalProperties", at)
	}
	return i + 1, e.wholeObject(n, declared, count, at, depth-1, seen) && valid
}

// otherCase reports whether any schema declares a property that differs from key in letter case only.
func (e *eval) otherCase(key string) bool {
	name, declared := e.spellings()[rawjson.Fold(key)]
	return declared && name != key
}

// spellings returns the names in "properties" anywhere in a schema, by their folded forms. A form
// that several names have has "", as the name "" has.
func spellings(schema rawjson.Value) map[string]string {
	known := map[string]string{}
	var walk func(v rawjson.Value)
	walk = func(v rawjson.Value) {
		for p := range v.Get("properties").Each() {
			name, folded := p.Key(), rawjson.Fold(p.Key())
			if other, seen := known[folded]; seen && other != name {
				name = ""
			}
			known[folded] = name
		}
		for sub := range v.Each() {
			walk(sub)
		}
	}
	walk(schema)
	return known
}

// wholeObject checks required, the count of members and dependencies.
func (e *eval) wholeObject(n *node, declared bits, count, at, depth int, seen *marks) (valid bool) {
	e.work -= n.requires
	valid = true
	for i, must := range n.required {
		if must&^declared[i] != 0 {
			valid = e.check(false, n, "required", at)
			break
		}
	}
	valid = e.check(count >= n.minProps, n, "minProperties", at) && valid
	valid = e.check(count <= n.maxProps, n, "maxProperties", at) && valid
	if seen != nil && (n.closed || n.additional != nil) {
		seen.all = true
	}
	if n.depends != nil && (valid || e.collect) {
		valid = e.dependencies(n, declared, at, depth, seen) && valid
	}
	return valid
}

// key reads a name and the colon after it. It returns where the value of the member starts,
// and false for text that is not JSON.
func (e *eval) key(at int) (key string, value int, ok bool) {
	if at >= len(e.text) || e.text[at] != '"' {
		return "", 0, false
	}
	end, simple, ok := rawjson.StringEnd(e.text, at, e.parsed)
	if !ok {
		return "", 0, false
	}
	e.work -= end - at
	key = e.text[at+1 : end-1]
	if !simple {
		key = rawjson.Exact(e.text[at:end])
	}
	if end = e.space(end); end >= len(e.text) || e.text[end] != ':' {
		return "", 0, false
	}
	return key, e.space(end + 1), true
}

// dependencies checks dependencies, dependentRequired and dependentSchemas.
func (e *eval) dependencies(n *node, declared bits, at, depth int, seen *marks) (valid bool) {
	valid = true
	for _, d := range n.depends {
		if !declared.has(d.prop) || !valid && !e.collect {
			continue
		}
		for j, p := range d.needs {
			if !declared.has(p) {
				e.add(fault{n: n, keyword: "dependentRequired", entry: d.keyword + "/" + strconv.Itoa(j), at: at})
				valid = false
			}
		}
		if d.schema != nil {
			_, ok := e.apply(d.schema, at, depth, seen)
			valid = valid && ok
		}
	}
	return valid
}

// separator reads what follows a member or an element: the comma up to the next one, or the
// space up to the closing bracket.
func (e *eval) separator(i int, closer byte) (_ int, closed, ok bool) {
	if i = e.space(i); i >= len(e.text) || e.text[i] == closer {
		return i, true, i < len(e.text)
	}
	return e.space(i + 1), false, e.text[i] == ','
}

// member reads a member against all schemas that n has for it. sub is the schema of the
// declared property. unknown is set if n allows no member of that name.
func (e *eval) member(n, sub *node, key string, keyAt, at, depth, index int, seen *marks, unknown *bool) (end int, valid bool) {
	valid, end = true, -1
	evaluated := sub != nil
	if sub != nil {
		var ok bool
		if end, ok = e.value(sub, at, depth, nil); !ok && e.endsOnFault(&valid) {
			return 0, false
		}
	}
	for i := range n.patterns {
		p := &n.patterns[i]
		if !e.spend(matchCost(p.size, len(key))) {
			return e.giveUp()
		}
		if p.re.MatchString(strings.ToValidUTF8(key, "\ufffd")) {
			evaluated = true
			var ok bool
			if end, ok = e.value(p.schema, at, depth, nil); !ok && e.endsOnFault(&valid) {
				return 0, false
			}
		}
	}
	if !evaluated && (n.closed || n.additional != nil) {
		evaluated = true
		var ok bool
		if end, ok = e.additional(n, at, depth, unknown); !ok && e.endsOnFault(&valid) {
			return 0, false
		}
	}
	if evaluated {
		seen.set(index)
	}
	valid = e.memberName(n, key, keyAt, at, depth) && valid
	if end < 0 {
		return e.skipValue(at, depth, valid)
	}
	return end, valid
}

// additional reads the value of a member that n does not declare.
func (e *eval) additional(n *node, at, depth int, unknown *bool) (end int, valid bool) {
	if n.closed {
		*unknown = true
		return -1, false
	}
	return e.child(n.additional, n, "additionalProperties", at, depth)
}

// memberName checks the name of the member with the value at at.
func (e *eval) memberName(n *node, key string, keyAt, at, depth int) (valid bool) {
	valid = true
	if n.regexNames {
		_, err := regexp.Compile(key)
		valid = e.check(err == nil, n, "", at)
	}
	if n.names != nil {
		outer, empties := e.nameOf, e.empties
		e.nameOf, e.empties = at, AllowEmpty
		_, ok := e.value(n.names, keyAt, depth, nil)
		e.nameOf, e.empties = outer, empties
		valid = valid && ok
	}
	return valid
}

// find returns the index of a property in n.props, -1 for none.
func (n *node) find(key string) int {
	if n.index != nil {
		if i, ok := n.index[key]; ok {
			return i
		}
		return -1
	}
	for i := range n.props {
		if n.props[i].name == key {
			return i
		}
	}
	return -1
}

// emptyAt reports whether the value at i is null, {} or [], or cut off.
func (e *eval) emptyAt(i int) bool {
	if i >= len(e.text) || e.text[i] == 'n' {
		return true
	}
	if c := e.text[i]; c == '{' || c == '[' {
		j := e.space(i + 1)
		return j >= len(e.text) || e.text[j] == c+2
	}
	return false
}

// array reads an array.
func (e *eval) array(n *node, at, depth int, seen *marks) (end int, valid bool) {
	if depth > e.limits.Depth {
		return e.giveUp()
	}
	count, contained := 0, 0
	var different map[string]bool // the values so far, for uniqueItems; nil once there are two equal ones
	if n.unique {
		different = map[string]bool{}
	}
	valid = true
	i := e.space(at + 1)
	for closed := i < len(e.text) && e.text[i] == ']'; !closed; count++ {
		if i >= len(e.text) || e.empties == RefuseAnyEmpty && e.emptyAt(i) {
			return e.giveUp()
		}
		ok := true
		switch {
		case count < len(n.prefix):
			end, ok = e.value(n.prefix[count], i, depth, nil)
			seen.set(count)
		case n.items != nil:
			end, ok = e.child(n.items, n, n.itemsWord, i, depth)
			seen.set(count)
		default:
			end, ok = e.skipValue(i, depth, !n.tuple)
		}
		if !ok && e.endsOnFault(&valid) {
			return 0, false
		}
		if n.contains != nil && e.contains(n, i, count, depth, seen) {
			contained++
		}
		if different != nil && !e.addDifferent(&different, i, end) {
			if e.check(false, n, "uniqueItems", at); e.endsOnFault(&valid) {
				return 0, false
			}
		}
		if i, closed, ok = e.separator(end, ']'); !ok {
			return e.giveUp()
		}
	}
	return i + 1, e.wholeArray(n, count, contained, at) && valid
}

// contains reports whether an element matches the schema of contains.
func (e *eval) contains(n *node, at, index, depth int, seen *marks) bool {
	_, ok := e.fits(n.contains, at, depth, nil)
	if ok && n.marksContained {
		seen.set(index)
	}
	return ok
}

// addDifferent adds the value from at to end to the values of an array. If it equals one of them
// it reports false, and the values are not needed any more.
func (e *eval) addDifferent(values *map[string]bool, at, end int) bool {
	if !e.spend(8*(end-at) + 10) {
		return false
	}
	key := keyOf(e.text[at:end])
	if (*values)[key] {
		*values = nil
		return false
	}
	(*values)[key] = true
	return true
}

// wholeArray checks the keywords that count elements.
func (e *eval) wholeArray(n *node, count, contained, at int) (valid bool) {
	valid = e.check(!n.tuple || count <= len(n.prefix), n, "additionalItems", at)
	valid = e.check(count >= n.minItems, n, "minItems", at) && valid
	valid = e.check(count <= n.maxItems, n, "maxItems", at) && valid
	if n.contains != nil {
		valid = e.check(contained >= n.minContains, n, "minContains", at) && valid
		valid = e.check(contained <= n.maxContains, n, "maxContains", at) && valid
	}
	return valid
}

// isListed reports whether a value is one of enum and const: the string s, or the
// value with the text s.
func (e *eval) isListed(n *node, at int, s string, isText bool) bool {
	valid := true
	for i, v := range [2]*values{n.constant, n.enum} {
		if v != nil {
			has := isText && v.hasText(s) || !isText && len(v.keys) > 0 && e.spend(8*len(s)) && v.keys[keyOf(s)]
			valid = e.check(has, n, [2]string{"const", "enum"}[i], at) && valid
		}
	}
	return valid
}

func (e *eval) literal(at int) (int, bool) {
	for _, word := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(e.text[at:], word) {
			return at + len(word), true
		}
	}
	return e.giveUp()
}

// str reads a string.
func (e *eval) str(n *node, at int) (end int, valid bool) {
	end, simple, ok := rawjson.StringEnd(e.text, at, e.parsed)
	if !ok {
		return e.giveUp()
	}
	if e.work -= end - at; n.anyText {
		return end, true
	}
	s := e.text[at+1 : end-1]
	if !simple {
		s = rawjson.Unquote(e.text[at:end])
	}
	valid = !n.hasValues || e.isListed(n, at, rawjson.Exact(e.text[at:end]), true)
	if len(s)/utf8.UTFMax < n.minLength || len(s) > n.maxLength {
		c := utf8.RuneCountInString(s)
		valid = e.check(c >= n.minLength, n, "minLength", at) && valid
		valid = e.check(c <= n.maxLength, n, "maxLength", at) && valid
	}
	if n.pattern != nil && (valid || e.collect) {
		if !e.spend(matchCost(n.patternSize, len(s))) {
			return e.giveUp()
		}
		valid = e.check(n.pattern.MatchString(s), n, "pattern", at) && valid
	}
	if n.format != nil && (valid || e.collect) {
		if !e.spend(4*len(s) + 20) {
			return e.giveUp()
		}
		valid = e.check(n.format(s), n, "format", at) && valid
	}
	return end, valid
}

// matchCost is what matching a text of n bytes costs. RE2 is linear in text
// times program, and slower for texts that are too long to backtrack in.
func matchCost(size, n int) int {
	const long = 64 << 10
	if n > long {
		return 2 * n * (2 + size)
	}
	return n*size + 10
}

// number reads a number.
func (e *eval) number(n *node, at int) (end int, valid bool) {
	text, i := e.text, at
	if text[i] == '-' {
		i++
	}
	first, fraction, mantissa := i, 0, 0
	for ; i < len(text) && '0' <= text[i] && text[i] <= '9'; i++ {
		mantissa = 10*mantissa + int(text[i]-'0')
	}
	integer := i > first && (text[first] != '0' || i == first+1)
	short := integer // mantissa and fraction hold the value
	if i < len(text) && text[i] == '.' {
		integer = false
		for i++; i < len(text) && '0' <= text[i] && text[i] <= '9'; i++ {
			mantissa = 10*mantissa + int(text[i]-'0')
			fraction++
		}
		short = short && fraction > 0
	}
	if !short || i-at > min(e.limits.Number, exactDigits) || i < len(text) && text[i]|0x20 == 'e' {
		var ok bool
		if i, ok = rawjson.NumberEnd(text, at, e.limits); !ok {
			return e.giveUp()
		}
		integer, short = integer && !strings.ContainsAny(text[at:i], "eE"), false
	}
	s := text[at:i]
	if n.types&view.Number == 0 && (n.types&view.Integer == 0 || !integer && !wholeNumber(s)) {
		e.mistyped, e.mistypedAt = n, at
		return i, e.check(false, n, "type", at)
	}
	if e.work -= i - at; n.anyNum {
		return i, true
	}
	valid = !n.hasValues || e.isListed(n, at, s, false)
	var exact *big.Rat
	for j := range n.bounds {
		b, c := &n.bounds[j], 0
		switch {
		case short && b.exact:
			v := float64(mantissa) / math.Pow10(fraction) // as exact as a float64 is
			if first > at {
				v = -v
			}
			c = cmp.Compare(v, b.float)
		case exact == nil && !e.ratio(s, &exact):
			return i, false
		default:
			c = exact.Cmp(b.limit)
		}
		valid = e.check(!(b.lower && c < 0 || !b.lower && c > 0 || b.exclusive && c == 0), n, b.keyword, at) && valid
	}
	switch whole := short && integer && n.whole != 0; {
	case n.divisor == nil || !valid && !e.collect:
		return i, valid
	case whole:
		return i, e.check(int64(mantissa)%n.whole == 0, n, "multipleOf", at) && valid
	case exact == nil && !e.ratio(s, &exact):
		return i, false
	}
	d := (exact.Num().BitLen() + exact.Denom().BitLen() + n.divisor.Num().BitLen() + n.divisor.Denom().BitLen()) / 3
	if !e.spend(d + d*d/500) {
		return e.giveUp()
	}
	return i, e.check(new(big.Rat).Quo(exact, n.divisor).IsInt(), n, "multipleOf", at) && valid
}

// ratio reads a number. A number of 1e100000 takes as much memory as one of
// 100,000 digits.
func (e *eval) ratio(s string, exact **big.Rat) bool {
	d := len(s) + exponent(s)
	if d > 100_000 || !e.spend(50+d/2+d*d/1000) {
		e.giveUp()
		return false
	}
	*exact, _ = new(big.Rat).SetString(s)
	return *exact != nil
}

// exponent is the size of a number's exponent.
func exponent(s string) int {
	i := strings.IndexAny(s, "eE")
	if i < 0 {
		return 0
	}
	n, err := strconv.Atoi(s[i+1:])
	if err != nil {
		return 1 << 30
	}
	return max(n, -n)
}

// wholeNumber reports whether a number has no fraction, whatever its exponent.
func wholeNumber(s string) bool { return strings.LastIndexByte(rawjson.NumberKey(s), '-') <= 0 }

// keyOf returns a text for a JSON value. Two values have the same text exactly
// if they are equal.
func keyOf(text string) string {
	switch c := text[0]; {
	case c == '"' && strings.IndexByte(text, '\\') < 0:
		return text
	case c == '"':
		return `"` + rawjson.Exact(text) + `"`
	case c == '{' || c == '[':
		doc, err := rawjson.Parse(text, rawjson.Limits{Bytes: -1, Depth: -1, Number: -1, Exponent: -1, AnyBytes: true})
		if err != nil {
			return text
		}
		return doc.Canonical()
	case kindOf[c] != view.Number:
		return text
	}
	return rawjson.NumberKey(text)
}

// Empties are the empty values, null, {} and [], for which SurelyValid reports false, because
// the caller may want to strip them.
type Empties uint8

// The settings.
const (
	AllowEmpty     Empties = iota
	RefuseOptional         // empty values of properties that are declared and not required
	RefuseAnyEmpty         // all but the text as a whole
)

// maxSureDepth bounds the recursion of SurelyValid.
const maxSureDepth = 512

// SurelyValid reports whether text is one JSON object within limits, without
// duplicate keys and without the empties, that is valid. With declared it is false too
// for an undeclared key beside declared properties, and for one that OtherCase may
// report. If it is false, parse the text and call Validate. It reads the text once, stops
// at the first fault, and allocates nothing for most schemas.
func (s *Schema) SurelyValid(text string, limits rawjson.Limits, empties Empties, declared bool) bool {
	limits = limits.WithDefaults()
	if len(text) > limits.Bytes || limits.Depth > maxSureDepth {
		return false
	}
	e := eval{text: text, limits: limits, empties: empties, tracked: s.tracked, nameOf: -1, work: linear(len(text))}
	if declared {
		e.spellings = s.spellings
	}
	at := e.space(0)
	if at >= len(text) || text[at] != '{' {
		return false
	}
	end, valid := e.value(s.root, at, 0, nil)
	return valid && !e.stopped && e.space(end) == len(text)
}

// linear is a few times the work of reading so many bytes once. Branches read
// values again.
func linear(bytes int) int { return 8*bytes + 4096 }

// faults returns what refuses v. It takes the work off left. ok is false if the
// work was not enough or ctx ended: then nothing is known about v.
func (s *Schema) faults(ctx context.Context, v rawjson.Value, left *int) (_ []fault, ok bool) {
	most := min(maxWork+linear(len(v.Raw())), *left)
	first := min(lease, most)
	e := eval{text: v.Raw(), limits: unlimited, parsed: true, collect: true, tracked: s.tracked, nameOf: -1, work: first, reserve: most - first, ctx: ctx}
	e.value(s.root, 0, 0, nil)
	if *left -= most; e.spend(0) {
		*left += e.reserve + e.work
	}
	return e.faults, !e.stopped
}

var unlimited = rawjson.Limits{Bytes: -1, Depth: -1, Number: -1, Exponent: -1}.WithDefaults()
