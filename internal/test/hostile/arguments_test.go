package hostile

import (
	"strings"
)

// The schemas that several attacks share.
const (
	anyObject = `{"type":"object"}`
	ofStrings = `{"properties":{"a":{"items":{"type":"string"}}}}`
	tree      = `{"properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"properties":{"a":{"$ref":"#/$defs/t"}},"additionalProperties":{"type":"string"}}}}`
	branching = `{"properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"array","items":{"anyOf":[{"$ref":"#/$defs/t"},{"$ref":"#/$defs/t"}]}}}}`
	coerced   = `{"properties":{` + `"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"},"d":{"type":"integer"},"e":{"type":"integer"},"f":{"type":"integer"},"g":{"type":"integer"},"h":{"type":"integer"},"list":{"items":{"anyOf":[{"type":"string"},{"type":"integer"}]}},"pad":{}}`
	coercible = `"a":"1","b":"2","c":"3","d":"4","e":"5","f":"6","g":"7","h":"8"`
)

// inArray is an attack whose property a is an array of that item.
func inArray(name, schema, item string) Attack {
	return Attack{Arguments, name, func(size int) Sample { return one(schema, `{"a":[`+list(item, size-8)+`]}`) }}
}

// belowKey is an attack with a key of half the size above many items.
func belowKey(name, schema, item string) Attack {
	return Attack{Arguments, name, func(size int) Sample {
		return one(schema, `{"`+strings.Repeat("k", size/2)+`":[`+list(item, size/2-10)+`]}`)
	}}
}

// arguments are calls whose arguments grow.
var arguments = []Attack{
	belowKey("duplicate keys below a long key", anyObject, `{"a":1,"a":2}`),
	inArray("duplicate keys in a long array", anyObject, `{"a":1,"a":2}`),
	belowKey("missing properties below a long key", `{"additionalProperties":{"items":{"required":["b"]}}}`, `{}`),
	belowKey("unknown keys below a long key", `{"additionalProperties":{"items":{"additionalProperties":false}}}`, `{"a":1}`),
	belowKey("bad items below a long key", `{"additionalProperties":{"items":{"type":"string"}}}`, `1`),
	{Arguments, "unknown keys like 2,900 declared ones", func(size int) Sample {
		schema := `{"properties":{"a":{"items":{"additionalProperties":false,"properties":{` + times(`"declared_%d":{}`, 2900) + `}}}}}`
		return one(schema, `{"a":[`+list(`{`+times(`"`+strings.Repeat("x", 100)+`_%d":1`, 50)+`}`, size-8)+`]}`)
	}},
	inArray("objects that lack 100 long names", `{"properties":{"a":{"items":{"required":[`+times(`"`+strings.Repeat("n", 100)+`_%d"`, 100)+`]}}}}`, `{}`),
	{Arguments, "8 coercions beside items of an anyOf", func(size int) Sample {
		return one(coerced+`}`, `{`+coercible+`,"list":[`+list(`1`, size-100)+`]}`)
	}},
	{Arguments, "8 coercions under a doubled allOf", func(size int) Sample {
		return one(coerced+`,`+strings.TrimPrefix(doubled(7), "{"), `{`+coercible+`,"pad":"`+strings.Repeat("x", size-100)+`"}`)
	}},
	inArray("bad items", ofStrings, `1`),
	inArray("good items", `{"properties":{"a":{"items":{"type":"integer"}}}}`, `1`),
	inArray("enum of 2,000 values", `{"properties":{"a":{"items":{"enum":[`+times(`"value %d"`, 2000)+`]}}}}`, `"x"`),
	{Arguments, "unknown keys", func(size int) Sample {
		return one(`{"additionalProperties":false,"properties":{"k":{}}}`, `{`+list(`"key %d":1`, size)+`}`)
	}},
	inArray("uniqueItems", `{"properties":{"a":{"uniqueItems":true}}}`, `%d`),
	inArray("uniqueItems of lists", `{"properties":{"a":{"items":{"uniqueItems":true}}}}`, `[`+strings.Repeat("1,", 19)+`2]`),
	{Arguments, "uniqueItems, equal hashes", func(size int) Sample {
		return one(`{"properties":{"a":{"uniqueItems":true}}}`, `{"a":[`+colliding(size/100)+`]}`)
	}},
	inArray("huge exponents", `{"properties":{"a":{"items":{"type":"integer"}}}}`, `1e1000000`),
	inArray("exponents of 400", `{"properties":{"a":{"items":{"type":"integer","maximum":5}}}}`, `1e400`),
	inArray("numbers of 999 digits", `{"properties":{"a":{"items":{"multipleOf":0.01}}}}`, strings.Repeat("7", 999)),
	{Arguments, "one number", func(size int) Sample {
		return one(`{"properties":{"a":{"type":"integer"}}}`, `{"a":`+strings.Repeat("7", size-6)+`}`)
	}},
	{Arguments, "opening brackets", func(size int) Sample { return one(ofStrings, strings.Repeat("[", size)) }},
	{Arguments, "62 levels above bad values", func(size int) Sample {
		return one(tree, nested(`{"a":`, `{`+list(`"key %d":1`, size-400)+`}`, `}`, 62))
	}},
	inArray("62 levels of two branches", branching, nested(`[`, `1`, `]`, 61)),
	{Arguments, "pattern ^(a+)+$", func(size int) Sample {
		return one(`{"properties":{"a":{"pattern":"^(a+)+$"}}}`, `{"a":"`+strings.Repeat("a", size-20)+`!"}`)
	}},
	{Arguments, "pattern of 1,000 states", func(size int) Sample {
		return one(`{"properties":{"a":{"pattern":"(x+x+){1,300}y"}}}`, `{"a":"`+strings.Repeat("x", size-20)+`"}`)
	}},
	{Arguments, "a string for an integer", func(size int) Sample {
		return one(`{"properties":{"a":{"type":"integer"}}}`, `{"a":"`+fill("é", size-10)+`"}`)
	}},
	{Arguments, "empty values", func(size int) Sample {
		return one(`{"properties":{"a":{"items":{"properties":{"b":{"type":"string"},"c":{"type":"array"}}}}}}`, `{"a":[`+list(`{"b":null,"c":[]}`, size-8)+`]}`)
	}},
}

