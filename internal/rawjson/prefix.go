package rawjson

// WholeMembers returns the longest run of top-level members that text begins
// with, as a JSON object with the bytes of text: {"a": 1, "b": 2} for
// `{"a": 1, "b": 2, "c": `. A member counts if the comma or brace after its
// value arrived, since 3 may be the start of 30. The run ends before a key that
// the object holds already. It is {} if no member counts, or text is not an object.
// It has less than limit bytes; but an object of at most whole bytes comes back
// as it is. Work and memory are linear in the larger of the two.
func WholeMembers(text string, whole, limit int) string {
	s := scanner{text: text, limits: Limits{}.WithDefaults(), doc: &Doc{text: text}}
	if len(text) > whole {
		s.text = text[:min(len(text), limit-1)]
	}
	err := s.scan() // whatever stopped it, what was read before is good
	if len(s.doc.nodes) == 0 || s.doc.nodes[0].kind != Object {
		return "{}"
	}
	if err == nil && len(text) <= whole {
		return text
	}
	s.text = text[:min(len(text), limit-1)]
	start, end := int(s.doc.nodes[0].start), 0
	keys := map[string]bool{}
	for i := range s.doc.nodes {
		n := &s.doc.nodes[i]
		if n.parent != 0 {
			continue
		}
		key := Value{s.doc, int32(i)}.Key()
		if n.end == 0 || int(n.end) > len(s.text) || keys[key] || !s.endsAt(int(n.end)) {
			break
		}
		keys[key] = true
		end = int(n.end)
	}
	if end == 0 {
		return "{}"
	}
	return s.text[start:end] + "}"
}

// endsAt reports whether a comma or a brace follows the value that ends at pos.
func (s *scanner) endsAt(pos int) bool {
	s.pos = pos
	s.space()
	return s.pos < len(s.text) && (s.text[s.pos] == ',' || s.text[s.pos] == '}')
}
