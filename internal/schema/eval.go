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
	member  int  // the value of the member whose name is read, -1 for none
	found   []found
	scope   []*node // the schemas around the current one, outermost first
	depth   int     // of schemas that apply to one value

	mistyped   *node // the last schema that wanted another type
	mistypedAt int

	ctx           context.Context
	work, reserve int // see more
}

// found is one keyword that refused a value.
type found struct {
	n       *node
	keyword string    // "" for the schema false
	entry   string    // the place in the schema, if it is not the keyword
	at      int       // where the value starts
	name    bool      // the name of the member with the value at at was refused
	twice   bool      // oneOf: more than one branch fits
	causes  [][]found // anyOf and oneOf: the faults of each branch
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
	lease    = 1 << 16 // work between two looks at the context, some 0.5 ms
	maxChain = 4_000   // schemas that apply to one value and the values around it
	maxFound = 20_000
)

// more moves work from the reserve. It reports false if the work is used up or
// the context has ended.
func (f *eval) more() bool {
	n := min(lease, f.reserve)
	if f.stopped || n <= 0 || f.ctx.Err() != nil {
		_, ok := f.stop()
		return ok
	}
	f.reserve, f.work = f.reserve-n, f.work+n
	return f.work >= 0 || f.more()
}

// spend takes n units of work, and reports whether they were left.
func (f *eval) spend(n int) bool {
	f.work -= n
	return f.work >= 0 || f.more()
}

// stop gives up: the result is unknown.
func (f *eval) stop() (int, bool) {
	f.stopped, f.work, f.reserve, f.collect = true, -1, 0, false
	return 0, false
}

// add notes a fault.
func (f *eval) add(x found) {
	if !f.collect || len(f.found) == maxFound {
		return
	}
	f.work -= 64 // an issue will be made of it
	if f.member >= 0 {
		x.at, x.name = f.member, true
	}
	f.found = append(f.found, x)
}

// check notes a fault of a keyword unless ok. It returns ok.
func (f *eval) check(ok bool, n *node, keyword string, at int) bool {
	if !ok {
		f.refuse(n, keyword, at)
	}
	return ok
}

func (f *eval) refuse(n *node, keyword string, at int) { f.add(found{n: n, keyword: keyword, at: at}) }

// ends reports whether a fault ends the reading of a value, which is invalid.
func (f *eval) ends(valid *bool) bool {
	*valid = false
	return !f.collect
}

func (f *eval) space(i int) int {
	if i < len(f.text) && f.text[i] > ' ' {
		return i
	}
	start := i
	for i < len(f.text) && (f.text[i] == ' ' || f.text[i] == '\t' || f.text[i] == '\n' || f.text[i] == '\r') {
		i++
	}
	f.work -= (i - start) / 8
	return i
}