// broken is an attack with arguments that are no JSON.
func broken(name string, text func(size int) string) Attack {
	return Attack{Arguments, name, func(size int) Sample {
		return one(`{"properties":{"a":{},"x":{"type":"string"}}}`, text(size))
	}}
}

// syntax are arguments for the repairs of syntax.
var syntax = []Attack{
	broken("raw line feeds in a string", func(size int) string { return `{"x":"` + fill("a\n", size-10) + `"}` }),
	broken("raw control characters in a string", func(size int) string { return `{"x":"` + strings.Repeat("\x01", size-10) + `"}` }),
	broken("bare keys", func(size int) string { return `{` + list(`key%d:1`, size-2) + `}` }),
	broken("hash comments", func(size int) string { return "{\"a\":[" + list("1 # one\n", size-10) + `]}` }),
	broken("single quotes", func(size int) string { return `{'a':[` + list(`'b'`, size-10) + `]}` }),
	broken("an encoded object", func(size int) string { return `"{\"a\":[` + list(`\"b\"`, size-10) + `]}"` }),
	broken("commas before brackets", func(size int) string { return `{"a":[` + list(`[1,]`, size-10) + `]}` }),
	broken("a text without an end", func(size int) string { return `{"a":[` + list(`{"b":"c"}`, size-10) }),
	broken("quotes inside of a string", func(size int) string { return `{"x":"` + fill(`a "b" `, size-10) + `"}` }),
	broken("fenced", func(size int) string { return "```json\n" + `{"a":"` + fill("```", size-30) + "\"}\n```" }),
}

// colliding returns n lists of brackets that jsonschema/v5's hash cannot tell
// apart.
func colliding(n int) string {
	var items []string
	for i := range n {
		var b strings.Builder
		for bit := range 14 {
			if i>>bit&1 == 1 {
				b.WriteString("[],[[]],")
			} else {
				b.WriteString("[[]],[],")
			}
		}
		items = append(items, "["+strings.TrimSuffix(b.String(), ",")+"]")
	}
	return strings.Join(items, ",")
}
