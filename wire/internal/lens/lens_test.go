package lens_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

var plain = lens.Lens{Dialect: "test"}

// both reads a key in camelCase and in one other spelling, and bare objects.
var both = lens.Lens{Dialect: "test", Bare: true, Is: func(key, name string) bool { return name == "toolConfig" && key == "tool_config" }}

func object(t testing.TB, text string) rawjson.Value {
	t.Helper()
	v, err := codec.ParseObject(text)
	require.NoError(t, err)
	return v
}

type tool struct{ name, description, schema string }

func readTool(v rawjson.Value) (tool, error) {
	name, err := plain.Text(v, "name")
	return tool{name, v.Get("description").Str(), v.Get("schema").Raw()}, err
}

func sameTool(was, now tool) bool { return was == now }

func toolMembers(_ rawjson.Value, t tool) ([]lens.Member, error) {
	if t.schema != "" && t.schema[0] != '{' {
		return nil, codec.Unencodablef("a schema that is not an object")
	}
	return []lens.Member{lens.Text("name", t.name), lens.Word("description", t.description), lens.Raw("schema", t.schema)}, nil
}

// A tool came from the wire, and a middleware gave it a description. All else
// stays, what this format does not know too.
func ExampleRewrite() {
	from := plain.Native(`{"name": "weather", "x-origin": 7}`)
	now := tool{name: "weather", description: "The weather."}

	edited, _ := lens.Rewrite(plain, from, now, sameTool, readTool, toolMembers)
	fresh, _ := lens.Rewrite(plain, nil, now, sameTool, readTool, toolMembers)
	fmt.Println(edited)
	fmt.Println(fresh)
	// Output:
	// {"name": "weather", "x-origin": 7,"description":"The weather."}
	// {"name":"weather","description":"The weather."}
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	weather := tool{name: "weather"}
	for name, c := range map[string]struct {
		from string
		now  tool
		want string // "" for an error
	}{
		"unchanged":               {`{ "name" : "weather" }`, weather, `{ "name" : "weather" }`},
		"unchanged, odd":          {`{"name":"x","name":"weather"}`, weather, `{"name":"x","name":"weather"}`},
		"a member is set":         {`{ "name" : "w", "a": 1 }`, weather, `{ "name" : "weather", "a": 1 }`},
		"a member goes":           {`{"description": "D", "name": "weather"}`, weather, `{"name": "weather"}`},
		"of a doubled key":        {`{"name":"x","name":"y"}`, weather, ""},
		"text that is not JSON":   {`{`, weather, ""},
		"text of something else":  {`{"name":1}`, weather, ""},
		"what cannot be written":  {`{"name":"weather"}`, tool{"weather", "", "1"}, ""},
		"the old could not be so": {`{"name":"weather","schema":1}`, weather, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := lens.Rewrite(plain, plain.Native(c.from), c.now, sameTool, readTool, toolMembers)
			if c.want == "" {
				require.ErrorIs(t, err, codec.ErrUnencodable)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
	got, err := lens.Rewrite(plain, &middleware.Native{Dialect: "other", Raw: "{"}, weather, sameTool, readTool, toolMembers)
	require.NoError(t, err)
	require.Equal(t, `{"name":"weather"}`, got)
}

// Keys are paths: objects on the way are made where they are missing.
func ExampleLens_Set() {
	settings := []lens.Member{lens.Raw("config/temperature", "0.5"), lens.Raw("config/top", "3"), lens.None("old")}
	for _, text := range []string{`{}`, `{"old": 1, "config": {"top": 4}}`, `{"config": null}`} {
		v, _ := codec.ParseObject(text)
		out, _ := plain.Set(v, settings...)
		fmt.Println(out)
	}
	// Output:
	// {"config":{"temperature":0.5,"top":3}}
	// {"config": {"top": 3,"temperature":0.5}}
	// {"config": {"temperature":0.5,"top":3}}
}

func TestSpelling(t *testing.T) {
	t.Parallel()
	v := object(t, `{"tool_config": {"mode": "a"}, "x": null}`)
	require.Equal(t, "a", both.Get(both.Get(v, "toolConfig"), "mode").Str())
	require.False(t, both.Get(v, "x").Exists())
	out, err := both.Set(v, lens.Text("toolConfig/mode", "b"))
	require.NoError(t, err)
	require.Equal(t, `{"tool_config": {"mode": "b"}, "x": null}`, out)
	_, err = both.Set(object(t, `{"tool_config":{},"toolConfig":{}}`), lens.Text("toolConfig/mode", "b"))
	require.ErrorIs(t, err, codec.ErrUnencodable)
	_, err = plain.Set(object(t, `{"a":1}`), lens.Text("a/b", "c"))
	require.ErrorIs(t, err, codec.ErrUnencodable)
	_, err = plain.Set(object(t, `{"a":{},"a":{}}`), lens.Text("a/b", "c"))
	require.ErrorIs(t, err, codec.ErrUnencodable)
}

func TestRead(t *testing.T) {
	t.Parallel()
	v := object(t, `{"s": "x", "n": 1, "null": null, "list": ["a", "b"], "mixed": ["a", 1], "one": {"k": 1}}`)
	s, err := plain.Text(v, "s")
	require.NoError(t, err)
	require.Equal(t, "x", s)
	_, err = plain.Text(v, "n")
	require.ErrorIs(t, err, codec.ErrShape)
	words, err := plain.Texts(v, "list")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, words)
	for _, name := range []string{"mixed", "s"} {
		_, err = plain.Texts(v, name)
		require.ErrorIs(t, err, codec.ErrShape)
	}
	for _, name := range []string{"null", "missing"} {
		words, err = plain.Texts(v, name)
		require.NoError(t, err)
		require.Empty(t, words)
	}
	_, err = plain.List(v, "one", rawjson.Object)
	require.ErrorIs(t, err, codec.ErrShape)
	one, err := both.List(v, "one", rawjson.Object)
	require.NoError(t, err)
	require.Equal(t, []string{`{"k": 1}`}, lens.Raws(one))
}

// A Reader keeps the first of its errors.
func TestReader(t *testing.T) {
	t.Parallel()
	v := object(t, `{"s": "x", "n": 1, "list": [{"k": 1}], "words": ["a"]}`)
	r := plain.Reader()
	require.Equal(t, "x", r.Text(v, "s"))
	require.Equal(t, "1", r.Kind(v, "n", rawjson.Number).Raw())
	require.Len(t, r.Objects(v, "list"), 1)
	require.Equal(t, []string{"a"}, r.Texts(v, "words"))
	require.Empty(t, r.Text(r.Kind(v, "missing", rawjson.Object), "s"))
	require.NoError(t, r.Err)
	r.Text(v, "n")
	r.Objects(v, "s")
	require.ErrorIs(t, r.Err, codec.ErrShape)
	require.ErrorContains(t, r.Err, "n is of kind")
}

func TestElements(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		l     lens.Lens
		text  string
		items []string
		want  string
	}{
		"the same":       {plain, `{"l": [ 1 , 2 ]}`, []string{"1", "2"}, `{"l": [ 1 , 2 ]}`},
		"the same twice": {plain, `{"l": [0], "l": [1]}`, []string{"1"}, `{"l": [0], "l": [1]}`},
		"appended":       {plain, `{"l": [ 1 ]}`, []string{"1", "2"}, `{"l": [ 1,2 ]}`},
		"two replaced":   {plain, `{"l": [ 1 , 2 , 3 ]}`, []string{"4", "5", "3"}, `{"l": [ 4 , 5 , 3 ]}`},
		"missing":        {plain, `{}`, []string{"1"}, `{"l":[1]}`},
		"missing still":  {plain, `{"a":1}`, nil, `{"a":1}`},
		"null":           {plain, `{"l":null}`, []string{"1"}, `{"l":[1]}`},
		"emptied":        {plain, `{"l":[1]}`, nil, `{"l":[]}`},
		"bare":           {both, `{"l": {"a": 1}}`, []string{`{"a": 1}`}, `{"l": {"a": 1}}`},
		"bare and one":   {both, `{"l": {}}`, []string{`{}`, `{"b":1}`}, `{"l": [{},{"b":1}]}`},
		"doubled":        {plain, `{"l": [0], "l": [1]}`, []string{"2"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := object(t, c.text)
			edits, err := c.l.Elements(v, "l", c.items)
			if c.want == "" {
				require.ErrorIs(t, err, codec.ErrUnencodable)
				return
			}
			require.NoError(t, err)
			got, err := codec.Within(v, edits)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestClear(t *testing.T) {
	t.Parallel()
	doc, err := codec.Parse(`{"a": {"x": 1}, "a": {"x": 2}, "b": {"c": 1, "c": 2}}`)
	require.NoError(t, err)
	root := doc.Root()
	whole := codec.Replace(root.Get("b"), "3")
	require.NoError(t, lens.Clear(doc, nil))
	e := plain.Edit(root)
	e.Add([]rawjson.Edit{whole}, nil)
	out, err := e.Apply(doc)
	require.NoError(t, err)
	require.Equal(t, `{"a": {"x": 1}, "a": {"x": 2}, "b": 3}`, out)
	e.Add([]rawjson.Edit{codec.Replace(root.Get("a").Get("x"), "3")}, nil)
	_, err = e.Apply(doc)
	require.ErrorIs(t, err, codec.ErrUnencodable)
}

func TestMembers(t *testing.T) {
	t.Parallel()
	half := 0.5
	require.Equal(t, `{"a":"","b":["x"],"c":7,"d":0.5,"e":true,"f":{"g":"h"}}`, plain.Object(
		lens.Text("a", ""), lens.Word("no", ""), lens.Words("b", []string{"x"}), lens.Words("no", nil), lens.Count("c", 7), lens.Count("no", 0),
		lens.Float("d", &half), lens.Float("no", nil), lens.Flag("e", true), lens.Flag("no", false), lens.Word("f/g", "h"), lens.None("i/j")))
	was := []lens.Member{lens.Text("a", "1"), lens.Text("b", "2")}
	require.Empty(t, lens.Differ(was, was))
	require.Equal(t, []lens.Member{lens.None("b")}, lens.Differ(was, []lens.Member{lens.Text("a", "1"), lens.None("b")}))
}

func TestAgain(t *testing.T) {
	t.Parallel()
	reads := 0
	read := func(raw string) (*string, error) {
		reads++
		if raw == "bad" {
			return nil, codec.Shapef("bad")
		}
		return &raw, nil
	}
	is := "what was read"
	n := codec.Remember(plain.Dialect, "text", &is)
	got, ok, err := lens.Again(plain, n, read)
	require.True(t, ok)
	require.NoError(t, err)
	require.Same(t, &is, got)
	require.Zero(t, reads)

	n.Raw = "another text"
	got, _, err = lens.Again(plain, n, read)
	require.NoError(t, err)
	require.Equal(t, "another text", *got)

	stored := plain.Native("text")
	got, _, err = lens.Again(plain, stored, read)
	require.NoError(t, err)
	require.Equal(t, "text", *got)
	require.Equal(t, 2, reads)

	_, ok, err = lens.Again(plain, plain.Native("bad"), read)
	require.True(t, ok)
	require.ErrorIs(t, err, codec.ErrUnencodable)
	for _, none := range []*middleware.Native{nil, {Dialect: "other", Raw: "text"}} {
		_, ok, err = lens.Again(plain, none, read)
		require.False(t, ok)
		require.NoError(t, err)
	}
}