// value reads the value at an offset, inside that many containers, against n.
func (f *eval) value(n *node, at, depth int, seen *marks) (end int, valid bool) {
	if f.work--; f.work < 0 && !f.more() || at >= len(f.text) {
		return f.stop()
	}
	if !n.several && !f.tracked {
		return f.alone(n, at, depth, seen)
	}
	if f.depth++; f.depth > maxChain {
		return f.stop()
	}
	outer, empties := len(f.scope), f.empties
	if empties == RefuseOptional {
		f.empties = RefuseAnyEmpty // what one schema does not declare another may
	}
	if f.tracked {
		n = f.meant(n)
		f.scope = append(f.scope, n)
	}
	end, valid = f.together(n, at, depth, seen)
	f.depth--
	f.scope, f.empties = f.scope[:outer], empties
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

// alone reads a value against what n itself says.
func (f *eval) alone(n *node, at, depth int, seen *marks) (end int, valid bool) {
	kind := kindOf[f.text[at]]
	switch {
	case n.never:
		return f.after(at, depth, f.check(false, n, "", at))
	case kind == view.Number:
		return f.number(n, at)
	case n.types&kind == 0:
		f.mistyped, f.mistypedAt = n, at
		return f.after(at, depth, f.check(false, n, "type", at))
	case kind == view.String:
		return f.str(n, at)
	}
	listed := true
	if n.valued {
		if end, valid = f.after(at, depth, true); !valid {
			return end, false
		}
		if !f.listed(n, at, f.text[at:end], false) && f.ends(&listed) {
			return 0, false
		}
	}
	switch kind {
	case view.Object:
		end, valid = f.object(n, at, depth+1, seen)
	case view.Array:
		end, valid = f.array(n, at, depth+1, seen)
	default:
		end, valid = f.literal(at)
	}
	return end, valid && listed
}

// after reads a value that needs no validation, to find its end. It returns ok.
func (f *eval) after(at, depth int, ok bool) (end int, _ bool) {
	if !ok && !f.collect {
		return 0, false
	}
	end, read := f.value(anything, at, depth, nil)
	return end, ok && read
}

// apply reads the value again for another schema. If the value fits, what the
// schema evaluated is added to seen.
func (f *eval) apply(n *node, at, depth int, seen *marks) (end int, valid bool) {
	if seen == nil {
		return f.value(n, at, depth, nil)
	}
	own := marks{at: map[int]bool{}}
	if end, valid = f.value(n, at, depth, &own); valid {
		seen.all = seen.all || own.all
		maps.Copy(seen.at, own.at)
	}
	return end, valid
}

// fits is apply without noting faults.
func (f *eval) fits(n *node, at, depth int, seen *marks) (end int, valid bool) {
	if !f.collect {
		return f.apply(n, at, depth, seen)
	}
	f.collect = false
	end, valid = f.apply(n, at, depth, seen)
	f.collect = !f.stopped
	return end, valid
}

// together reads a value against n and all that n applies to the same value.
func (f *eval) together(n *node, at, depth int, seen *marks) (end int, valid bool) {
	if seen == nil && (n.restProps != nil || n.restItems != nil) {
		seen = &marks{at: map[int]bool{}}
	}
	valid = true
	if !n.bare {
		var ok bool
		if end, ok = f.alone(n, at, depth, seen); !ok && (f.ends(&valid) || f.mistyped == n && f.mistypedAt == at) {
			return end, false // jsonschema/v5 looks no further than at the type
		}
	}
	for _, sub := range n.all {
		var ok bool
		if end, ok = f.apply(sub, at, depth, seen); !ok && f.ends(&valid) {
			return 0, false
		}
	}
	if n.not != nil {
		_, ok := f.fits(n.not, at, depth, nil)
		if !f.check(!ok, n, "not", at) && f.ends(&valid) {
			return 0, false
		}
	}
	for i, subs := range [2][]*node{n.anyOf, n.oneOf} {
		if subs == nil {
			continue
		}
		var ok bool
		if end, ok = f.branches(n, subs, i == 1, at, depth, seen); !ok && f.ends(&valid) {
			return 0, false
		}
	}
	if n.cond != nil {
		next := n.then
		if _, ok := f.fits(n.cond, at, depth, seen); !ok {
			next = n.otherwise
		}
		if next != nil {
			if _, ok := f.apply(next, at, depth, seen); !ok && f.ends(&valid) {
				return 0, false
			}
		}
	}
	if n.restProps != nil && f.text[at] == '{' || n.restItems != nil && f.text[at] == '[' {
		valid = f.rest(n, at, depth+1, seen) && valid
	}
	return end, valid
}

// branches reads a value against the branches of anyOf, or of oneOf. It
// collects faults only if no branch fits, so that nested branches are read
// twice and not once more for each level.
func (f *eval) branches(n *node, subs []*node, one bool, at, depth int, seen *marks) (end int, valid bool) {
	for _, sub := range subs {
		e, ok := f.fits(sub, at, depth, seen)
		switch {
		case !ok:
		case valid && one:
			f.add(found{n: n, keyword: "oneOf", at: at, twice: true})
			return e, false
		case !one && seen == nil:
			return e, true
		default:
			end, valid = e, true
		}
	}
	if valid || !f.collect {
		return end, valid
	}
	all, x := f.found, found{n: n, keyword: "anyOf", at: at}
	if one {
		x.keyword = "oneOf"
	}
	for _, sub := range subs {
		f.found = nil
		end, _ = f.value(sub, at, depth, nil)
		x.causes = append(x.causes, f.found)
	}
	f.found = all
	f.add(x)
	return end, false
}

// meant returns the schema that a dynamic reference leads to: the one with that
// anchor in the outermost resource.
func (f *eval) meant(n *node) *node {
	if n.refers == nil {
		return n
	}
	for _, s := range f.scope {
		if n.recursive && n.refers.recursiveAnchor && s.recursiveAnchor {
			return s
		}
		if to := s.resource.anchors[n.anchor]; to != nil && n.anchor != "" {
			return to
		}
	}
	return n.refers
}

// rest reads what no other schema evaluated against unevaluatedProperties or
// unevaluatedItems.
func (f *eval) rest(n *node, at, depth int, seen *marks) (valid bool) {
	valid = true
	sub, keyword := n.restItems, "unevaluatedItems"
	if f.text[at] == '{' {
		sub, keyword = n.restProps, "unevaluatedProperties"
	}
	i := f.space(at + 1)
	for count := 0; f.text[i] != '}' && f.text[i] != ']'; count++ {
		if f.text[at] == '{' {
			end, _, _ := rawjson.StringEnd(f.text, i, true)
			i = f.space(f.space(end) + 1)
		}
		var ok bool
		if seen.all || seen.at[count] {
			i, ok = f.after(i, depth, true)
		} else {
			i, ok = f.child(sub, n, keyword, i, depth)
		}
		if !ok && f.ends(&valid) {
			return false
		}
		if i = f.space(i); f.text[i] == ',' {
			i = f.space(i + 1)
		}
	}
	seen.all = true
	return valid
}

// child reads a member or an element against the schema that n has for all of
// them. If that is false, the fault is one of n's keyword.
func (f *eval) child(sub, n *node, keyword string, at, depth int) (end int, valid bool) {
	if sub.never {
		return f.after(at, depth, f.check(false, n, keyword, at))
	}
	return f.value(sub, at, depth, nil)
}

// object reads an object. In a text that was not parsed, each key may occur once.
func (f *eval) object(n *node, at, depth int, seen *marks) (end int, valid bool) {
	if f.parsed || n.closed && len(n.patterns) == 0 {
		return f.members(n, at, depth, seen, nil)
	}
	var others [8]string
	return f.members(n, at, depth, seen, others[:0])
}

// members reads an object. Duplicates of a declared key are found in have, of
// another one in others and more; for nil there is none, or it is a fault.
func (f *eval) members(n *node, at, depth int, seen *marks, others []string) (end int, valid bool) {
	if depth > f.limits.Depth {
		return f.stop()
	}
	var small [4]uint64
	have := small[:]
	if len(n.props) > 64*len(small) {
		have = make([]uint64, (len(n.props)+63)/64)
	}
	var more map[string]bool
	members, unknown := 0, false
	valid = true
	i := f.space(at + 1)
	closed := i < len(f.text) && f.text[i] == '}'
	for !closed {
		if i >= len(f.text) || f.text[i] != '"' {
			return f.stop()
		}
		keyAt := i
		end, simple, ok := rawjson.StringEnd(f.text, i, f.parsed)
		if !ok {
			return f.stop()
		}
		f.work -= end - i
		key := f.text[i+1 : end-1]
		if !simple {
			key = rawjson.Exact(f.text[i:end])
		}
		if i = f.space(end); i >= len(f.text) || f.text[i] != ':' {
			return f.stop()
		}
		i = f.space(i + 1)
		var sub *node
		must, twice := false, false
		if p := n.find(key); p >= 0 {
			twice = have[p>>6]&(1<<(p&63)) != 0
			have[p>>6] |= 1 << (p & 63)
			sub, must = n.props[p].schema, n.props[p].must
		} else if others != nil {
			if twice = more[key] || slices.Contains(others, key); len(others) < cap(others) {
				others = append(others, key)
			} else {
				if more == nil {
					more = map[string]bool{}
				}
				more[key] = true
			}
		}
		if twice && !f.parsed || f.empties != AllowEmpty && (sub != nil && !must || f.empties == RefuseAnyEmpty) && f.emptyAt(i) {
			return f.stop()
		}
		if sub != nil && n.simple && seen == nil {
			i, ok = f.value(sub, i, depth, nil)
		} else {
			i, ok = f.memberOf(n, sub, key, keyAt, i, depth, members, seen, &unknown)
		}
		if !ok && f.ends(&valid) {
			return 0, false
		}
		members++
		if i, closed, ok = f.next(i, '}'); !ok {
			return f.stop()
		}
	}
	if f.work -= n.requires; unknown {
		valid = f.check(false, n, "additionalProperties", at)
	}
	for i, must := range n.required {
		if must&^have[i] != 0 {
			valid = f.check(false, n, "required", at)
			break
		}
	}
	valid = f.check(members >= n.minProps, n, "minProperties", at) && valid
	valid = f.check(members <= n.maxProps, n, "maxProperties", at) && valid
	if seen != nil && (n.closed || n.others != nil) {
		seen.all = true
	}
	for _, d := range n.depends {
		if have[d.prop>>6]&(1<<(d.prop&63)) == 0 || !valid && !f.collect {
			continue
		}
		for j, p := range d.needs {
			if have[p>>6]&(1<<(p&63)) == 0 {
				f.add(found{n: n, keyword: "dependentRequired", entry: d.keyword + "/" + strconv.Itoa(j), at: at})
				valid = false
			}
		}
		if d.schema != nil {
			_, ok := f.apply(d.schema, at, depth-1, seen)
			valid = valid && ok
		}
	}
	return i + 1, valid
}

// next reads what follows a member or an element, up to the next one or to the
// closing bracket.
func (f *eval) next(i int, closer byte) (_ int, closed, ok bool) {
	if i = f.space(i); i >= len(f.text) || f.text[i] == closer {
		return i, true, i < len(f.text)
	}
	return f.space(i + 1), false, f.text[i] == ','
}

// memberOf reads a member against everything that n says about it.
func (f *eval) memberOf(n, sub *node, key string, keyAt, at, depth, member int, seen *marks, unknown *bool) (end int, valid bool) {
	valid = true
	evaluated := sub != nil
	end = -1
	if sub != nil {
		var ok bool
		if end, ok = f.value(sub, at, depth, nil); !ok && f.ends(&valid) {
			return 0, false
		}
	}
	for i := range n.patterns {
		p := &n.patterns[i]
		if !f.spend(matchCost(p.size, len(key))) {
			return f.stop()
		}
		if p.re.MatchString(strings.ToValidUTF8(key, "\ufffd")) {
			evaluated = true
			var ok bool
			if end, ok = f.value(p.schema, at, depth, nil); !ok && f.ends(&valid) {
				return 0, false
			}
		}
	}
	switch {
	case evaluated:
	case n.closed:
		if *unknown = true; f.ends(&valid) {
			return 0, false
		}
	case n.others != nil:
		var ok bool
		if end, ok = f.child(n.others, n, "additionalProperties", at, depth); !ok && f.ends(&valid) {
			return 0, false
		}
	}
	if evaluated || n.closed || n.others != nil {
		seen.set(member)
	}
	if n.regexNames {
		_, err := regexp.Compile(key)
		valid = f.check(err == nil, n, "", at) && valid
	}
	if n.names != nil {
		was, empties := f.member, f.empties
		f.member, f.empties = at, AllowEmpty
		_, ok := f.value(n.names, keyAt, depth, nil)
		f.member, f.empties = was, empties
		valid = valid && ok
	}
	if end < 0 {
		return f.after(at, depth, valid)
	}
	return end, valid
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
func (f *eval) emptyAt(i int) bool {
	if i >= len(f.text) || f.text[i] == 'n' {
		return true
	}
	if c := f.text[i]; c == '{' || c == '[' {
		j := f.space(i + 1)
		return j >= len(f.text) || f.text[j] == c+2
	}
	return false
}

// array reads an array.
func (f *eval) array(n *node, at, depth int, seen *marks) (end int, valid bool) {
	if depth > f.limits.Depth {
		return f.stop()
	}
	count, matched := 0, 0
	var different map[string]bool // the values so far, for uniqueItems; nil once there are two equal ones
	if n.unique {
		different = map[string]bool{}
	}
	valid = true
	i := f.space(at + 1)
	closed := i < len(f.text) && f.text[i] == ']'
	for ; !closed; count++ {
		if i >= len(f.text) || f.empties == RefuseAnyEmpty && f.emptyAt(i) {
			return f.stop()
		}
		ok := true
		switch {
		case count < len(n.prefix):
			end, ok = f.value(n.prefix[count], i, depth, nil)
			seen.set(count)
		case n.items != nil:
			end, ok = f.child(n.items, n, n.itemsWord, i, depth)
			seen.set(count)
		default:
			end, ok = f.after(i, depth, !n.tuple)
		}
		if !ok && f.ends(&valid) {
			return 0, false
		}
		if n.contains != nil {
			if _, ok := f.fits(n.contains, i, depth, nil); ok {
				if matched++; n.marksContained {
					seen.set(count)
				}
			}
		}
		if different != nil {
			if !f.spend(8*(end-i) + 10) {
				return f.stop()
			}
			key := keyOf(f.text[i:end])
			if different[key] {
				valid, different = f.check(false, n, "uniqueItems", at), nil
			} else {
				different[key] = true
			}
		}
		if !valid && !f.collect {
			return 0, false
		}
		if i, closed, ok = f.next(end, ']'); !ok {
			return f.stop()
		}
	}
	valid = f.check(!n.tuple || count <= len(n.prefix), n, "additionalItems", at) && valid
	valid = f.check(count >= n.minItems, n, "minItems", at) && valid
	valid = f.check(count <= n.maxItems, n, "maxItems", at) && valid
	if n.contains != nil {
		valid = f.check(matched >= n.minContains, n, "minContains", at) && valid
		valid = f.check(matched <= n.maxContains, n, "maxContains", at) && valid
	}
	return i + 1, valid
}

// listed reports whether a value is one of enum and const: the string s, or the
// value with the text s.
func (f *eval) listed(n *node, at int, s string, isText bool) bool {
	valid := true
	for i, v := range [2]*values{n.constant, n.enum} {
		if v != nil {
			has := isText && v.hasText(s) || !isText && len(v.keys) > 0 && f.spend(8*len(s)) && v.keys[keyOf(s)]
			valid = f.check(has, n, [2]string{"const", "enum"}[i], at) && valid
		}
	}
	return valid
}

func (f *eval) literal(at int) (int, bool) {
	for _, word := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(f.text[at:], word) {
			return at + len(word), true
		}
	}
	return f.stop()
}

// str reads a string.
func (f *eval) str(n *node, at int) (end int, valid bool) {
	end, simple, ok := rawjson.StringEnd(f.text, at, f.parsed)
	if !ok {
		return f.stop()
	}
	if f.work -= end - at; n.anyText {
		return end, true
	}
	s := f.text[at+1 : end-1]
	if !simple {
		s = rawjson.Unquote(f.text[at:end])
	}
	valid = !n.valued || f.listed(n, at, rawjson.Exact(f.text[at:end]), true)
	if len(s)/utf8.UTFMax < n.minLength || len(s) > n.maxLength {
		c := utf8.RuneCountInString(s)
		valid = f.check(c >= n.minLength, n, "minLength", at) && valid
		valid = f.check(c <= n.maxLength, n, "maxLength", at) && valid
	}
	if n.pattern != nil && (valid || f.collect) {
		if !f.spend(matchCost(n.patternSize, len(s))) {
			return f.stop()
		}
		valid = f.check(n.pattern.MatchString(s), n, "pattern", at) && valid
	}
	if n.format != nil && (valid || f.collect) {
		if !f.spend(4*len(s) + 20) {
			return f.stop()
		}
		valid = f.check(n.format(s), n, "format", at) && valid
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
func (f *eval) number(n *node, at int) (end int, valid bool) {
	text, i := f.text, at
	if text[i] == '-' {
		i++
	}
	first, fraction, mantissa := i, 0, 0
	for ; i < len(text) && '0' <= text[i] && text[i] <= '9'; i++ {
		mantissa = 10*mantissa + int(text[i]-'0')
	}
	integer := i > first && (text[first] != '0' || i == first+1)
	short := integer // mantissa and fraction say it all
	if i < len(text) && text[i] == '.' {
		integer = false
		for i++; i < len(text) && '0' <= text[i] && text[i] <= '9'; i++ {
			mantissa = 10*mantissa + int(text[i]-'0')
			fraction++
		}
		short = short && fraction > 0
	}
	if !short || i-at > min(f.limits.Number, exactDigits) || i < len(text) && text[i]|0x20 == 'e' {
		var ok bool
		if i, ok = rawjson.NumberEnd(text, at, f.limits); !ok {
			return f.stop()
		}
		integer, short = integer && !strings.ContainsAny(text[at:i], "eE"), false
	}
	s := text[at:i]
	if n.types&view.Number == 0 && (n.types&view.Integer == 0 || !integer && !wholeNumber(s)) {
		f.mistyped, f.mistypedAt = n, at
		return i, f.check(false, n, "type", at)
	}
	if f.work -= i - at; n.anyNum {
		return i, true
	}
	valid = !n.valued || f.listed(n, at, s, false)
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
		case exact == nil && !f.ratio(s, &exact):
			return i, false
		default:
			c = exact.Cmp(b.limit)
		}
		valid = f.check(!(b.lower && c < 0 || !b.lower && c > 0 || b.exclusive && c == 0), n, b.keyword, at) && valid
	}
	switch whole := short && integer && n.whole != 0; {
	case n.divisor == nil || !valid && !f.collect:
		return i, valid
	case whole:
		return i, f.check(int64(mantissa)%n.whole == 0, n, "multipleOf", at) && valid
	case exact == nil && !f.ratio(s, &exact):
		return i, false
	}
	d := (exact.Num().BitLen() + exact.Denom().BitLen() + n.divisor.Num().BitLen() + n.divisor.Denom().BitLen()) / 3
	if !f.spend(d + d*d/500) {
		return f.stop()
	}
	return i, f.check(new(big.Rat).Quo(exact, n.divisor).IsInt(), n, "multipleOf", at) && valid
}

// ratio reads a number. A number of 1e100000 takes as much memory as one of
// 100,000 digits.
func (f *eval) ratio(s string, exact **big.Rat) bool {
	d := len(s) + exponent(s)
	if d > 100_000 || !f.spend(50+d/2+d*d/1000) {
		f.stop()
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

// Empties says for which empty values, null, {} and [], SurelyValid reports
// false, because something else has to look at them.
type Empties uint8

// The settings.
const (
	AllowEmpty     Empties = iota
	RefuseOptional         // those of declared, not required properties
	RefuseAnyEmpty         // all but the text as a whole
)

// maxSureDepth bounds the recursion of SurelyValid.
const maxSureDepth = 512

// SurelyValid reports whether text is one JSON object within limits, without
// duplicate keys and without the empties, that is valid. If it is false, parse
// the text and call Validate. It reads the text once, stops at the first fault,
// and allocates nothing for most schemas.
func (s *Schema) SurelyValid(text string, limits rawjson.Limits, empties Empties) bool {
	limits = limits.WithDefaults()
	if len(text) > limits.Bytes || limits.Depth > maxSureDepth {
		return false
	}
	f := eval{text: text, limits: limits, empties: empties, tracked: s.tracked, member: -1, work: linear(len(text))}
	at := f.space(0)
	if at >= len(text) || text[at] != '{' {
		return false
	}
	end, valid := f.value(s.root, at, 0, nil)
	return valid && !f.stopped && f.space(end) == len(text)
}

// linear is a few times the work of reading so many bytes once. Branches read
// values again.
func linear(bytes int) int { return 8*bytes + 4096 }

// faults returns what refuses v. It takes the work off left. ok is false if the
// work was not enough or ctx ended: then nothing is known about v.
func (s *Schema) faults(ctx context.Context, v rawjson.Value, left *int) (_ []found, ok bool) {
	most := min(maxWork+linear(len(v.Raw())), *left)
	first := min(lease, most)
	f := eval{text: v.Raw(), limits: unlimited, parsed: true, collect: true, tracked: s.tracked, member: -1, work: first, reserve: most - first, ctx: ctx}
	f.value(s.root, 0, 0, nil)
	if *left -= most; f.spend(0) {
		*left += f.reserve + f.work
	}
	return f.found, !f.stopped
}

var unlimited = rawjson.Limits{Bytes: -1, Depth: -1, Number: -1, Exponent: -1}.WithDefaults()
