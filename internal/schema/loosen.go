package schema

// loosen makes sure that no schema became stricter because others accept more:
// a keyword that negates is dropped where a loosened schema stands under it. For
// example,
//
//	{"not": {"pattern": "(?=x)y"}}
//
// would become {"not": {}}, which refuses everything, once the pattern is dropped. A
// schema that is not checked in full must accept more than it says, never less: the
// caller was told in a note that it does.
func (n *normalizer) loosen() {
	for _, p := range n.order { // what counts as evaluated is not certain any more
		for _, kw := range []string{"unevaluatedItems", "unevaluatedProperties"} {
			if _, ok := p.m[kw]; ok {
				delete(p.m, kw)
				p.loosened = true
			}
		}
	}
	n.spread()
	for _, p := range n.order {
		for _, e := range p.below {
			if e.to.loosened {
				negate(p.m, e.keyword)
			}
		}
	}
}

// spread marks every schema that contains or refers to a loosened one. A schema whose
// references cannot be followed here counts as loosened: it may refer to one.
func (n *normalizer) spread() {
	users := map[*part][]*part{}
	var todo []*part
	for _, p := range n.order {
		for _, e := range p.below {
			users[e.to] = append(users[e.to], p)
		}
		for _, ref := range p.refs {
			if to := n.nodes[ref]; to != nil {
				users[to] = append(users[to], p)
			}
		}
		p.loosened = p.loosened || p.astray || n.ids && len(p.refs) > 0
		if p.loosened {
			todo = append(todo, p)
		}
	}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, user := range users[p] {
			if !user.loosened {
				user.loosened = true
				todo = append(todo, user)
			}
		}
	}
}

// negate drops or weakens a keyword that accepts less when what stands under
// it accepts more. Of a oneOf the requirement that some branch fits stays; that no
// second one does cannot be checked any more. Of contains the upper bound goes.
func negate(m map[string]any, kw string) {
	switch kw {
	case "not":
		delete(m, "not")
	case "if":
		delete(m, "if")
		delete(m, "then")
		delete(m, "else")
	case "contains":
		delete(m, "maxContains")
	case "oneOf":
		if branches, ok := m["oneOf"]; ok {
			all, _ := m["allOf"].([]any)
			m["allOf"] = append(all, map[string]any{"anyOf": branches})
			delete(m, "oneOf")
		}
	}
}
